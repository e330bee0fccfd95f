// Package crds has the CustomResourceDefinitions of every kind that meshctl defines, as controller-gen makes them from
// the Go types beside it. `make generate` writes the files; they are not edited.
package crds

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// All returns the definitions, ordered by name, each with the labels by which Gloo Mesh 1.x marks its own. The caller
// owns the result.
//
// It fails only if an embedded file is not a CustomResourceDefinition, which a test of this package rules out.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	// Names are group_plural.yaml and ReadDir sorts by name.
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list the embedded CustomResourceDefinitions: %w", err)
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		data, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("%s: read the embedded CustomResourceDefinition: %w", entry.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("%s: decode the embedded CustomResourceDefinition; run make generate: %w",
				entry.Name(), err)
		}
		if crd.Labels == nil {
			crd.Labels = map[string]string{}
		}
		for key, value := range Labels() {
			crd.Labels[key] = value
		}
		all = append(all, crd)
	}
	return all, nil
}

// Labels are on each CustomResourceDefinition.
func Labels() map[string]string {
	return map[string]string{
		"app":                    "gloo-mesh",
		"app.kubernetes.io/name": "gloo-mesh",
	}
}

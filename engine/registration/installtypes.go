package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/api/crds"
)

// This file keeps an older meshctl from taking what a newer one has stored.

// allCRDs are the types of this binary.
func allCRDs() ([]*object, error) {
	all, err := crds.All()
	if err != nil {
		return nil, fmt.Errorf("the custom resource types of this binary: %w", err)
	}
	out := make([]*object, len(all))
	for i, crd := range all {
		if out[i], _, err = crdObject(crd); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// LossError says that types of this meshctl would drop what is stored.
type LossError struct {
	Server string
	// Losses are like "VirtualMesh gloo-mesh/vm: spec.mtlsConfig.limited".
	Losses []string
}

func (e *LossError) Error() string {
	return fmt.Sprintf("%s: a newer meshctl has stored what this one does not know, and its types would drop it: %s; use that version, or remove these fields first",
		e.Server, strings.Join(e.Losses, ", "))
}

// mostLosses bounds the losses that an error lists.
const mostLosses = 10

// loseNothing returns a *LossError if one of the types has no version in which objects are stored,
// or no field that an object has: the API server drops unknown fields at the next write.
func (s crdInstaller) loseNothing(ctx context.Context, types []*object) error {
	all, err := crds.All()
	if err != nil {
		return fmt.Errorf("the custom resource types of this binary: %w", err)
	}
	var losses []string
	for _, wanted := range all {
		if !slices.ContainsFunc(types, func(o *object) bool { return o.name == wanted.Name }) {
			continue
		}
		found, err := s.get(ctx, crdResource, "", wanted.Name)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		var stored apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &stored); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: decoding: %w", wanted.Name, err)
		}
		more, err := s.losses(ctx, &stored, wanted)
		if err != nil {
			return err
		}
		losses = append(losses, more...)
	}
	if len(losses) == 0 {
		return nil
	}
	slices.Sort(losses)
	if n := len(losses); n > mostLosses {
		losses = append(losses[:mostLosses], fmt.Sprintf("and %d more", n-mostLosses))
	}
	return &LossError{Server: s.label, Losses: losses}
}

func (s crdInstaller) losses(ctx context.Context, stored, wanted *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	var losses []string
	for _, version := range stored.Status.StoredVersions {
		if schemaOf(wanted, version) == nil {
			losses = append(losses, fmt.Sprintf("%s: version %s", stored.Name, version))
		}
	}
	for i := range stored.Spec.Versions {
		version := stored.Spec.Versions[i].Name
		before, after := schemaOf(stored, version), schemaOf(wanted, version)
		if before == nil || after == nil || !stored.Spec.Versions[i].Served {
			continue
		}
		gone := missingFields(before, after, nil)
		if len(gone) == 0 {
			continue
		}
		gvr := schema.GroupVersionResource{Group: stored.Spec.Group, Version: version, Resource: stored.Spec.Names.Plural}
		list, err := s.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("%s: listing %s: %w", s.label, gvr.GroupResource(), err)
		}
		for n := range list.Items {
			o := &list.Items[n]
			for _, path := range gone {
				if has(o.Object, path) {
					losses = append(losses, fmt.Sprintf("%s %s/%s: %s", o.GetKind(), o.GetNamespace(), o.GetName(), strings.Join(path, ".")))
				}
			}
		}
	}
	return losses, nil
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// anyElement stands in paths for all elements of a list or a map.
const anyElement = "*"

// missingFields are the paths to the fields that one schema has and another has not.
func missingFields(before, after *apiextensionsv1.JSONSchemaProps, path []string) (out [][]string) {
	if after.XPreserveUnknownFields != nil && *after.XPreserveUnknownFields {
		return nil
	}
	for name := range before.Properties {
		of := before.Properties[name]
		at := append(slices.Clone(path), name)
		if to, found := after.Properties[name]; found {
			out = append(out, missingFields(&of, &to, at)...)
		} else {
			out = append(out, at)
		}
	}
	at := append(slices.Clone(path), anyElement)
	if before.Items != nil && before.Items.Schema != nil && after.Items != nil && after.Items.Schema != nil {
		out = append(out, missingFields(before.Items.Schema, after.Items.Schema, at)...)
	}
	if b, a := before.AdditionalProperties, after.AdditionalProperties; b != nil && b.Schema != nil && a != nil && a.Schema != nil {
		out = append(out, missingFields(b.Schema, a.Schema, at)...)
	}
	return out
}

// has reports whether a value has something at a path.
func has(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil
	}
	switch v := value.(type) {
	case map[string]any:
		if path[0] != anyElement {
			return has(v[path[0]], path[1:])
		}
		for _, element := range v {
			if has(element, path[1:]) {
				return true
			}
		}
	case []any:
		if path[0] == anyElement {
			return slices.ContainsFunc(v, func(element any) bool { return has(element, path[1:]) })
		}
	}
	return false
}

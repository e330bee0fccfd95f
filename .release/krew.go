package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// krewFile is the krew manifest; krew wants the name of the plugin.
const krewFile = "meshctl.yaml"

// plugin is krew's Plugin, as far as it is used here (krew, pkg/index/types.go).
type plugin struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   metadata   `json:"metadata"`
	Spec       pluginSpec `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type pluginSpec struct {
	Version          string           `json:"version"`
	Homepage         string           `json:"homepage"`
	ShortDescription string           `json:"shortDescription"`
	Description      string           `json:"description"`
	Platforms        []pluginPlatform `json:"platforms"`
}

type pluginPlatform struct {
	Selector selector   `json:"selector"`
	URI      string     `json:"uri"`
	SHA256   string     `json:"sha256"`
	Bin      string     `json:"bin"`
	Files    []fileCopy `json:"files"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type fileCopy struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// writeKrew writes the manifest with which `kubectl krew install` finds the archives.
func writeKrew(o options, all []packed) error {
	p := plugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: metadata{Name: "meshctl"}}
	p.Spec = pluginSpec{
		Homepage:         "https://github.com/meshctl/meshctl",
		ShortDescription: "Manage many service meshes in many clusters as one",
		Description: `Discovers the service meshes of many clusters, joins them into a VirtualMesh
with a common trust, makes services reachable across clusters, and translates
TrafficPolicies and AccessPolicies into the configuration of each mesh.
`,
	}
	for _, a := range all {
		p.Spec.Version = a.version
		bin := filepath.Base(a.path)
		p.Spec.Platforms = append(p.Spec.Platforms, pluginPlatform{
			Selector: selector{MatchLabels: map[string]string{"os": a.os, "arch": a.arch}},
			URI:      o.url + "/" + a.version + "/" + a.file, SHA256: a.sha256, Bin: bin,
			Files: []fileCopy{{From: bin, To: "."}, {From: "LICENSE", To: "."}},
		})
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return fmt.Errorf("krew manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.out, krewFile), text, 0o644); err != nil {
		return fmt.Errorf("krew manifest: %w", err)
	}
	return nil
}

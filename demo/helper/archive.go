package helper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Pack returns the archive of the module demo/name in dir: go.mod, go.sum and
// the source files without tests, sorted by name.
func Pack(dir, name string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("packing the helper's sources: %w", err)
	}
	archive := &txtar.Archive{Comment: []byte("Generated from demo/" + name + " by demo/helper/pack. DO NOT EDIT.\n")}
	for _, entry := range entries {
		if !packed(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("packing the helper's sources: %w", err)
		}
		archive.Files = append(archive.Files, txtar.File{Name: entry.Name(), Data: data})
	}
	return txtar.Format(archive), nil
}

func packed(name string) bool {
	if slices.Contains([]string{"go.mod", "go.sum"}, name) {
		return true
	}
	return slices.Contains([]string{".go", ".s"}, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go")
}

// unpack writes the sources into dir.
func (m module) unpack(dir string) error {
	if err := txtar.Write(txtar.Parse(m.sources), dir); err != nil {
		return fmt.Errorf("unpacking the helper's sources: %w", err)
	}
	return nil
}

// version returns the version of another module that the module's go.mod requires.
func (m module) version(of string) (string, error) {
	for _, file := range txtar.Parse(m.sources).Files {
		if file.Name != "go.mod" {
			continue
		}
		for line := range strings.Lines(string(file.Data)) {
			fields := strings.Fields(strings.TrimPrefix(line, "require "))
			if len(fields) >= 2 && fields[0] == of {
				return fields[1], nil
			}
		}
	}
	return "", fmt.Errorf("the go.mod of helper %s requires no %s", m.name, of)
}

// Versions of the components in the helper, as users write them.
type Versions struct {
	Kubernetes string `json:"kubernetes"` // v1.36.3
	Istio      string `json:"istio"`      // 1.31.1
}

// ReadVersions reads the versions from the helper's go.mod. Istio's own module has
// no released version; its API module is released with it.
func ReadVersions() (Versions, error) {
	m := sandbox()
	kubernetes, err := m.version("k8s.io/kubernetes")
	if err != nil {
		return Versions{}, err
	}
	istio, err := m.version("istio.io/api")
	if err != nil {
		return Versions{}, err
	}
	return Versions{Kubernetes: kubernetes, Istio: strings.TrimPrefix(istio, "v")}, nil
}

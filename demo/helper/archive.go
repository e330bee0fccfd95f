package helper

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed source.txtar
var source []byte

// ArchiveFile is the name of the archive in this package's folder.
const ArchiveFile = "source.txtar"

// Pack returns the archive of the module in dir: go.mod, go.sum and the Go
// files that are no tests, sorted by name.
func Pack(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("packing the helper's sources: %w", err)
	}
	archive := &txtar.Archive{Comment: []byte("Generated from demo/sandbox by demo/helper/pack. DO NOT EDIT.\n")}
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
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// unpack writes the sources into dir.
func unpack(dir string) error {
	if err := txtar.Write(txtar.Parse(source), dir); err != nil {
		return fmt.Errorf("unpacking the helper's sources: %w", err)
	}
	return nil
}

// moduleVersion returns the version that the helper's go.mod requires of a module.
func moduleVersion(module string) (string, error) {
	for _, file := range txtar.Parse(source).Files {
		if file.Name != "go.mod" {
			continue
		}
		for line := range strings.Lines(string(file.Data)) {
			if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == module {
				return fields[1], nil
			}
		}
	}
	return "", fmt.Errorf("the helper's go.mod requires no %s", module)
}

// Versions of what the helper plays, as people write them.
type Versions struct {
	Kubernetes string `json:"kubernetes"` // v1.36.3
	Istio      string `json:"istio"`      // 1.31.1
}

// ReadVersions reads the versions out of the helper's go.mod. Istio's own module has
// no released version; its API module is released with it.
func ReadVersions() (Versions, error) {
	kubernetes, err := moduleVersion("k8s.io/kubernetes")
	if err != nil {
		return Versions{}, err
	}
	istio, err := moduleVersion("istio.io/api")
	if err != nil {
		return Versions{}, err
	}
	return Versions{Kubernetes: kubernetes, Istio: strings.TrimPrefix(istio, "v")}, nil
}

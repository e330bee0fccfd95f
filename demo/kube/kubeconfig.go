package kube

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteFile replaces a file in one step; only its owner may read it.
func WriteFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if _, err := tmp.Write(data); err != nil {
		_ = tmp.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// WriteKubeconfig replaces a kubeconfig file (WriteFile).
func WriteKubeconfig(path string, config *api.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return WriteFile(path, data)
}

// MergeKubeconfigs writes to path one kubeconfig with the contexts of all that
// are given; the first one's current context stays current.
func MergeKubeconfigs(path string, kubeconfigs ...string) error {
	// The first in this order wins, as with a list in KUBECONFIG.
	merged, err := (&clientcmd.ClientConfigLoadingRules{Precedence: kubeconfigs}).Load()
	if err != nil {
		return fmt.Errorf("kubeconfig %s: merging: %w", path, err)
	}
	return WriteKubeconfig(path, merged)
}

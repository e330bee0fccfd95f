package kube

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/meshctl/meshctl/demo/files"
)

// WriteKubeconfig replaces a kubeconfig file.
func WriteKubeconfig(path string, config *api.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return files.Write(path, data)
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

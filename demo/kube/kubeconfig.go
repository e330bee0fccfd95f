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

// MergeKubeconfigs writes to path one kubeconfig with the contexts of several
// ones; the current context is that of the first.
func MergeKubeconfigs(path string, kubeconfigs ...string) error {
	// The first one takes precedence, as in KUBECONFIG.
	merged, err := (&clientcmd.ClientConfigLoadingRules{Precedence: kubeconfigs}).Load()
	if err != nil {
		return fmt.Errorf("kubeconfig %s: merging: %w", path, err)
	}
	return WriteKubeconfig(path, merged)
}

// Namespace is that of the current context of a kubeconfig.
func Namespace(kubeconfig string) (string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).Namespace()
	if err != nil {
		return "", fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return namespace, nil
}

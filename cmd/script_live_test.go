//go:build unix

package cmd_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/meshctl/meshctl/demo/sandboxtest"
)

// TestLive runs every script of testdata/script/live with two real API servers of its own: the
// contexts cluster-1, which is the current one, and cluster-2 of $KUBECONFIG.
func TestLive(t *testing.T) {
	t.Parallel()
	runScripts(t, "../testdata/script/live", func(env *testscript.Env) error {
		tester, _ := env.T().(testing.TB)
		config := clientcmdapi.NewConfig()
		for _, server := range sandboxtest.APIServers(tester, 2) {
			reached, err := server.Config()
			if err != nil {
				return err
			}
			config.Clusters[server.Name()] = &clientcmdapi.Cluster{Server: reached.Host, CertificateAuthorityData: reached.CAData}
			config.AuthInfos[server.Name()] = &clientcmdapi.AuthInfo{
				ClientCertificateData: reached.CertData, ClientKeyData: reached.KeyData, Token: reached.BearerToken,
			}
			config.Contexts[server.Name()] = &clientcmdapi.Context{Cluster: server.Name(), AuthInfo: server.Name()}
		}
		config.CurrentContext = "cluster-1"
		file := filepath.Join(env.WorkDir, ".kubeconfig")
		env.Setenv("KUBECONFIG", file)
		return clientcmd.WriteToFile(*config, file)
	})
}

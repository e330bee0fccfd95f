//go:build unix

package cmd_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

// TestLive runs every script of testdata/script/live with two real API servers of its own: the
// contexts cluster-1, which is the current one, and cluster-2 of $KUBECONFIG. Beside the commands of
// TestScript:
//
//	apply FILE                applies manifests in cluster-1
//	awaits PATTERN PROGRAM... runs a program until standard output matches
//
// $LIMIT is how long an answer may take on this machine.
func TestLive(t *testing.T) {
	t.Parallel()
	own := map[string]func(*testscript.TestScript, bool, []string){"apply": apply, "awaits": awaits}
	runScripts(t, "../testdata/script/live", own, func(env *testscript.Env) error {
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
		env.Setenv("LIMIT", waittest.Limit().String())
		return clientcmd.WriteToFile(*config, file)
	})
}

// apply is the command of scripts that applies the manifests of a file in cluster-1.
func apply(ts *testscript.TestScript, neg bool, args []string) {
	t, ok := ts.Value(testerKey).(testing.TB)
	if neg || len(args) != 1 || !ok {
		ts.Fatalf("usage: apply FILE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", ts.Getenv("KUBECONFIG"))
	ts.Check(err)
	sandboxtest.Apply(t, config, []byte(ts.ReadFile(args[0])))
}

// awaits is the command of scripts that runs a program until what it prints matches a pattern,
// whatever its exit code is.
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	t, ok := ts.Value(testerKey).(testing.TB)
	if neg || len(args) < 2 || !ok {
		ts.Fatalf("usage: awaits PATTERN PROGRAM...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	waittest.Until(t, args[0], func() bool {
		err := ts.Exec(args[1], args[2:]...)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

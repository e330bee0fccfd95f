package sandboxtest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"

	"github.com/meshctl/meshctl/demo/pool"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

func TestAPIServerIsSharedAndReal(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	again := sandboxtest.APIServer(t)
	assert.Equal(t, config.Host, again.Host)

	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)
}

// asChild makes TestKilled start a server, say so, and wait to be killed.
const asChild = "MESHCTL_TEST_SANDBOX_CHILD"

// TestKilledTestBinaryLeavesNothing runs this test binary and kills it.
func TestKilledTestBinaryLeavesNothing(t *testing.T) {
	t.Parallel()
	if os.Getenv(asChild) != "" {
		fmt.Println("server", sandboxtest.APIServer(t).Host)
		select {}
	}
	temp := t.TempDir()
	command := exec.Command(os.Args[0], "-test.run=^TestKilledTestBinaryLeavesNothing$", "-test.v")
	command.Env = append(os.Environ(), asChild+"=1", "TMPDIR="+temp, pool.Variable+"=")
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() }) // unless it was killed
	started := false
	for lines := bufio.NewScanner(output); !started && lines.Scan(); {
		started = strings.HasPrefix(lines.Text(), "server https://127.0.0.1:")
	}
	require.True(t, started)
	folders, err := filepath.Glob(filepath.Join(temp, "sandboxtest-*", "pool", "*", "cluster-1", "etcd"))
	require.NoError(t, err)
	require.Len(t, folders, 1)

	require.NoError(t, command.Process.Kill())
	_ = command.Wait()
	waittest.NoError(t, "nothing is left", func() error {
		left, err := os.ReadDir(temp)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there is %s", left[0].Name())
		}
		return err
	})
}

package sandboxtest_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"

	"github.com/meshctl/meshctl/demo/sandboxtest"
)

var sandbox sandboxtest.Sandbox

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m)) }

func TestAPIServerIsSharedAndReal(t *testing.T) {
	t.Parallel()
	config := sandbox.APIServer(t)
	again := sandbox.APIServer(t)
	assert.Equal(t, config.Host, again.Host)

	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)
}

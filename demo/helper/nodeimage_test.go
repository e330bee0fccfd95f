package helper

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNodeImageHasTheSandboxsVersions: kind clusters without a registry run what the sandbox runs.
func TestNodeImageHasTheSandboxsVersions(t *testing.T) {
	t.Parallel()
	text := func(file string) string {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(content)
	}
	// version of a module, wherever the file has it, without a replacement.
	version := func(file, module string) string {
		found := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(text(file))
		require.NotNil(t, found, "%s requires no %s", file, module)
		return found[1]
	}
	const sandbox = "../sandbox/go.mod"
	for module, file := range map[string]string{
		"istio.io/istio":            "../nodeimage/istio/go.mod",
		"k8s.io/kubernetes":         "../nodeimage/kubernetes/go.mod",
		"go.etcd.io/etcd/server/v3": "../nodeimage/kubernetes/go.mod",
	} {
		assert.Equal(t, version(sandbox, module), version(file, module), module)
	}
	scripts := text("../nodeimage/lib.sh")
	assert.Contains(t, scripts, "NODE_VERSION="+version(sandbox, "k8s.io/kubernetes")+"\n")
	assert.Contains(t, scripts, "ISTIO_VERSION="+version(sandbox, "istio.io/api")[1:]+"\n")
}

package demo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
)

// TestReadmeOfDemo: what the README prints for the demo works as printed, in a shell that finds meshctl on its PATH, and leaves
// nothing. The demo is in the folder of a demo without --dir, below another cache folder with the same sandbox.
func TestReadmeOfDemo(t *testing.T) {
	shard.Only(t, shard.Demo)
	buildHelper(t)
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var block string
	for _, found := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(found[1], "meshctl demo up") {
			block = found[1]
		}
	}
	require.Contains(t, block, "meshctl dashboard", "it needs a terminal, so that it is left out below")
	block = regexp.MustCompile(`(?m)^meshctl dashboard.*\n`).ReplaceAllString(block, "")

	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	other := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(other, "meshctl"), 0o700))
	entries, err := os.ReadDir(filepath.Join(cache, "meshctl"))
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Name() != "demo" {
			require.NoError(t, os.Symlink(filepath.Join(cache, "meshctl", entry.Name()), filepath.Join(other, "meshctl", entry.Name())))
		}
	}
	bin := t.TempDir()
	require.NoError(t, os.Symlink(sandboxtest.Meshctl(t), filepath.Join(bin, "meshctl")))
	builds, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	require.NoError(t, err)

	shell := exec.CommandContext(t.Context(), "bash", "-e", "-x", "-c", block)
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+other, "GOCACHE="+strings.TrimSpace(string(builds)), "KUBECONFIG=")
	output, err := shell.CombinedOutput()
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(bin, "meshctl"), "demo", "down")
		down.Env = shell.Env
		_ = down.Run() // it is down unless something failed
	})
	require.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), "ALLOWED", "of why")
	assert.NoDirExists(t, filepath.Join(other, "meshctl", "demo"))
	requireNoProcess(t, other)
}

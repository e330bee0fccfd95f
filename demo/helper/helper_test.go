package helper

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArchivesAreFresh(t *testing.T) {
	t.Parallel()
	for _, m := range []module{sandbox(), osm(), dataplane()} {
		want, err := Pack(filepath.Join("..", m.name), m.name)
		require.NoError(t, err)
		// Not assert.Equal: the difference of two archives is not readable.
		if !bytes.Equal(want, m.sources) {
			t.Errorf("demo/helper/%s.txtar is stale: run `go run ./demo/helper/pack`", m.name)
		}
	}
}

func TestUnpackGivesTheModuleBack(t *testing.T) {
	t.Parallel()
	for _, m := range []module{sandbox(), osm(), dataplane()} {
		dir := t.TempDir()
		require.NoError(t, m.unpack(dir))
		again, err := Pack(dir, m.name)
		require.NoError(t, err)
		if !bytes.Equal(again, m.sources) {
			t.Errorf("packing the unpacked %s gives a different archive", m.name)
		}
		for _, name := range []string{"go.mod", "go.sum", "main.go"} {
			want, err := os.ReadFile(filepath.Join("..", m.name, name))
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			if !bytes.Equal(want, got) {
				t.Errorf("%s of %s differs", name, m.name)
			}
		}
	}
}

func TestPackLeavesTestsOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "a.go", "a.s", "a_test.go", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	data, err := Pack(dir, "x")
	require.NoError(t, err)
	var names []string
	for _, file := range txtar.Parse(data).Files {
		names = append(names, file.Name)
	}
	assert.Equal(t, []string{"a.go", "a.s", "go.mod"}, names)
}

func TestVersions(t *testing.T) {
	t.Parallel()
	v, err := ReadVersions()
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+$`, v.Kubernetes)
	assert.Regexp(t, `^1\.\d+\.\d+$`, v.Istio)
	flags, err := sandbox().linkerFlags()
	require.NoError(t, err)
	assert.Contains(t, flags, "gitVersion="+v.Kubernetes+" ")
	flags, err = osm().linkerFlags()
	require.NoError(t, err)
	assert.Regexp(t, `version\.Version=v1\.\d+\.\d+$`, flags)
	_, err = sandbox().version("example.com/none")
	require.Error(t, err)
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	m := sandbox()
	one := m.fingerprint("go1.26.1", "-s")
	assert.Equal(t, one, m.fingerprint("go1.26.1", "-s"))
	assert.NotEqual(t, one, m.fingerprint("go1.26.2", "-s"))
	assert.NotEqual(t, one, m.fingerprint("go1.26.1", "-s -w"))
	assert.NotEqual(t, one, osm().fingerprint("go1.26.1", "-s"))
}

func TestIsPackage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"k8s.io/api/core/v1":                true,
		"":                                  false,
		"# k8s.io/api/core/v1":              false,
		"./main.go:3:1: syntax error":       false,
		"go: downloading k8s.io/api v0.1.0": false,
	} {
		assert.Equal(t, want, isPackage(line), line)
	}
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "compiled 10 of 1000 packages in 4s", remaining(10, 1000, 4*time.Second))
	assert.Equal(t, "compiled 100 of 1000 packages in 40s, about 6 minutes are left", remaining(100, 1000, 40*time.Second))
	assert.Equal(t, "compiled 900 of 1000 packages in 6m0s, less than a minute is left", remaining(900, 1000, 6*time.Minute))
	assert.Equal(t, "compiled 1000 of 1000 packages in 7m0s, linking", remaining(1000, 1000, 7*time.Minute))
}

// Not parallel: it changes the environment.
func TestWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := Build(t.Context(), Progress{})
	require.ErrorContains(t, err, "no go command on the PATH")
	require.ErrorContains(t, err, "install Go 1.")
}

// Not parallel: it changes the environment.
func TestWithAnOldGo(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho 'go: errors parsing go.mod: invalid go version' >&2\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o700))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := Build(t.Context(), Progress{})
	require.ErrorIs(t, err, errOldGo)
	require.ErrorContains(t, err, "invalid go version")
}

func TestPruneKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	long := time.Now().Add(-keepFor - time.Hour)
	for _, name := range []string{"old", "used", "new"} {
		binary := filepath.Join(cache, name, "sandbox")
		require.NoError(t, os.Mkdir(filepath.Dir(binary), 0o700))
		require.NoError(t, os.WriteFile(binary, nil, 0o700))
		if name != "new" {
			require.NoError(t, os.Chtimes(binary, long, long))
		}
	}
	unfinished := filepath.Join(cache, "unfinished")
	require.NoError(t, os.Mkdir(unfinished, 0o700))
	require.NoError(t, os.Chtimes(unfinished, long, long))
	require.NoError(t, touch(filepath.Join(cache, "used", "sandbox")))

	require.NoError(t, prune(cache, "sandbox"))
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	assert.Equal(t, []string{"new", "used"}, left)
}

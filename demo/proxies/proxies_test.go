package proxies

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Not parallel: the environment.
func TestEnvoyOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "my-envoy")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho 'my-envoy  version: f7dd7fb8/1.2.3/Clean/RELEASE/BoringSSL'\n"), 0o700))
	t.Setenv(EnvoyVariable, path)
	found, err := Envoy(t.Context())
	require.NoError(t, err)
	assert.Equal(t, path, found)
	version, err := envoyVersion(t.Context(), found)
	require.NoError(t, err)
	assert.Equal(t, "1.2.3", version)

	t.Setenv(EnvoyVariable, filepath.Join(dir, "none"))
	_, err = Envoy(t.Context())
	require.ErrorContains(t, err, "MESHCTL_ENVOY")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho nothing\n"), 0o700))
	_, err = envoyVersion(t.Context(), path)
	require.ErrorContains(t, err, "printed no version")
}

// Not parallel: the environment.
func TestNoEnvoy(t *testing.T) {
	t.Setenv(EnvoyVariable, "")
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	_, err := Envoy(t.Context())
	require.ErrorIs(t, err, ErrNoEnvoy)
	require.ErrorContains(t, err, "install Python's pip")
}

func TestNoProcess(t *testing.T) {
	t.Parallel()
	p := &Plane{dir: t.TempDir()}
	_, err := p.Pods(t.Context())
	require.ErrorContains(t, err, "control.sock")
}

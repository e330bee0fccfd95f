package sandboxtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// ProxyClusters is like Clusters for clusters whose pods have real proxies (Plane).
// Their meshes share a root. A test that needs proxies is skipped, with the reason,
// where the machine does not permit them; in CI it fails.
func ProxyClusters(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	binaries(t)
	root, err := local.NewRoot("root of the tests")
	require.NoError(t, err)
	return clusters(t, n, local.Options{RealProxies: true, Root: root})
}

// Plane starts the proxies of clusters in which Istio is installed. They end with
// the test.
func Plane(t testing.TB, clusters []*local.Cluster) *proxies.Plane {
	t.Helper()
	programs := binaries(t)
	sandbox.mu.Lock()
	dir, err := os.MkdirTemp(folder(t), "proxies-")
	sandbox.mu.Unlock()
	require.NoError(t, err)
	var list []proxies.Cluster
	for _, c := range clusters {
		list = append(list, proxies.Cluster{Name: c.Name(), Index: c.Index(), Kubeconfig: c.Kubeconfig(), Istiod: c.Istiod()})
	}
	plane, err := proxies.Start(t.Context(), sandbox.guard, dir, programs, list)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
		defer cancel()
		if err := errors.Join(plane.Stop(ctx), sandbox.guard.Forget(plane.Process())); err != nil {
			t.Errorf("stopping the proxies: %v", err)
		}
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(dir, "*", "*.log"))
			t.Logf("the logs of %d processes of proxies stay in %s until the test binary ends", len(logs), dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return plane
}

// binaries returns the programs that run proxies.
func binaries(t testing.TB) proxies.Binaries {
	t.Helper()
	b, err := proxies.Prepare(t.Context(), helper.Progress{Report: func(message string) { t.Log("dataplane:", message) }})
	if errors.Is(err, proxies.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return b
}

package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/waittest"
)

// sandbox is what the tests of one binary share. Everything is built and started
// on first use.
var sandbox struct {
	mu sync.Mutex
	// guard kills the processes and removes dir when the test binary exits.
	guard *proc.Guard
	dir   string
	// server is the API server that all tests share, meshctl the path of the
	// binary.
	server  *local.Cluster
	meshctl string
}

// APIServer returns administrator access to an API server with only etcd: objects
// are stored, and no controller changes them. All tests of the binary share the
// server, so each must use its own namespaces.
func APIServer(t testing.TB) *rest.Config {
	t.Helper()
	sandbox.mu.Lock()
	defer sandbox.mu.Unlock()
	if sandbox.server == nil {
		server, err := start(build(t), filepath.Join(folder(t), "shared"), 1, local.Options{APIServerOnly: true})
		require.NoError(t, err)
		sandbox.server = server
	}
	config, err := sandbox.server.Config()
	require.NoError(t, err)
	return config
}

// APIServers returns n API servers that only this test uses, named cluster-1
// and so on. They start in parallel and stop with the test.
func APIServers(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	return clusters(t, n, local.Options{APIServerOnly: true})
}

// Clusters returns n whole clusters with nodes on which pods run, without Istio
// (Cluster.InstallIstio adds it), named cluster-1 and so on. They start in
// parallel and end with the test.
func Clusters(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	return clusters(t, n, local.Options{})
}

// OSM returns the path of the binary with Open Service Mesh, for
// Cluster.InstallOSM. It is built on first use.
func OSM(t testing.TB) string {
	t.Helper()
	binary, err := helper.BuildOSM(t.Context(), helper.Progress{Report: func(message string) { t.Log("osm:", message) }})
	require.NoError(t, err)
	return binary
}

// Meshctl returns the path of meshctl, built from this working tree.
func Meshctl(t testing.TB) string {
	t.Helper()
	sandbox.mu.Lock()
	defer sandbox.mu.Unlock()
	if sandbox.meshctl == "" {
		path := filepath.Join(folder(t), "meshctl")
		command := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/meshctl/meshctl")
		// As a release, which also runs in an empty container.
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "building meshctl: %s", out)
		sandbox.meshctl = path
	}
	return sandbox.meshctl
}

// Address returns host:port on which a process of the test can listen. It is
// reserved until the test ends.
func Address(t testing.TB) string {
	t.Helper()
	ports, err := proc.ReservePorts(t.TempDir(), 1)
	require.NoError(t, err)
	return "127.0.0.1:" + strconv.Itoa(ports[0])
}

// Listen listens on a TCP address of this machine until the test ends.
func Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // the test may have closed it
	return listener
}

// clusters starts n clusters. Options have what is common to all of them.
func clusters(t testing.TB, n int, options local.Options) []*local.Cluster {
	t.Helper()
	binary := build(t)
	sandbox.mu.Lock()
	dir, err := os.MkdirTemp(folder(t), "clusters-")
	sandbox.mu.Unlock()
	require.NoError(t, err)

	clusters := make([]*local.Cluster, n)
	t.Cleanup(func() { stopAll(t, dir, clusters) })
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			c, err := start(binary, filepath.Join(dir, fmt.Sprintf("cluster-%d", i+1)), i+1, options)
			clusters[i] = c
			return err
		})
	}
	require.NoError(t, group.Wait())
	return clusters
}

func stopAll(t testing.TB, dir string, clusters []*local.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit())
	defer cancel()
	var errs []error
	for _, c := range clusters {
		if c != nil {
			errs = append(errs, c.Stop(ctx))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Errorf("stopping clusters: %v", err)
	}
	// The logs may explain the failure.
	if t.Failed() {
		t.Logf("the clusters' logs stay in %s until the test binary ends", dir)
		return
	}
	_ = os.RemoveAll(dir)
}

// build returns the path of the binary with Kubernetes and Istio.
func build(t testing.TB) string {
	t.Helper()
	binary, err := helper.Build(t.Context(), helper.Progress{Report: func(message string) { t.Log("sandbox:", message) }})
	require.NoError(t, err)
	return binary
}

// folder returns the folder of this test binary. The caller holds the lock.
func folder(t testing.TB) string {
	t.Helper()
	if sandbox.guard != nil {
		return sandbox.dir
	}
	guard, err := proc.NewGuard()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "sandboxtest-")
	require.NoError(t, err)
	require.NoError(t, guard.Remove(dir))
	sandbox.guard, sandbox.dir = guard, dir
	return dir
}

// start does not use the context of the test: the shared server outlives the
// first test that uses it.
func start(binary, dir string, index int, options local.Options) (*local.Cluster, error) {
	options.Name, options.Dir, options.Helper, options.Index, options.Guard = filepath.Base(dir), dir, binary, index, sandbox.guard
	return local.Start(context.Background(), options)
}

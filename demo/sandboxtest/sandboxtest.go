package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Sandbox holds the clusters of one test binary. Make one in TestMain and close
// it after the tests:
//
//	var sandbox sandboxtest.Sandbox
//
//	func TestMain(m *testing.M) { os.Exit(sandbox.Main(m)) }
//
// The zero value is ready. Nothing runs until the first cluster is asked for,
// so tests that need none stay fast.
type Sandbox struct {
	mu     sync.Mutex
	dir    string
	binary string
	guard  *proc.Guard
	shared *local.Cluster
}

// Main runs the tests, ends what they left, and returns the exit code.
func (s *Sandbox) Main(m *testing.M) int {
	defer s.Close()
	return m.Run()
}

// Close ends every process and removes the folders. It may be called again.
func (s *Sandbox) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard != nil {
		// What was not stopped ends with the guard.
		s.guard.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
	s.dir, s.binary, s.guard, s.shared = "", "", nil, nil
}

// APIServer returns administrator access to an API server with nothing behind
// it but etcd: objects are stored, and no controller touches them. All tests of
// the binary share the one server; let each use namespaces of its own.
func (s *Sandbox) APIServer(t testing.TB) *rest.Config {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepare(t)
	if s.shared == nil {
		c, err := s.start(filepath.Join(s.dir, "shared"), 1, true)
		require.NoError(t, err)
		s.shared = c
	}
	config, err := s.shared.Config()
	require.NoError(t, err)
	return config
}

// APIServers returns n API servers that only this test uses, named cluster-1
// and so on. They start in parallel and end with the test.
func (s *Sandbox) APIServers(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	return s.clusters(t, n, true)
}

// Clusters returns n whole clusters with nodes on which pods run, without Istio
// (Cluster.InstallIstio adds it), named cluster-1 and so on. They start in
// parallel and end with the test.
func (s *Sandbox) Clusters(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	return s.clusters(t, n, false)
}

func (s *Sandbox) clusters(t testing.TB, n int, apiServerOnly bool) []*local.Cluster {
	t.Helper()
	s.mu.Lock()
	s.prepare(t)
	dir, err := os.MkdirTemp(s.dir, "clusters-")
	s.mu.Unlock()
	require.NoError(t, err)

	clusters := make([]*local.Cluster, n)
	t.Cleanup(func() { stopAll(t, dir, clusters) })
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			c, err := s.start(filepath.Join(dir, fmt.Sprintf("cluster-%d", i+1)), i+1, apiServerOnly)
			clusters[i] = c
			return err
		})
	}
	require.NoError(t, group.Wait())
	return clusters
}

// OSM returns the path of the binary that plays Open Service Mesh, for
// Cluster.InstallOSM. It is built on first use.
func (s *Sandbox) OSM(t testing.TB) string {
	t.Helper()
	binary, err := helper.BuildOSM(t.Context(), helper.Progress{Say: func(sentence string) { t.Log("osm:", sentence) }})
	require.NoError(t, err)
	return binary
}

// Address returns host:port on which a process that the test starts can listen;
// nobody else is given it before the test ends.
func Address(t testing.TB) string {
	t.Helper()
	ports, err := proc.ReservePorts(t.TempDir(), 1)
	require.NoError(t, err)
	return "127.0.0.1:" + strconv.Itoa(ports[0])
}

func stopAll(t testing.TB, dir string, clusters []*local.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
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
	// The logs are what explains a failure.
	if t.Failed() {
		t.Logf("the clusters' logs stay in %s until the test binary ends", dir)
		return
	}
	_ = os.RemoveAll(dir)
}

// prepare must be called with the lock held.
func (s *Sandbox) prepare(t testing.TB) {
	t.Helper()
	if s.guard != nil {
		return
	}
	binary, err := helper.Build(t.Context(), helper.Progress{Say: func(sentence string) { t.Log("sandbox:", sentence) }})
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "sandboxtest-")
	require.NoError(t, err)
	guard, err := proc.NewGuard()
	require.NoError(t, err)
	s.binary, s.dir, s.guard = binary, dir, guard
}

// start does not use the test's context: the shared server outlives the test
// that asked first.
func (s *Sandbox) start(dir string, index int, apiServerOnly bool) (*local.Cluster, error) {
	return local.Start(context.Background(), local.Options{
		Name: filepath.Base(dir), Dir: dir, Helper: s.binary, Index: index, Guard: s.guard, APIServerOnly: apiServerOnly,
	})
}

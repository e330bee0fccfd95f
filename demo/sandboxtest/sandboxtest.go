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
	"github.com/meshctl/meshctl/demo/pool"
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
	// pool has the API servers, unless the test binaries of a run share one.
	pool *pool.Pool
	// meshctl is the path of the binary.
	meshctl string
	// servers are those that tests share, by the name of their preparation.
	servers map[string]*shared
}

// APIServer returns administrator access to an API server with only etcd: objects
// are stored, and no controller changes them. All tests of the binary share the
// server, so each must use its own namespaces.
func APIServer(t testing.TB) *rest.Config {
	t.Helper()
	return PreparedAPIServer(t, Preparation{})
}

// PreparedAPIServer is an APIServer that the tests of the binary share which want the same preparation.
func PreparedAPIServer(t testing.TB, preparation Preparation) *rest.Config {
	t.Helper()
	sandbox.mu.Lock()
	s := sandbox.servers[preparation.Name]
	if s == nil {
		s = &shared{}
		if sandbox.servers == nil {
			sandbox.servers = map[string]*shared{}
		}
		sandbox.servers[preparation.Name] = s
	}
	sandbox.mu.Unlock()
	s.once.Do(func() {
		s.cluster, s.loan, s.failed = lend(t, filepath.Base(os.Args[0]), 1, preparation)
	})
	require.NoError(t, s.failed)
	config, err := s.cluster.Config()
	require.NoError(t, err)
	return config
}

// shared is an API server that tests share. Its loan ends with the binary, or when nothing refers to it.
type shared struct {
	once    sync.Once
	cluster *local.Cluster
	loan    pool.Loan
	failed  error
}

// APIServers returns n API servers that only this test uses, named cluster-1
// and so on. They are lent: what the test stores there goes when it ends.
func APIServers(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	return PreparedAPIServers(t, make([]Preparation, n)...)
}

// Preparation is what an API server has stored before a test gets it, if that takes long and is the same for many tests. The zero
// Preparation is nothing.
type Preparation struct {
	// Name is the same in all test binaries for the same Store.
	Name string
	// Store stores it. It is called where no earlier test of the run has asked for the same.
	Store func(context.Context, *rest.Config) error
}

// PreparedAPIServers returns API servers like APIServers, each with its preparation.
func PreparedAPIServers(t testing.TB, all ...Preparation) []*local.Cluster {
	t.Helper()
	clusters := make([]*local.Cluster, len(all))
	var group errgroup.Group
	for i, preparation := range all {
		group.Go(func() error {
			cluster, loan, err := lend(t, t.Name(), i+1, preparation)
			if err != nil {
				return err
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the logs of cluster-%d stay in %s until the tests end", i+1, filepath.Join(loan.Dir, "logs"))
				}
				loan.Return()
			})
			clusters[i] = cluster
			return nil
		})
	}
	require.NoError(t, group.Wait())
	return clusters
}

// lend lends an API server of the run's pool, or of this binary's own.
func lend(t testing.TB, holder string, index int, preparation Preparation) (*local.Cluster, pool.Loan, error) {
	t.Helper()
	guard, dir, err := folder()
	if err != nil {
		return nil, pool.Loan{}, err
	}
	// A server that all tests share outlives the first of them.
	ctx := context.WithoutCancel(t.Context())
	wish := pool.Wish{Holder: holder, Index: index, Prepared: preparation.Name}
	var loan pool.Loan
	if address := os.Getenv(pool.Variable); address != "" {
		loan, err = pool.Ask(ctx, address, wish)
	} else if helper, buildErr := build(t); buildErr != nil {
		err = buildErr
	} else {
		loan, err = ownPool(guard, dir, helper).Lend(ctx, wish)
	}
	if err != nil {
		return nil, loan, err
	}
	cluster, err := local.Open(loan.Dir, guard)
	if err == nil && preparation.Store != nil && !loan.Prepared {
		err = prepare(ctx, cluster, loan, preparation)
	}
	if err != nil {
		loan.Return()
	}
	return cluster, loan, err
}

func prepare(ctx context.Context, cluster *local.Cluster, loan pool.Loan, preparation Preparation) error {
	config, err := cluster.Config()
	if err != nil {
		return err
	}
	if err := preparation.Store(ctx, config); err != nil {
		return fmt.Errorf("preparing an API server with %s: %w", preparation.Name, err)
	}
	return loan.Keep(ctx)
}

// ownPool is the pool of this binary.
func ownPool(guard *proc.Guard, dir, helper string) *pool.Pool {
	sandbox.mu.Lock()
	defer sandbox.mu.Unlock()
	if sandbox.pool == nil {
		say := func(message string) { _, _ = fmt.Fprintln(os.Stderr, "API servers of tests:", message) }
		sandbox.pool = pool.New(pool.Options{Dir: filepath.Join(dir, "pool"), Helper: helper, Guard: guard, Report: say, Note: say})
	}
	return sandbox.pool
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
	_, dir, err := folder()
	require.NoError(t, err)
	sandbox.mu.Lock()
	defer sandbox.mu.Unlock()
	if sandbox.meshctl == "" {
		path := filepath.Join(dir, "meshctl")
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
	binary, err := build(t)
	require.NoError(t, err)
	guard, all, err := folder()
	require.NoError(t, err)
	dir, err := os.MkdirTemp(all, "clusters-")
	require.NoError(t, err)
	options.Helper, options.Guard = binary, guard

	clusters := make([]*local.Cluster, n)
	t.Cleanup(func() { stopAll(t, dir, clusters) })
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			own := options
			own.Index, own.Name = i+1, fmt.Sprintf("cluster-%d", i+1)
			own.Dir = filepath.Join(dir, own.Name)
			c, err := local.Start(t.Context(), own)
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
func build(t testing.TB) (string, error) {
	t.Helper()
	return helper.Build(t.Context(), helper.Progress{Report: func(message string) { t.Log("sandbox:", message) }})
}

// folder returns the folder of this test binary, and what removes it when the binary ends.
func folder() (*proc.Guard, string, error) {
	sandbox.mu.Lock()
	defer sandbox.mu.Unlock()
	if sandbox.guard != nil {
		return sandbox.guard, sandbox.dir, nil
	}
	guard, err := proc.NewGuard()
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "sandboxtest-")
	if err == nil {
		err = guard.Remove(dir)
	}
	if err != nil {
		guard.Close()
		return nil, "", fmt.Errorf("folder of the tests: %w", err)
	}
	sandbox.guard, sandbox.dir = guard, dir
	return guard, dir, nil
}

package registration_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// killer is what stands between a process and all API servers: the process ends right
// before its last write, and none of its later requests is sent.
type killer struct {
	mu sync.Mutex
	// left is how many writes are let through, or never.
	left int
	// writes are those that were let through; fatal is the one at which the process ended, empty if it
	// has not.
	writes []string
	fatal  string
}

// never is killed at no write.
const never = -1

var errKilled = errors.New("killed")

func (k *killer) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &killed{base, k} })
	return config
}

// passes reports whether a request is still sent.
func (k *killer) passes(r *http.Request) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	// Reviews are questions that happen to be asked by POST.
	write := r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/selfsubject")
	switch {
	case k.fatal != "":
		return false
	case write && k.left == 0:
		k.fatal = r.Method + " " + r.URL.Path
		return false
	case write:
		k.writes = append(k.writes, r.Method+" "+r.URL.Path)
		k.left = max(k.left-1, never)
	}
	return true
}

type killed struct {
	base   http.RoundTripper
	killer *killer
}

func (k *killed) RoundTrip(r *http.Request) (*http.Response, error) {
	if !k.killer.passes(r) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errKilled
	}
	return k.base.RoundTrip(r)
}

// all writes are tried, instead of some.
const all = 0

// atWrites calls run with a killer for as many of its writes, which are chosen by chance, or for all. It
// returns these writes.
func atWrites(t *testing.T, some int, run func(k *killer) error) []string {
	t.Helper()
	k := &killer{left: never}
	require.NoError(t, run(k))
	require.Less(t, len(k.writes), 200)
	positions := rand.New(rand.NewPCG(waittest.Seed(t), 0)).Perm(len(k.writes))
	if some != all {
		positions = positions[:min(some, len(positions))]
	}
	slices.Sort(positions)
	var writes []string
	for _, n := range positions {
		k := &killer{left: n}
		require.NoError(t, run(k))
		require.NotEmpty(t, k.fatal, "it was not killed before write %d", n)
		writes = append(writes, k.fatal)
	}
	t.Logf("killed before %d of %d writes:\n%s", len(writes), len(k.writes), strings.Join(writes, "\n"))
	return writes
}

// keptTypes are those that a registration leaves on its cluster.
var keptTypes = []string{
	"CustomResourceDefinition /certificaterequests.certificates.mesh.gloo.solo.io",
	"CustomResourceDefinition /issuedcertificates.certificates.mesh.gloo.solo.io",
	"CustomResourceDefinition /podbouncedirectives.certificates.mesh.gloo.solo.io",
}

// withTypes adds them to names.
func withTypes(names []string) []string {
	names = append(names, keptTypes...)
	slices.Sort(names)
	return slices.Compact(names)
}

// names are the objects of an inventory, without their versions.
func names(all map[string]string) []string { return without(all, nil) }

// TestDeregisterDiesAtSomeWrites kills a deregistration right before some of its writes: the
// same command, run again, leaves nothing.
func TestDeregisterDiesAtSomeWrites(t *testing.T) {
	t.Parallel()
	deregisterDies(t, 3)
}

func TestDeregisterDiesAtAnyWrite(t *testing.T) {
	shard.Only(t, shard.Soak)
	t.Parallel()
	assert.Greater(t, len(deregisterDies(t, all)), 10)
}

func deregisterDies(t *testing.T, some int) []string {
	t.Helper()
	management, remote := translatedPair(t)
	sandboxtest.MakeNamespace(t, management, "gloo-mesh")
	before := [][]string{names(inventory(t, management)), withTypes(names(inventory(t, remote)))}
	// Which management plane it is outlives each registration.
	before[0] = append(before[0], "ConfigMap gloo-mesh/"+cluster.PlaneName)
	slices.Sort(before[0])
	translated := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2"}
	discovered := map[string]string{snapshot.DiscoveryOwnerLabel: "gloo-mesh", snapshot.DiscoveryClusterLabel: "cluster-2"}
	writes := atWrites(t, some, func(k *killer) error {
		// Not the default namespace: only the registration knows it.
		_, err := registration.Register(t.Context(), registration.Options{
			Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, RemoteNamespace: "mesh-agent", Agent: anAgent("meshctl")})
		require.NoError(t, err)
		put(t, remote, snapshot.VirtualService, "default", "ours", translated, nil)
		put(t, remote, snapshot.ServiceEntry, "default", "ours", translated, nil)
		put(t, management, snapshot.Workload, "gloo-mesh", "reviews", discovered, nil)
		put(t, management, snapshot.Mesh, "gloo-mesh", "istiod", discovered, nil)

		_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{
			Name: "cluster-2", RemoteConfig: k.wrap(remote), MgmtConfig: k.wrap(management)})
		finishNamespaces(t, remote)
		if k.fatal == "" {
			return err
		}
		require.ErrorIs(t, err, errKilled, k.fatal)
		again, err := registration.Deregister(t.Context(), registration.DeregisterOptions{
			Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
		finishNamespaces(t, remote)
		require.NoError(t, err, "killed before %s", k.fatal)
		assert.Empty(t, again.Leftovers, "killed before %s", k.fatal)
		after := [][]string{names(inventory(t, management)), names(inventory(t, remote))}
		require.Equal(t, before, after, "killed before %s", k.fatal)
		return nil
	})
	after := [][]string{names(inventory(t, management)), names(inventory(t, remote))}
	require.Equal(t, before, after)
	return writes
}

// TestRegisterDiesAtSomeWrites kills a registration right before some of its writes: the
// same command, run again, ends as if it had not been killed.
func TestRegisterDiesAtSomeWrites(t *testing.T) {
	t.Parallel()
	registerDies(t, 3)
}

func TestRegisterDiesAtAnyWrite(t *testing.T) {
	shard.Only(t, shard.Soak)
	t.Parallel()
	assert.Greater(t, len(registerDies(t, all)), 5)
}

func registerDies(t *testing.T, some int) []string {
	t.Helper()
	management, remote := emptyPair(t)
	remoteBefore := withTypes(names(inventory(t, remote)))
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, RemoteNamespace: "mesh-agent", Agent: anAgent("meshctl")}
	deregister := func() {
		t.Helper()
		_, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
		require.NoError(t, err)
		finishNamespaces(t, remote)
		require.Equal(t, remoteBefore, names(inventory(t, remote)))
	}
	register := func(k *killer) error {
		dying := options
		dying.RemoteConfig, dying.MgmtConfig = k.wrap(remote), k.wrap(management)
		_, err := registration.Register(t.Context(), dying)
		return err
	}
	// From empty servers on, where the types are written, too; each run ends where the one before did not
	// come to.
	var first []string
	for n := 0; ; n++ {
		require.Less(t, n, 100, "this does not end: %v", first)
		k := &killer{left: n}
		if some != all {
			k.left = 9 * n
		}
		err := register(k)
		if k.fatal == "" {
			require.NoError(t, err)
			break
		}
		first = append(first, k.fatal)
	}
	t.Logf("killed before %d writes of the first registration:\n%s", len(first), strings.Join(first, "\n"))
	assert.Contains(t, strings.Join(first, "\n"), "customresourcedefinitions", "the types, too")
	registered := [][]string{names(inventory(t, management)), names(inventory(t, remote))}
	deregister()
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, [][]string{names(inventory(t, management)), names(inventory(t, remote))}, registered, "as if it had not been killed")

	return atWrites(t, some, func(k *killer) error {
		deregister()
		err := register(k)
		if k.fatal == "" {
			return err
		}
		require.ErrorIs(t, err, errKilled, k.fatal)
		report, err := registration.Register(t.Context(), options)
		require.NoError(t, err, "killed before %s", k.fatal)
		assert.False(t, report.Unchanged(), "killed before %s", k.fatal)
		after := [][]string{names(inventory(t, management)), names(inventory(t, remote))}
		require.Equal(t, registered, after, "killed before %s", k.fatal)
		keeping := options
		keeping.KeepCredential = true
		report, err = registration.Register(t.Context(), keeping)
		require.NoError(t, err)
		assert.True(t, report.Unchanged(), "killed before %s: %+v", k.fatal, report.Changes)
		return nil
	})
}

package registration_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// killer is what stands between a process and all API servers: the process ends right
// before its last write, and none of its later requests is sent.
type killer struct {
	mu sync.Mutex
	// left is how many writes are let through.
	left int
	// fatal is the write at which the process ended; empty if it has not.
	fatal string
}

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
		k.left--
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

// atEachWrite calls run with a killer for each of its writes, until it is not killed any
// more. It returns the writes at which it was.
func atEachWrite(t *testing.T, run func(k *killer) error) []string {
	t.Helper()
	var writes []string
	for n := 0; ; n++ {
		require.Less(t, n, 100, "this does not end: %v", writes)
		k := &killer{left: n}
		err := run(k)
		if k.fatal == "" {
			require.NoError(t, err)
			return writes
		}
		writes = append(writes, k.fatal)
	}
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
func names(all map[string]string) []string { return slices.Sorted(maps.Keys(all)) }

// TestDeregisterDiesAtAnyWrite kills a deregistration right before each of its writes: the
// same command, run again, leaves nothing.
func TestDeregisterDiesAtAnyWrite(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	installTranslatedTypes(t, remote)
	_, err := registration.InstallCRDs(t.Context(), management)
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, management, "gloo-mesh")
	before := [][]string{names(inventory(t, management)), withTypes(names(inventory(t, remote)))}
	// Which management plane it is outlives each registration.
	before[0] = append(before[0], "ConfigMap gloo-mesh/"+cluster.PlaneName)
	slices.Sort(before[0])
	translated := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2"}
	discovered := map[string]string{snapshot.DiscoveryOwnerLabel: "gloo-mesh", snapshot.DiscoveryClusterLabel: "cluster-2"}
	writes := atEachWrite(t, func(k *killer) error {
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
	t.Logf("killed before %d writes:\n%s", len(writes), strings.Join(writes, "\n"))
	assert.Greater(t, len(writes), 10)
}

// TestRegisterDiesAtAnyWrite kills a registration right before each of its writes: the
// same command, run again, ends as if it had not been killed.
func TestRegisterDiesAtAnyWrite(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
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
	// Each run ends where the one before did not come to, from an empty server on.
	first := atEachWrite(t, register)
	registered := [][]string{names(inventory(t, management)), names(inventory(t, remote))}
	deregister()
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, [][]string{names(inventory(t, management)), names(inventory(t, remote))}, registered, "as if it had not been killed")

	writes := atEachWrite(t, func(k *killer) error {
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
		report, err = registration.Register(t.Context(), options)
		require.NoError(t, err)
		assert.True(t, report.Unchanged(), "killed before %s: %+v", k.fatal, report.Changes)
		return nil
	})
	t.Logf("killed before %d writes:\n%s", len(first), strings.Join(first, "\n"))
	assert.Contains(t, strings.Join(first, "\n"), "customresourcedefinitions", "the types, too")
	assert.Greater(t, len(writes), 5)
}

package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// claimWorld is a VirtualMesh with a trust domain for each of two meshes, and a root.
type claimWorld struct {
	*testing.T
	in *snapshot.Input
}

func newClaimWorld(t *testing.T, pins ...snapshot.TrustPin) *claimWorld {
	t.Helper()
	w := &claimWorld{T: t, in: enginetest.World(enginetest.Size{Services: 1, Clusters: 2, FederateEvery: 1})}
	vm := w.in.Management.VirtualMeshes[0]
	vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{TrustDomainPerMesh: true}}
	text := someRoots()[0]
	root := &snapshot.Root{Fingerprint: fingerprintOf(text), PEM: text, Secret: snapshot.Ref{Kind: snapshot.Secret, Namespace: "gloo-mesh", Name: "root"}}
	w.in.Roots = []*snapshot.VirtualMeshRoots{{
		VirtualMesh: snapshot.RefOf(snapshot.VirtualMesh, vm), Roots: []*snapshot.Root{root}, Signs: root.Fingerprint, Pins: pins,
	}}
	return w
}

// claims has the control plane of a cluster say that it has a trust domain, and aliases of it.
func (w *claimWorld) claims(cluster int, domain string, aliases ...string) {
	w.Helper()
	for i, c := range w.in.Clusters[cluster].ConfigMaps {
		if c.Name == "istio" {
			changed := c.DeepCopy()
			changed.Data = map[string]string{"mesh": "{trustDomain: \"" + domain + "\", trustDomainAliases: [" + strings.Join(aliases, ", ") + "]}"}
			w.in.Clusters[cluster].ConfigMaps[i] = changed
			return
		}
	}
	w.in.Clusters[cluster].ConfigMaps = append([]*corev1.ConfigMap(nil), w.in.Clusters[cluster].ConfigMaps...)
	w.Fatalf("cluster %d has no settings", cluster)
}

// granted are the trust domains that the CA of each mesh may sign for; nil for no CA.
func (w *claimWorld) granted() (granted [2][]string, trust *snapshot.TrustPlan, issues []string) {
	w.Helper()
	state := engine.Translate(w.in)
	trust = state.Plan.VirtualMeshes[0].Trust
	require.Len(w, trust.Members, 2)
	for i, m := range trust.Members {
		if m.Grant != nil {
			granted[i] = m.Grant.TrustDomains
			for _, host := range m.Grant.Hosts {
				domain, _, _ := strings.Cut(strings.TrimPrefix(host, "spiffe://"), "/")
				assert.Contains(w, m.Grant.TrustDomains, domain)
			}
		}
	}
	for _, issue := range state.Plan.VirtualMeshes[0].Issues {
		if issue.Code == snapshot.TrustDomainClaimed || issue.Code == snapshot.IdentityShared {
			issues = append(issues, issue.Message)
		}
	}
	return granted, trust, issues
}

const (
	east, west = "cluster-01.example", "cluster-02.example"
	eastMesh   = "istiod-istio-system-cluster-01"
	westMesh   = "istiod-istio-system-cluster-02"
)

// TestATrustDomainIsPinned before anything is signed for it.
func TestATrustDomainIsPinned(t *testing.T) {
	t.Parallel()
	w := newClaimWorld(t)
	granted, trust, issues := w.granted()
	assert.Equal(t, [2][]string{}, granted, "it is not recorded yet")
	pins := []snapshot.TrustPin{{Mesh: eastMesh, Domains: []string{east}}, {Mesh: westMesh, Domains: []string{west}}}
	assert.Equal(t, pins, trust.Pins)
	assert.Empty(t, issues)
	for i, m := range trust.Members {
		assert.Equal(t, []string{[]string{east, west}[i]}, m.Spec.Trust.TrustDomains, "it is asked for meanwhile")
	}

	granted, trust, issues = newClaimWorld(t, pins...).granted()
	assert.Equal(t, [2][]string{{east}, {west}}, granted)
	assert.Equal(t, pins, trust.Pins)
	assert.Empty(t, issues)
}

// TestAClaimOfAnothersTrustDomain gets nothing, whoever claims it how.
func TestAClaimOfAnothersTrustDomain(t *testing.T) {
	t.Parallel()
	both := []snapshot.TrustPin{{Mesh: eastMesh, Domains: []string{east}}, {Mesh: westMesh, Domains: []string{west}}}
	for name, c := range map[string]struct {
		pins    []snapshot.TrustPin
		domain  string
		aliases []string
		granted [2][]string
		pinned  []string
		says    string
	}{
		"that of another member":             {both, east, nil, [2][]string{{east}, {west}}, []string{west}, "says that its trust domain is " + east + ", which is that of " + eastMesh},
		"as an alias":                        {both, west, []string{east}, [2][]string{{east}, {west}}, []string{west}, "which is that of " + eastMesh},
		"a new one":                          {both, "new.example", nil, [2][]string{{east}, {west}}, []string{west}, "which is not recorded as its own"},
		"none":                               {both, "", nil, [2][]string{{east}, {west}}, []string{west}, "says that its trust domain is cluster.local"},
		"before it has any":                  {both[:1], east, nil, [2][]string{{east}, nil}, nil, "in common with"},
		"as an alias, before it has any":     {both[:1], west, []string{east, "old.example"}, [2][]string{{east}, nil}, []string{west, "old.example"}, "in common with"},
		"none, before it has any":            {both[:1], "", nil, [2][]string{{east}, nil}, nil, "is not known, so it gets no certificate"},
		"that of a mesh that is gone":        {[]snapshot.TrustPin{both[0], {Mesh: "gone", Domains: []string{west}}}, west, nil, [2][]string{{east}, nil}, nil, "which is that of gone, a former member"},
		"with a pin of nothing":              {append([]snapshot.TrustPin{{Mesh: westMesh}}, both[0]), east, nil, [2][]string{{east}, nil}, nil, "in common with"},
		"both at once, before they have any": {nil, east, nil, [2][]string{}, nil, "in common with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newClaimWorld(t, c.pins...)
			w.claims(1, c.domain, c.aliases...)
			granted, trust, issues := w.granted()
			assert.Equal(t, c.granted, granted)
			var pinned []string
			if pin := snapshot.PinOf(trust.Pins, westMesh); pin != nil {
				pinned = pin.Domains
			}
			assert.Equal(t, c.pinned, pinned)
			assert.Contains(t, strings.Join(issues, "\n"), c.says)
		})
	}
}

// TestPoliciesGoByThePin: who may call is not for the settings of a member to change.
func TestPoliciesGoByThePin(t *testing.T) {
	t.Parallel()
	both := []snapshot.TrustPin{{Mesh: eastMesh, Domains: []string{east}}, {Mesh: westMesh, Domains: []string{west}}}
	w := newClaimWorld(t, both...)
	vm := w.in.Management.VirtualMeshes[0]
	var trust *networkingv1.TrustStatus
	for s := range engine.Translate(w.in).Output.Statuses.All() {
		if status, ok := s.Value.(*networkingv1.VirtualMeshStatus); ok {
			trust = status.Trust
		}
	}
	require.Len(t, trust.TrustDomains, 2)
	w.claims(1, east)
	check := func() {
		t.Helper()
		state := engine.Translate(w.in)
		for _, mesh := range state.Plan.Meshes {
			assert.Equal(t, map[string]string{eastMesh: east, westMesh: west}[mesh.Ref.Name], mesh.TrustDomain)
		}
		assert.True(t, slices.ContainsFunc(state.Plan.VirtualMeshes[0].Issues, func(i snapshot.Issue) bool { return i.Code == snapshot.TrustDomainClaimed }))
	}
	check()
	// Who begins to serve, and who only asks, does not know the record.
	w.in.Roots = nil
	vm.Status.Trust = trust
	check()
	assert.Nil(t, engine.Translate(w.in).Plan.VirtualMeshes[0].Trust.Pins, "a status is nothing to record")
}

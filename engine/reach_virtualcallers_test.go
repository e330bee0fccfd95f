package engine_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestPoliciesDoNotShiftToClusters: a VirtualDestination of a registered cluster is no target, neither of a policy of the management
// cluster that names one of its namespace, nor of one beside it.
func TestPoliciesDoNotShiftToClusters(t *testing.T) {
	t.Parallel()
	shift := networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(ownService()), Policy: &networkingv1.Policy{TrafficShift: &networkingv1.MultiDestination{
		Destinations: []networkingv1.WeightedDestination{{VirtualDestination: &networkingv1.VirtualDestinationRef{Name: "v", Namespace: reachNamespace, Subset: map[string]string{"version": "v1"}}}},
	}}}
	in := withLocal(t, reachWorld(), localVirtual("v", "v.example"), localTraffic("beside", shift))
	hub := localTraffic("of-the-hub", shift)
	hub.Namespace = snapshot.DefaultNamespace
	in, err := in.With("", hub)
	require.NoError(t, err)
	state := engine.Translate(in)
	for _, p := range state.Plan.Policies {
		code := snapshot.DestinationNotFound
		if p.Ref.Cluster != "" {
			code = snapshot.OutsideNamespace
		}
		assert.Contains(t, issuesOf(p), code, p.Ref)
		for _, v := range p.Verdicts {
			assert.False(t, v.Accepted, p.Ref)
		}
	}
	assert.Empty(t, virtualPlan(t, state, reachCluster, reachNamespace, "v").Subsets)
	assert.Equal(t, []string{"v.example"}, hostObjects(t, state.Output, reachNamespace))
}

// TestLimitsOfProxiesHold: proxies that the management cluster limits get no host that a tenant adds, and those that the tenant limits do.
func TestLimitsOfProxiesHold(t *testing.T) {
	t.Parallel()
	in := withLocal(t, externalWorld(), localDependency("own", nil, servicesNamed(ownService())))
	hub := localDependency("limits", nil, servicesNamed(ownService()))
	hub.Namespace = snapshot.DefaultNamespace
	limited, err := in.With("", hub)
	require.NoError(t, err)
	with := func(in *snapshot.Input) string {
		return fmt.Sprint(inside(t, engine.Translate(withLocal(t, in, localVirtual("v", "v.example"))).Output))
	}
	assert.Contains(t, with(in), "v.example")
	assert.NotContains(t, with(limited), "v.example")
	assert.Contains(t, with(limited), "everywhere.example")
}

// TestWhyAsksWhoCalls: the host leads to the service from its own namespace, and nowhere from others.
func TestWhyAsksWhoCalls(t *testing.T) {
	t.Parallel()
	in := twoTenants()
	in.Management.ServiceDependencies = nil
	state := engine.Translate(withLocal(t, in, localVirtual("v", "v.example"), localVirtual("w", "same.example"), inOther(localVirtual("w", "same.example"))))
	x := explain.New(state)
	ask := func(namespace, cluster, host string) *explain.Why {
		at := slices.IndexFunc(state.Plan.Workloads, func(w *discoveryv1.Workload) bool {
			c := w.Spec.Kubernetes.Controller
			return c.Namespace == namespace && c.ClusterName == cluster
		})
		require.GreaterOrEqual(t, at, 0)
		from := snapshot.RefOf(snapshot.Workload, state.Plan.Workloads[at])
		to := x.FindCalled(from, host)
		require.Len(t, to, 1, "%s from %s", host, namespace)
		return x.Why(from, to[0], explain.Request{})
	}
	for _, c := range []struct {
		namespace, cluster, host string
		verdict                  explain.Verdict
		to                       string
	}{
		{reachNamespace, reachCluster, "v.example", explain.Allowed, enginetest.Service(1)},
		{"team-001", reachCluster, "v.example", explain.Unreachable, ""},
		{reachNamespace, "cluster-02", "v.example", explain.Unreachable, ""},
		{reachNamespace, reachCluster, "same.example", explain.Allowed, enginetest.Service(1)},
		{"team-001", reachCluster, "same.example", explain.Allowed, enginetest.Service(101)},
	} {
		why := ask(c.namespace, c.cluster, c.host)
		assert.Equal(t, c.verdict, why.Verdict, "%s from %s.%s: %s", c.host, c.namespace, c.cluster, why.Reason)
		if c.to != "" {
			require.Len(t, why.Outcomes, 1)
			assert.Contains(t, why.Outcomes[0].Destination.Name, c.to)
		} else {
			assert.Contains(t, why.Reason, "do not know host "+c.host)
		}
	}
}

// TestNumbersAreOfWhoKnowsTheHost: what a proxy counts for a host is for the VirtualDestination that its namespace knows by it.
func TestNumbersAreOfWhoKnowsTheHost(t *testing.T) {
	t.Parallel()
	state := engine.Translate(withLocal(t, twoTenants(), localVirtual("v", "v.example"), localVirtual("w", "same.example"), localVirtual("x", "everywhere.example"),
		inOther(localVirtual("w", "same.example"))))
	names := traffic.NewNames(state.Plan)
	for _, c := range []struct {
		namespace, cluster, host string
		to                       snapshot.Ref
	}{
		{reachNamespace, reachCluster, "v.example", snapshot.Ref{Cluster: reachCluster, Namespace: reachNamespace, Name: "v"}},
		{"team-001", reachCluster, "v.example", snapshot.Ref{}},
		{reachNamespace, "cluster-02", "v.example", snapshot.Ref{}},
		{reachNamespace, reachCluster, "same.example", snapshot.Ref{Cluster: reachCluster, Namespace: reachNamespace, Name: "w"}},
		{"team-001", reachCluster, "same.example", snapshot.Ref{Cluster: reachCluster, Namespace: "team-001", Name: "w"}},
		{reachNamespace, reachCluster, "everywhere.example", snapshot.Ref{Namespace: snapshot.DefaultNamespace, Name: "everywhere"}},
		{"team-001", "cluster-02", "everywhere.example", snapshot.Ref{Namespace: snapshot.DefaultNamespace, Name: "everywhere"}},
	} {
		if c.to != (snapshot.Ref{}) {
			c.to.Kind = snapshot.VirtualDestination
		}
		at := slices.IndexFunc(state.Plan.Workloads, func(w *discoveryv1.Workload) bool {
			k := w.Spec.Kubernetes.Controller
			return k.Namespace == c.namespace && k.ClusterName == c.cluster
		})
		require.GreaterOrEqual(t, at, 0)
		assert.Equal(t, c.to, names.Key(state.Plan.Workloads[at], traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: c.host, Port: 8080}}).To, "%s from %s.%s", c.host, c.namespace, c.cluster)
	}
}

// TestVirtualDestinationsOfClustersAreRemembered: what a Translator remembers of them changes nothing.
func TestVirtualDestinationsOfClustersAreRemembered(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	in, translator := twoTenants(), engine.New(engine.Options{})
	for range 20 {
		name := fmt.Sprintf("v-%d", random.Intn(3))
		v := localVirtual(name, fmt.Sprintf("h-%d.example", random.Intn(3)), at(int64(random.Intn(4))))
		v.Status.Address = []string{"", "241.0.0.1", "241.0.0.2"}[random.Intn(3)]
		cluster := reachCluster
		switch random.Intn(3) {
		case 0:
			inOther(v)
		case 1:
			cluster, v.Namespace = "", snapshot.DefaultNamespace
		}
		if random.Intn(2) == 0 {
			v.Spec.Static.Destinations = append(v.Spec.Static.Destinations, listed(commonv1.ClusterObjectRef{Name: fmt.Sprint(random.Intn(9)), Namespace: "others", ClusterName: "cluster-02"}).Destinations...)
		}
		if random.Intn(4) == 0 {
			in = in.Without(snapshot.Ref{Kind: snapshot.VirtualDestination, Cluster: cluster, Namespace: v.Namespace, Name: name})
		} else {
			var err error
			in, err = in.With(cluster, v)
			require.NoError(t, err)
		}
		requireSameState(t, engine.Translate(in), translator.Translate(in), "what is remembered")
	}
}

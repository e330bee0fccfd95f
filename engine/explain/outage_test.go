package explain_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// losses are those of names that each mean one thing.
func losses(t *testing.T, x *explain.Index, names ...string) (out []explain.Loss) {
	t.Helper()
	for _, name := range names {
		found := explain.FindLosses(x, name)
		require.Len(t, found, 1, name)
		out = append(out, found[0])
	}
	return out
}

// TestSimulate: who answers after an outage, and which share nobody does.
func TestSimulate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		lose []string
		// want are service, requests, and the unanswered share for each entry.
		want     []string
		off      []string
		gateways int
	}{
		"a subset loses its share of a shift": {
			"bookinfo", []string{"subset/reviews.bookinfo.cluster-2:version-v3"},
			[]string{"reviews-bookinfo-cluster-1 from namespace bookinfo 10", "reviews-bookinfo-cluster-2 any 0", "reviews-bookinfo-cluster-2 from namespace bookinfo 0"},
			[]string{"reviews-bookinfo-cluster-2"}, 0,
		},
		"the other cluster has no backup": {
			"bookinfo", []string{"cluster-2"},
			[]string{"ratings-bookinfo-cluster-2 any 100", "reviews-bookinfo-cluster-2 any 100", "reviews-bookinfo-cluster-2 from namespace bookinfo 100", "reviews-bookinfo-cluster-1 from namespace bookinfo 10"},
			nil, 1,
		},
		"nobody is left to ask": {"bookinfo", []string{"cluster-2", "cluster-1"}, nil, nil, 2},
		"a gateway loses what is behind it": {
			"bookinfo", []string{"workload/istio-eastwestgateway.istio-system.cluster-2"},
			[]string{"ratings-bookinfo-cluster-2 any 100", "reviews-bookinfo-cluster-2 any 100", "reviews-bookinfo-cluster-2 from namespace bookinfo 100", "reviews-bookinfo-cluster-1 from namespace bookinfo 10"},
			nil, 1,
		},
		"a VirtualDestination fails over": {
			"failover-localized", []string{"service/cart.shop.cluster-1"},
			[]string{"cart-shop-cluster-1 any 100", "cart any 0", "cart-plain any 0"}, nil, 0,
		},
		"one without a backup does not": {
			"failover-shift", []string{"cluster-2"}, []string{"tls any 100"}, []string{"cart", "tls"}, 1,
		},
		"nothing": {"bookinfo", nil, nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := explain.New(engine.Translate(load(t, tt.in)))
			s := explain.Simulate(x, losses(t, x, tt.lose...), explain.New)
			var got, off []string
			unanswered := 0
			for _, o := range s.Services {
				got = append(got, fmt.Sprintf("%s %s %g", o.Service.Name, o.Requests, o.Unanswered))
				if o.Unanswered > 0 {
					unanswered++
				}
			}
			for _, f := range s.FailoverOff {
				off = append(off, f.Service.Name)
			}
			assert.ElementsMatch(t, tt.want, got)
			assert.Equal(t, tt.off, off)
			assert.Len(t, s.Gateways, tt.gateways)
			assert.Len(t, s.Issues, unanswered, "each has a next step")
			for _, issue := range s.Issues {
				assert.NotEmpty(t, issue.Hint)
			}
		})
	}
}

// TestSimulateOfAll loses each cluster of each case: the Index itself stays as it was, and what remains is answered as before.
func TestSimulateOfAll(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, name string) {
		t.Helper()
		x := explain.New(engine.Translate(load(t, name)))
		require.Empty(t, explain.Simulate(x, nil, explain.New).Services)
		for _, ref := range x.Refs(snapshot.KubernetesCluster) {
			s := explain.Simulate(x, losses(t, x, "cluster/"+ref.Name), explain.New)
			for _, o := range s.Services {
				assert.NotEqual(t, o.Before, o.After)
				assert.LessOrEqual(t, o.Unanswered, 100.1)
			}
			assert.NotEmpty(t, s.Page().Sections)
		}
		require.Empty(t, explain.Simulate(x, nil, explain.New).Services, "the Index is not changed")
	})
}

// TestAssumeDown: Why says of one request what Simulate says of all.
func TestAssumeDown(t *testing.T) {
	t.Parallel()
	find := func(x *explain.Index, kind snapshot.Kind, name string) snapshot.Ref {
		t.Helper()
		found := x.Find(kind, name)
		require.Len(t, found, 1, name)
		return found[0]
	}
	for name, tt := range map[string]struct {
		in, from, to, lose string
		kind               snapshot.Kind
		want               explain.Verdict
	}{
		"nothing of it":          {"bookinfo", "productpage-v1", "reviews.bookinfo.cluster-1", "service/details", snapshot.Destination, explain.Allowed},
		"a share":                {"bookinfo", "productpage-v1", "reviews.bookinfo.cluster-1", "cluster-2", snapshot.Destination, explain.Partly},
		"only the gateway":       {"bookinfo", "productpage-v1", "reviews.bookinfo.cluster-1", "workload/istio-eastwestgateway.istio-system.cluster-2", snapshot.Destination, explain.Partly},
		"the service":            {"bookinfo", "productpage-v1", "details", "service/details", snapshot.Destination, explain.Unreachable},
		"the first of several":   {"failover-localized", "cart-v1.shop.cluster-1", "cart", "service/cart.shop.cluster-1", snapshot.VirtualDestination, explain.Allowed},
		"a cluster behind it":    {"failover-localized", "cart-v1.shop.cluster-1", "cart", "cluster-2", snapshot.VirtualDestination, explain.Allowed},
		"all that is behind one": {"failover-shift", "cart-v1.shop.cluster-1", "tls", "cluster-2", snapshot.VirtualDestination, explain.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := explain.New(engine.Translate(load(t, tt.in)))
			from, to := find(x, snapshot.Workload, tt.from), find(x, tt.kind, tt.to)
			why := explain.NewOutage(x, losses(t, x, tt.lose)).Index(explain.New).Why(from, to, explain.Request{})
			require.NotNil(t, why)
			assert.Equal(t, tt.want, why.Verdict, why.Reason)
		})
	}
}

// TestFindLosses: a name that several things have means all of them, so that somebody has to choose.
func TestFindLosses(t *testing.T) {
	t.Parallel()
	x := explain.New(engine.Translate(load(t, "bookinfo")))
	for name, want := range map[string]int{
		"cluster-1": 1, "cluster/cluster-1": 1, "region/cluster-1": 0, "reviews": 2, "service/reviews": 2, "reviews.bookinfo.cluster-1": 1,
		"productpage-v1": 1, "workload/productpage-v1": 1, "service/productpage-v1": 0, "reviews.bookinfo.cluster-2:version-v3": 1,
		"reviews.bookinfo.cluster-2:": 0, "reviews.bookinfo.cluster-2:v9": 0, "nothing": 0, "": 0,
	} {
		assert.Len(t, explain.FindLosses(x, name), want, name)
	}
}

// TestOpenings: where services that policies protect let in callers without an identity all the same.
func TestOpenings(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"no-proxy": {
			"cart-old-shop-cluster-1 [80] 1 true these endpoints have no proxy of the mesh, so that no policy decides who may call them",
			"cart-shop-cluster-1 [9080] 1 true these endpoints have no proxy of the mesh, so that no policy decides who may call them",
			"cart-tls-shop-cluster-1 [9443] 1 true these endpoints have no proxy of the mesh, so that no policy decides who may call them",
			"store-data-cluster-1 [80] 1 true these endpoints have no proxy of the mesh, so that no policy decides who may call them",
		},
		"authorization-by-hand": {
			"cart-shop-cluster-1 [9080] 1 false the hand-written AuthorizationPolicy cluster-1/istio-system/authorizer leaves it to the external authorizer opa, the hand-written AuthorizationPolicy cluster-1/shop/no-admin denies by what is asked for, the hand-written AuthorizationPolicy cluster-1/shop/not-from-outside denies by the callers' addresses",
		},
		"past-proxies": {
			"cart-shop-cluster-1 [9080] 1 true port 9080 of the pods passes their proxies by (excludeInboundPorts, includeInboundPorts or excludeInterfaces), so that no policy decides who may call them",
		},
		"peer-authentication": nil,
		"machines": {
			"ledger-shop-cluster-1 [80] 1 false whether WorkloadEntries without a serviceAccount stand for machines with a proxy is not known; without one, no policy holds there",
			"probe-lab-cluster-1 [80] 1 false access is open by default, and policies deny some calls only; not known: who reaches the machines of WorkloadEntries",
		},
	} {
		input, _, err := offline.Load(offline.Dir("../../testdata/world/" + name + "/in"))
		require.NoError(t, err)
		var got []string
		for _, o := range explain.ExposureOf(explain.New(engine.Translate(input))).Openings {
			got = append(got, fmt.Sprintf("%s %v %d %t %s", o.Service.Name, o.Ports, o.Pods, o.Known, o.Why))
		}
		assert.Equal(t, want, got, name)
	}
}

// TestExposure: what stands open, and what has no use.
func TestExposure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ unprotected, closed, notLetIn, idle int }{
		"bookinfo":             {closed: 1},
		"failover-flat":        {unprotected: 2},
		"namespaces-not-named": {unprotected: 1, idle: 2},
	} {
		e := explain.ExposureOf(explain.New(engine.Translate(load(t, name))))
		assert.Equal(t, []int{tt.unprotected, tt.closed, tt.notLetIn, tt.idle}, []int{len(e.Unprotected), len(e.Closed), len(e.NotLetIn), len(e.WithoutEffect)}, name)
		for _, p := range e.WithoutEffect {
			assert.NotEmpty(t, p.Why)
		}
		assert.Len(t, e.Page().Sections, 6)
	}
}

// TestServicesInNoMesh: services beside those of a mesh are listed if no pod of theirs is in it, and those elsewhere are counted.
func TestServicesInNoMesh(t *testing.T) {
	t.Parallel()
	input := load(t, "bookinfo")
	cluster := input.Cluster("cluster-1")
	add := func(namespace, name, target string) {
		cluster.Services = append(cluster.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		cluster.EndpointSlices = append(cluster.EndpointSlices, &endpointv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{endpointv1.LabelServiceName: name}},
			Endpoints:  []endpointv1.Endpoint{{Addresses: []string{"10.9.9.9"}, TargetRef: &corev1.ObjectReference{Kind: target, Namespace: namespace, Name: "old"}}},
		})
	}
	add("bookinfo", "plain", "Pod")
	add("bookinfo", "outside", "") // what answers is no pod
	add("kube-system", "kube-dns", "Pod")
	add("istio-system", "jaeger", "Pod")
	e := explain.ExposureOf(explain.New(engine.Translate(input)))
	assert.Equal(t, []snapshot.Ref{{Kind: snapshot.Service, Cluster: "cluster-1", Namespace: "bookinfo", Name: "plain"}}, e.InNoMesh)
	assert.Contains(t, e.Notes, "2 services, in namespaces without workloads of a mesh or with its control plane (istio-system, kube-system), are in no mesh: no policy is for them")
	text := fmt.Sprint(e.Page())
	assert.Contains(t, text, "plain.bookinfo.cluster-1")
}

package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// networkPolicy has pods of a namespace isolated for what comes in, but for what rules let through.
func networkPolicy(namespace, name string, rules ...networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: networkingv1.NetworkPolicySpec{Ingress: rules}}
}

// notEvaluated is what answers name of a request of a workload of a cluster to the first service of another.
func notEvaluated(t *testing.T, in *snapshot.Input, from, to string) []string {
	t.Helper()
	x := explain.New(engine.Translate(in))
	var caller, called snapshot.Ref
	for _, ref := range x.Refs(snapshot.Workload) {
		if strings.Contains(ref.Name, from) && strings.HasPrefix(ref.Name, "service-") && caller == (snapshot.Ref{}) {
			caller = ref
		}
	}
	for _, ref := range x.Refs(snapshot.Destination) {
		if strings.HasSuffix(ref.Name, to) && strings.HasPrefix(ref.Name, "service-") && called == (snapshot.Ref{}) {
			called = ref
		}
	}
	require.NotZero(t, caller)
	require.NotZero(t, called)
	return x.Why(caller, called, explain.Request{}).NotEvaluated
}

// TestNetworkPoliciesOnTheWay: each connection to another cluster is looked at, and one that is let through is not named.
func TestNetworkPoliciesOnTheWay(t *testing.T) {
	t.Parallel()
	in := enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1})
	const there = "cluster-02"
	assert.Empty(t, notEvaluated(t, in, "cluster-01", there))
	namespace := enginetest.Namespace(1)
	isolated := with(t, in, there, networkPolicy(namespace, "nothing"))
	got := notEvaluated(t, isolated, "cluster-01", there)
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "whether the network of cluster cluster-02 enforces NetworkPolicy cluster-02/"+namespace+"/nothing, which lets no connection from the east-west gateways")

	// API servers label each namespace with its name.
	gateways := metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "istio-system"}}
	rule := networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &gateways}}}
	opened := with(t, isolated, there, networkPolicy(namespace, "gateways", rule))
	opened = with(t, opened, there, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system"}})
	assert.Empty(t, notEvaluated(t, opened, "cluster-01", there))
	requireAsNew(t, in, isolated, opened, isolated, in)

	denied := shallow(in)
	denied.Cluster(there).Denied = []snapshot.Kind{snapshot.NetworkPolicy}
	got = notEvaluated(t, denied, "cluster-01", there)
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "NetworkPolicies of cluster cluster-02 let connections through, which meshctl's account may not read: register the cluster again")
	requireAsNew(t, in, denied, in)
}

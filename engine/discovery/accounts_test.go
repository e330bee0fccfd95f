package discovery_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
)

func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	// shop has a workload of account "old", with a pod and an endpoint.
	type shop struct {
		clustertest.Builder
		deployment *appsv1.Deployment
		service    *corev1.Service
		pod        *corev1.Pod
		slice      *endpointv1.EndpointSlice
	}
	add := func(s *shop, e endpointv1.Endpoint) { s.slice.Endpoints = append(s.slice.Endpoints, e) }
	another := func(s *shop, name, account string) *corev1.Pod {
		p := s.Builder.Pod(s.deployment, name, "node")
		p.Spec.ServiceAccountName = account
		return p
	}
	unready := func(e endpointv1.Endpoint) endpointv1.Endpoint {
		e.Conditions.Ready = new(false)
		return e
	}
	manyPods := func(s *shop, n int) {
		for i := range n {
			another(s, fmt.Sprintf("pod-%d", i), fmt.Sprintf("account-%d", i))
		}
	}
	for name, c := range map[string]struct {
		change func(*shop)
		want   []string
	}{
		"one account": {func(*shop) {}, []string{"old"}},
		"none is default": {func(s *shop) {
			s.deployment.Spec.Template.Spec.ServiceAccountName, s.pod.Spec.ServiceAccountName = "", ""
		}, []string{"default"}},
		"a rollout begins":               {func(s *shop) { s.deployment.Spec.Template.Spec.ServiceAccountName = "new" }, []string{"new", "old"}},
		"a pod before it is an endpoint": {func(s *shop) { another(s, "next", "webhook") }, []string{"old", "webhook"}},
		"a pod that goes, and is no endpoint any more": {func(s *shop) {
			s.deployment.Spec.Template.Spec.ServiceAccountName = "new"
			s.slice.Endpoints = nil
		}, []string{"new", "old"}},
		"a pod that has ended": {func(s *shop) { another(s, "evicted", "older").Status.Phase = corev1.PodFailed }, []string{"old"}},
		"no pods": {func(s *shop) {
			s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"istio-injection": "enabled"}}}}
			s.Pods, s.slice.Endpoints = nil, nil
		}, []string{"old"}},
		"an endpoint of another workload": {func(s *shop) {
			other := s.Builder.Deployment("shop", "other", map[string]string{"app": "other"})
			s.Builder.Pod(other, "other", "node").Spec.ServiceAccountName = "others"
			add(s, clustertest.Endpoint("10.0.0.2", "other", "node"))
		}, []string{"old", "others"}},
		"an endpoint of a pod without a controller": {func(s *shop) {
			another(s, "bare", "bare").OwnerReferences = nil
			add(s, unready(clustertest.Endpoint("10.0.0.2", "bare", "node")))
		}, []string{"bare", "old"}},
		"an endpoint of no pod": {func(s *shop) {
			add(s, endpointv1.Endpoint{Addresses: []string{"10.0.0.2"}, Conditions: endpointv1.EndpointConditions{Ready: new(false)}})
		}, nil},
		"an endpoint of another kind": {func(s *shop) {
			e := clustertest.Endpoint("10.0.0.2", "pod", "node")
			e.TargetRef.Kind = "Node"
			add(s, e)
		}, nil},
		"an endpoint in another namespace": {func(s *shop) {
			e := clustertest.Endpoint("10.0.0.2", "pod", "node")
			e.TargetRef.Namespace = "bank"
			add(s, e)
		}, nil},
		"an endpoint of a pod that is not there":   {func(s *shop) { add(s, clustertest.Endpoint("10.0.0.2", "gone", "node")) }, nil},
		"an endpoint of a pod that was there":      {func(s *shop) { add(s, unready(clustertest.Endpoint("10.0.0.2", "gone", "node"))) }, []string{"old"}},
		"an endpoint of a pod outside of the mesh": {func(s *shop) { add(s, clustertest.Endpoint("10.0.0.2", outside(another(s, "plain", "plain")), "node")) }, []string{"old", "plain"}},
		"revisions of one trust domain": {func(s *shop) {
			s.Istiod("canary")
			revision(another(s, "next", "new"), "canary")
			add(s, clustertest.Endpoint("10.0.0.2", "next", "node"))
		}, []string{"new", "old"}},
		"revisions of two trust domains": {func(s *shop) {
			s.Istiod("canary")
			s.ConfigMaps[len(s.ConfigMaps)-1].Data["mesh"] = "trustDomain: other.example\n"
			revision(another(s, "next", "new"), "canary")
			add(s, clustertest.Endpoint("10.0.0.2", "next", "node"))
		}, nil},
		"as many as there may be": {func(s *shop) { manyPods(s, discovery.MostAccounts-1) }, append(accountNames(discovery.MostAccounts-1), "old")},
		"more than there may be":  {func(s *shop) { manyPods(s, discovery.MostAccounts) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("cluster-1")
			b.Istiod("default")
			s := &shop{Builder: b, deployment: b.Deployment("shop", "cart", map[string]string{"app": "cart"})}
			s.deployment.Spec.Template.Spec.ServiceAccountName = "old"
			s.service = b.Service("shop", "cart", map[string]string{"app": "cart"})
			s.pod = another(s, "pod", "old")
			s.slice = b.Slice(s.service, "cart", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "pod", "node"))
			c.change(s)
			slices.Sort(c.want)
			assert.Equal(t, c.want, destination(t, s.Builder).ServiceAccounts)
		})
	}
}

// accountNames are the service accounts of many pods.
func accountNames(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("account-%d", i))
	}
	return out
}

// outside takes a pod out of the mesh, and returns its name.
func outside(p *corev1.Pod) string {
	p.Spec.Containers, p.Annotations = p.Spec.Containers[:1], nil
	return p.Name
}

// revision has a pod served by another revision.
func revision(p *corev1.Pod, name string) { p.Annotations = map[string]string{"istio.io/rev": name} }

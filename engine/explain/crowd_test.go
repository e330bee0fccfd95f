package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// crowd is a namespace with 1,000 services, each with five pods, in which users wrote an AuthorizationPolicy, and VirtualServices
// and ServiceEntries for some hosts, beside policies on all services.
func crowd(tb testing.TB) *snapshot.State {
	tb.Helper()
	const services, pods, hosts = 1000, 5, 100
	places := make([]enginetest.Place, services)
	for i := range places {
		places[i] = enginetest.Place{Namespace: "team", Name: enginetest.Service(i)}
	}
	c := enginetest.NamedCluster(0, enginetest.Cluster(0), enginetest.Place{Namespace: "istio-system", Name: "istiod"}, places...)
	for i, pod := range slices.Clone(c.Pods) {
		if pod.Namespace != "team" {
			continue
		}
		for n := range pods - 1 {
			more := pod.DeepCopy()
			more.Name += fmt.Sprint("-", n)
			more.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", 100+n, i/250, i%250+1)
			c.Pods = append(c.Pods, more)
			at := slices.IndexFunc(c.EndpointSlices, func(s *endpointv1.EndpointSlice) bool { return s.Endpoints[0].TargetRef.Name == pod.Name })
			endpoint := c.EndpointSlices[at].Endpoints[0].DeepCopy()
			endpoint.Addresses, endpoint.TargetRef.Name = []string{more.Status.PodIP}, more.Name
			c.EndpointSlices[at].Endpoints = append(c.EndpointSlices[at].Endpoints, *endpoint)
		}
	}
	slices.SortFunc(c.Pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0))}
	}
	c.OfMeshes[snapshot.AuthorizationPolicy] = []snapshot.APIObject{&istiosecurityv1.AuthorizationPolicy{
		ObjectMeta: meta("no-deletes"), Spec: security.AuthorizationPolicy{
			Action: security.AuthorizationPolicy_DENY, Rules: []*security.Rule{{To: []*security.Rule_To{{Operation: &security.Operation{Methods: []string{"DELETE"}}}}}},
		},
	}}
	in := &snapshot.Input{Clusters: []*snapshot.Cluster{c}, Management: &snapshot.Management{Namespace: "gloo-mesh"}}
	for i := range services {
		p := enginetest.TrafficPolicy(i, i, 0, time.Second)
		p.Spec.DestinationSelector[0].KubeServiceRefs.Services[0].Namespace = "team"
		p.Spec.Policy.TrafficShift = nil
		in.Management.TrafficPolicies = append(in.Management.TrafficPolicies, p)
	}
	slices.SortFunc(in.Management.TrafficPolicies, func(a, b *networkingv1.TrafficPolicy) int { return strings.Compare(a.Name, b.Name) })
	for i := range hosts {
		host := enginetest.Service(i) + ".team.svc.cluster.local"
		c.OfMeshes[snapshot.VirtualService] = append(c.OfMeshes[snapshot.VirtualService], &istionetworkingv1.VirtualService{
			ObjectMeta: meta("by-hand-" + enginetest.Service(i)), Spec: networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
				Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
			}}},
		})
	}
	return engine.Translate(in)
}

// BenchmarkCrowd asks questions about one service of a large namespace.
func BenchmarkCrowd(b *testing.B) {
	state := crowd(b)
	index := explain.New(state)
	from := index.Find(snapshot.Workload, enginetest.Service(7))[0]
	to, byHand := index.Find(snapshot.Destination, enginetest.Service(500))[0], index.Find(snapshot.Destination, enginetest.Service(5))[0]
	require.Equal(b, explain.Allowed, index.Why(from, to, explain.Request{}).Verdict)
	for name, run := range map[string]func(){
		"New":             func() { explain.New(state) },
		"Why":             func() { index.Why(from, to, explain.Request{}) },
		"Destination":     func() { index.Describe(to) },
		"ByHand":          func() { index.Describe(byHand) },
		"Workload":        func() { index.Describe(from) },
		"AllDestinations": func() { index.List(snapshot.Destination) },
		"Observe": func() {
			x := explain.New(state)
			created := map[snapshot.Ref]time.Time{}
			for o := range state.Output.Objects {
				created[o.Ref] = time.Unix(1_600_000_000, 0)
			}
			x.Observe(nil, false, &snapshot.Observed{Created: created})
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run()
			}
		})
	}
}

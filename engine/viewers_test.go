package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestSourcesOfOneClusterBesideThoseOfAll: what a selector says of callers in one cluster is
// not for those in others, although another selector is for all.
func TestSourcesOfOneClusterBesideThoseOfAll(t *testing.T) {
	t.Parallel()
	in := enginetest.World(enginetest.Size{Services: 1, Clusters: 4, FederateEvery: 1})
	p := enginetest.TrafficPolicy(0, 0, 0, time.Second)
	p.Spec.Policy.TrafficShift = nil
	p.Spec.SourceSelector = []commonv1.WorkloadSelector{
		{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Labels: map[string]string{"only": "there"}, Clusters: []string{enginetest.Cluster(1)}}},
		{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Labels: map[string]string{"any": "where"}}},
	}
	in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{p}
	routes := map[string]int{}
	for d := range engine.Translate(in).Plan.Destinations.All() {
		if ref := d.Destination.Spec.KubeService.Ref; ref.Name == enginetest.Service(0) && ref.ClusterName == enginetest.Cluster(0) {
			for _, view := range d.Views {
				routes[view.Mesh.Cluster] = len(view.Routes)
			}
		}
	}
	// One for each selector, and one for all other requests.
	require.Equal(t, map[string]int{enginetest.Cluster(0): 2, enginetest.Cluster(1): 3, enginetest.Cluster(2): 2, enginetest.Cluster(3): 2}, routes)
}

// TestViewersApart: a check that fails for one of many viewers is not passed over, because
// another one passed it.
func TestViewersApart(t *testing.T) {
	t.Parallel()
	policy := func(n, seconds int, sources ...string) *networkingv1.TrafficPolicy {
		p := enginetest.TrafficPolicy(n, 0, 0, time.Duration(seconds)*time.Second)
		p.CreationTimestamp = metav1.NewTime(time.Unix(int64(n), 0))
		p.Spec.Policy.TrafficShift = nil
		if len(sources) > 0 {
			p.Spec.SourceSelector = []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Clusters: sources}}}
		}
		return p
	}
	federated := enginetest.Service(0) + "." + enginetest.Namespace(0) + ".svc." + enginetest.Cluster(0) + ".global"
	for name, test := range map[string]struct {
		change func(in *snapshot.Input)
		want   []snapshot.Code
	}{
		"nothing is wrong": {func(in *snapshot.Input) {
			in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{policy(1, 1)}
		}, nil},
		"an older policy for callers in one cluster": {func(in *snapshot.Input) {
			in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{policy(1, 1, enginetest.Cluster(3)), policy(2, 2)}
		}, []snapshot.Code{snapshot.FieldConflict}},
		"an object by hand in one cluster": {func(in *snapshot.Input) {
			in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{policy(1, 1)}
			in.Clusters[3].OfMeshes = snapshot.ObjectsOfMeshes{snapshot.VirtualService: {&istionetworkingv1.VirtualService{
				ObjectMeta: metav1.ObjectMeta{Name: "by-hand", Namespace: "istio-system"},
				Spec: networking.VirtualService{Hosts: []string{federated}, Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{
					{Destination: &networking.Destination{Host: federated}},
				}}}},
			}}}
		}, []snapshot.Code{snapshot.HandWritten}},
		"a target that one cluster does not see": {func(in *snapshot.Input) {
			p := policy(1, 1)
			p.Spec.Policy.TrafficShift = enginetest.TrafficPolicy(0, 1, 0, 0).Spec.Policy.TrafficShift
			in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{p}
			vm := in.Management.VirtualMeshes[0]
			only := func(service, meshes int) networkingv1.FederationSelector {
				return networkingv1.FederationSelector{
					Meshes: vm.Spec.Meshes[:meshes],
					DestinationSelectors: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{
						{Name: enginetest.Service(service), Namespace: enginetest.Namespace(service), ClusterName: enginetest.Cluster(0)},
					}}}},
				}
			}
			vm.Spec.Federation.Selectors = []networkingv1.FederationSelector{only(0, 5), only(1, 4)}
		}, []snapshot.Code{snapshot.NotFederated}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := enginetest.World(enginetest.Size{Services: 2, Clusters: 5, FederateEvery: 1})
			test.change(in)
			var got []snapshot.Code
			for _, p := range engine.Translate(in).Plan.Policies {
				for _, v := range p.Verdicts {
					for _, issue := range v.Issues {
						if !slices.Contains(got, issue.Code) {
							got = append(got, issue.Code)
						}
					}
				}
			}
			require.Equal(t, test.want, got)
		})
	}
}

// TestViewersAlike: policies say the same when each of their viewers is checked by itself,
// because they name all clusters, as when those that are alike are checked once.
func TestViewersAlike(t *testing.T) {
	t.Parallel()
	seed := int64(waittest.Seed(t) % (1 << 31))
	verdicts := 0
	for n := range int64(16) {
		w := newRandomWorld(seed + n)
		for range 10 {
			w.change()
			in := importingAll(w.input())
			want, got := verdictsOf(engine.Translate(namingAll(in)), &verdicts), verdictsOf(engine.Translate(in), &verdicts)
			require.Equal(t, want, got, "world %d of seed %d after: %s", n, seed, w.last)
		}
	}
	require.Greater(t, verdicts, 1000)
}

// importingAll is the input with all that is federated imported everywhere: naming a cluster would import something else.
func importingAll(in *snapshot.Input) *snapshot.Input {
	out, m := *in, *in.Management
	out.Management = &m
	m.VirtualMeshes = nil
	for _, v := range in.Management.VirtualMeshes {
		v = v.DeepCopy()
		if v.Spec.Federation != nil {
			v.Spec.Federation.Mode = networkingv1.FederationModeAll
		}
		m.VirtualMeshes = append(m.VirtualMeshes, v)
	}
	return &out
}

// namingAll is the input with all clusters named in the sources of TrafficPolicies that name
// none, and in the specs that were last in force.
func namingAll(in *snapshot.Input) *snapshot.Input {
	var all []string
	for _, c := range in.Clusters {
		all = append(all, c.Name)
	}
	name := func(spec *networkingv1.TrafficPolicySpec) {
		if len(spec.SourceSelector) == 0 {
			spec.SourceSelector = []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Clusters: all}}}
		}
	}
	out, m := *in, *in.Management
	out.Management = &m
	m.TrafficPolicies, m.Destinations = nil, nil
	for _, p := range in.Management.TrafficPolicies {
		p = p.DeepCopy()
		name(&p.Spec)
		m.TrafficPolicies = append(m.TrafficPolicies, p)
	}
	for _, d := range in.Management.Destinations {
		d = d.DeepCopy()
		for i := range d.Status.AppliedTrafficPolicies {
			name(&d.Status.AppliedTrafficPolicies[i].Spec)
		}
		m.Destinations = append(m.Destinations, d)
	}
	return &out
}

// verdictsOf is what is said of TrafficPolicies on each of their Destinations.
func verdictsOf(state *snapshot.State, count *int) map[string][]string {
	out := map[string][]string{}
	for _, p := range state.Plan.Policies {
		if p.Ref.Kind != snapshot.TrafficPolicy {
			continue
		}
		for _, v := range p.Verdicts {
			at := p.Ref.String() + " on " + v.Destination.String()
			out[at] = append(out[at], fmt.Sprint("accepted: ", v.Accepted))
			for _, issue := range v.Issues {
				// A policy that names its callers has "selected requests".
				message := strings.ReplaceAll(issue.Message, " of the selected requests ", " of the requests ")
				out[at] = append(out[at], fmt.Sprint(issue.Code, issue.Severity, issue.Field, message, issue.Hint, issue.Cause))
			}
			*count++
		}
	}
	return out
}

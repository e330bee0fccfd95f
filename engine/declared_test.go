package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func serviceRef(n, cluster int) commonv1.ClusterObjectRef {
	return commonv1.ClusterObjectRef{Name: enginetest.Service(n), Namespace: enginetest.Namespace(n), ClusterName: enginetest.Cluster(cluster)}
}

// dependencyOn says that all workloads of a cluster call services.
func dependencyOn(name string, cluster int, services ...commonv1.ClusterObjectRef) *enterprisev1beta1.ServiceDependency {
	return &enterprisev1beta1.ServiceDependency{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: snapshot.DefaultNamespace, Generation: 1},
		Spec: enterprisev1beta1.ServiceDependencySpec{
			SourceSelectors:      []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Clusters: []string{enginetest.Cluster(cluster)}}}},
			DestinationSelectors: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: services}}},
		},
	}
}

// shiftTo sends the requests for a service elsewhere.
func shiftTo(name string, generation int64, from commonv1.ClusterObjectRef, to ...commonv1.ClusterObjectRef) *networkingv1.TrafficPolicy {
	p := &networkingv1.TrafficPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: snapshot.DefaultNamespace, Generation: generation},
		Spec: networkingv1.TrafficPolicySpec{
			DestinationSelector: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{from}}}},
			Policy:              &networkingv1.Policy{TrafficShift: &networkingv1.MultiDestination{}},
		},
	}
	for _, service := range to {
		p.Spec.Policy.TrafficShift.Destinations = append(p.Spec.Policy.TrafficShift.Destinations, networkingv1.WeightedDestination{
			Weight: 1, KubeService: &networkingv1.KubeDestination{Name: service.Name, Namespace: service.Namespace, ClusterName: service.ClusterName},
		})
	}
	return p
}

// imports lists what each cluster imports: "cluster-01 service-00002.cluster-03", ascending.
func imports(state *snapshot.State) []string {
	out := []string{}
	for d := range state.Plan.Destinations.All() {
		for _, mesh := range toOf(d.Federation) {
			service := d.Destination.Spec.KubeService.Ref
			out = append(out, mesh.Cluster+" "+service.Name+"."+service.ClusterName)
		}
	}
	slices.Sort(out)
	return out
}

// TestImportsFollowDeclarations through edits.
func TestImportsFollowDeclarations(t *testing.T) {
	t.Parallel()
	in := withMode(enginetest.World(enginetest.Size{Services: 4, Clusters: 3, FederateEvery: 1}), networkingv1.FederationModeDeclared)
	translator := engine.New(engine.Options{})
	edit := func(change func(*snapshot.Management)) []string {
		t.Helper()
		next, m := *in, *in.Management
		next.Management = &m
		change(&m)
		in = &next
		state := translator.Translate(in)
		require.Equal(t, text(t, engine.Translate(in).Output), text(t, state.Output), "with and without what is remembered")
		return imports(state)
	}
	// There are workloads of services 0 to 3 in each cluster.
	require.Empty(t, edit(func(*snapshot.Management) {}), "nothing is declared")

	require.Equal(t, []string{"cluster-01 service-00002.cluster-03"}, edit(func(m *snapshot.Management) {
		m.ServiceDependencies = []*enterprisev1beta1.ServiceDependency{dependencyOn("a", 0, serviceRef(2, 2), serviceRef(1, 0))}
	}), "a service of its own cluster is there anyway")

	// Two policies that send requests to and fro: each caller of one side needs the other.
	require.Equal(t, []string{
		"cluster-01 service-00002.cluster-03", "cluster-01 service-00003.cluster-02",
		"cluster-02 service-00002.cluster-03", "cluster-03 service-00003.cluster-02",
	}, edit(func(m *snapshot.Management) {
		m.TrafficPolicies = []*networkingv1.TrafficPolicy{
			shiftTo("back", 1, serviceRef(3, 1), serviceRef(2, 2)),
			shiftTo("forth", 1, serviceRef(2, 2), serviceRef(3, 1)),
		}
	}))

	require.Equal(t, []string{"cluster-02 service-00002.cluster-03", "cluster-03 service-00003.cluster-02"}, edit(func(m *snapshot.Management) {
		m.ServiceDependencies = nil
	}), "nobody in cluster-01 calls any of the two")
	require.Empty(t, edit(func(m *snapshot.Management) { m.TrafficPolicies = nil }))

	require.Len(t, edit(func(m *snapshot.Management) {
		everything := dependencyOn("a", 0)
		everything.Spec.DestinationSelectors = nil
		m.ServiceDependencies = []*enterprisev1beta1.ServiceDependency{everything}
	}), 2*4, "all services of the other two clusters")
	require.Empty(t, edit(func(m *snapshot.Management) {
		m.ServiceDependencies = slices.Clone(m.ServiceDependencies)
		m.ServiceDependencies[0] = m.ServiceDependencies[0].DeepCopy()
		m.ServiceDependencies[0].Namespace = "team"
	}), "it does not count there")
}

// TestTargetsStayUntilTheirRoutesAreGone: what a policy in force leads to is imported although its latest version does not lead
// there, until the status says that this one is in force.
func TestTargetsStayUntilTheirRoutesAreGone(t *testing.T) {
	t.Parallel()
	in := withMode(enginetest.World(enginetest.Size{Services: 4, Clusters: 3, FederateEvery: 1}), networkingv1.FederationModeDeclared)
	translator := engine.New(engine.Options{})
	var state *snapshot.State
	set := func(p *networkingv1.TrafficPolicy) []string {
		next, m := *in, *in.Management
		next.Management = &m
		m.TrafficPolicies = []*networkingv1.TrafficPolicy{p}
		in = &next
		state = translator.Translate(in)
		return imports(state)
	}
	written := func() []string {
		in = echo(in, state.Output)
		state = translator.Translate(in)
		return imports(state)
	}
	first, second := []string{"cluster-01 service-00001.cluster-02"}, []string{"cluster-01 service-00001.cluster-03"}

	require.Equal(t, first, set(shiftTo("shift", 1, serviceRef(0, 0), serviceRef(1, 1))))
	require.Equal(t, first, written())
	require.Equal(t, first, set(shiftTo("shift", 2, serviceRef(0, 0), serviceRef(99, 1))), "its last accepted version stays in force")
	require.Equal(t, first, written())
	require.Equal(t, slices.Concat(first, second), set(shiftTo("shift", 3, serviceRef(0, 0), serviceRef(1, 2))))
	require.Equal(t, second, written())
}

// TestDeclarationsExplainImports: what is written for an import follows from what declares it, so that an edit of that explains
// that it goes; what everybody shares says nothing of it.
func TestDeclarationsExplainImports(t *testing.T) {
	t.Parallel()
	in := withMode(enginetest.World(enginetest.Size{Services: 4, Clusters: 3, FederateEvery: 1}), networkingv1.FederationModeDeclared)
	in.Management.ServiceDependencies = []*enterprisev1beta1.ServiceDependency{dependencyOn("a", 0, serviceRef(1, 1))}
	in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{shiftTo("shift", 1, serviceRef(0, 2), serviceRef(1, 1))}
	parents := map[string][]snapshot.Ref{}
	annotations := map[string]string{}
	for o := range engine.Translate(in).Output.Objects {
		if o.Ref.Kind == snapshot.ServiceEntry {
			parents[o.Ref.Cluster], annotations[o.Ref.Cluster] = o.Content.Parents, o.Content.Annotations[snapshot.ParentsAnnotation]
		}
	}
	vm := snapshot.RefOf(snapshot.VirtualMesh, in.Management.VirtualMeshes[0])
	dependency := snapshot.RefOf(snapshot.ServiceDependency, in.Management.ServiceDependencies[0])
	shift := snapshot.RefOf(snapshot.TrafficPolicy, in.Management.TrafficPolicies[0])
	require.Equal(t, map[string][]snapshot.Ref{
		enginetest.Cluster(0): sorted(vm, dependency), enginetest.Cluster(1): {vm}, enginetest.Cluster(2): sorted(vm, shift),
	}, parents)
	require.Equal(t, annotations[enginetest.Cluster(0)], annotations[enginetest.Cluster(2)], "one more declaration must not rewrite what others import")
}

func sorted(refs ...snapshot.Ref) []snapshot.Ref {
	slices.SortFunc(refs, snapshot.Ref.Compare)
	return refs
}

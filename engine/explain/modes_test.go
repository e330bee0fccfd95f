package explain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// federatedWorld has services in three clusters, and workloads of the first that call one of the second.
func federatedWorld(services int, mode networkingv1.FederationMode) *snapshot.Input {
	in := enginetest.World(enginetest.Size{Services: services, Clusters: 3, FederateEvery: 1})
	in.Management.VirtualMeshes[0].Spec.Federation.Mode = mode
	o := &enterprisev1beta1.ServiceDependency{Spec: enterprisev1beta1.ServiceDependencySpec{
		SourceSelectors: []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Clusters: []string{enginetest.Cluster(0)}}}},
		DestinationSelectors: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{
			{Name: enginetest.Service(1), Namespace: enginetest.Namespace(1), ClusterName: enginetest.Cluster(1)},
		}}}},
	}}
	o.Name, o.Namespace, o.Generation = "calls", snapshot.DefaultNamespace, 1
	in.Management.ServiceDependencies = []*enterprisev1beta1.ServiceDependency{o}
	return in
}

// TestSizesAreThoseOfTheOtherMode: what is said of the mode that a VirtualMesh does not have is what it has once it has that.
func TestSizesAreThoseOfTheOtherMode(t *testing.T) {
	t.Parallel()
	sizes := map[networkingv1.FederationMode][]explain.ModeSize{}
	for _, mode := range []networkingv1.FederationMode{networkingv1.FederationModeAll, networkingv1.FederationModeDeclared} {
		in := federatedWorld(10, mode)
		got, err := explain.FederationSizes(explain.New(engine.Translate(in)), snapshot.RefOf(snapshot.VirtualMesh, in.Management.VirtualMeshes[0]), engine.Translate)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.True(t, got[0].InForce)
		require.False(t, got[1].InForce)
		got[0].InForce = false
		sizes[got[0].Mode] = got
	}
	all, declared := sizes[networkingv1.FederationModeAll], sizes[networkingv1.FederationModeDeclared]
	require.Equal(t, all[0], declared[1])
	require.Equal(t, declared[0], all[1])
	require.Equal(t, 2*10, all[0].ServiceEntries)
	require.Equal(t, 3*2*10, all[0].Written)
	require.Equal(t, 1, declared[0].ServiceEntries)
	require.Equal(t, enginetest.Cluster(0), clusterOf(declared[0].Mesh))
	require.Greater(t, all[0].EstimatedBytes, 10*declared[0].EstimatedBytes)
	require.Positive(t, declared[0].EstimatedBytes)
}

func clusterOf(mesh snapshot.Ref) string { return mesh.Name[len("istiod-istio-system-"):] }

// TestCheckWarnsOfLargeFederations beyond the size of the mesh with which Istio publishes figures.
func TestCheckWarnsOfLargeFederations(t *testing.T) {
	t.Parallel()
	const id = "federation-size/virtual-mesh"
	check := func(services int, mode networkingv1.FederationMode) explain.Check {
		t.Helper()
		checkup := explain.New(engine.Translate(federatedWorld(services, mode))).Checkup(&explain.CheckFacts{Offline: true, Now: time.Unix(0, 0), Translate: engine.Translate})
		for _, c := range checkup.Categories {
			if i := slices.IndexFunc(c.Checks, func(c explain.Check) bool { return c.ID == id }); i >= 0 {
				return c.Checks[i]
			}
		}
		require.Fail(t, "not checked")
		return explain.Check{}
	}
	require.Equal(t, explain.CheckOK, check(500, networkingv1.FederationModeAll).Result)
	large := check(501, networkingv1.FederationModeAll)
	require.Equal(t, explain.CheckWarning, large.Result)
	require.Contains(t, large.Message, "1002 services and 1002 endpoints")
	require.Contains(t, large.Message, "1 service and 1 endpoint")
	require.Contains(t, large.Hint, "DECLARED")
	require.Equal(t, explain.CheckOK, check(501, networkingv1.FederationModeDeclared).Result)
}

// TestPlanGathersWhatAMeshLoses: an edit of the mode withdraws a lot, which is said once for each mesh.
func TestPlanGathersWhatAMeshLoses(t *testing.T) {
	t.Parallel()
	plan := func(services int) (gathered, single int) {
		t.Helper()
		translator := engine.New(engine.Options{})
		in := federatedWorld(services, networkingv1.FederationModeAll)
		edited := in.Management.VirtualMeshes[0].DeepCopy()
		edited.Spec.Federation.Mode = networkingv1.FederationModeDeclared
		planned, _, err := explain.New(translator.Translate(in)).Plan(translator.Translate, []explain.Edit{{Ref: snapshot.RefOf(snapshot.VirtualMesh, edited), Object: edited}}, time.Unix(0, 0))
		require.NoError(t, err)
		for _, e := range planned.Effects {
			switch {
			case e.Kind != explain.EffectReach:
			case e.On.Kind == snapshot.Mesh:
				gathered++
				require.True(t, e.Harm)
			default:
				single++
			}
		}
		return gathered, single
	}
	gathered, single := plan(12)
	require.Equal(t, []int{0, 3*2*12 - 1}, []int{gathered, single}, "few are named")
	gathered, single = plan(13)
	require.Equal(t, []int{2, 2*13 - 1}, []int{gathered, single}, "of two meshes more than 25, and of the first one less")
}

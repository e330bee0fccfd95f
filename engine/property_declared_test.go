package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// declareFederation draws the mode of a federation, and selectors that declare something by themselves.
func (w *randomWorld) declareFederation(f *networkingv1.Federation) {
	switch w.r.Intn(6) {
	case 0:
		f.Mode = networkingv1.FederationModeAll
	case 1:
		f.Mode, f.Selectors = networkingv1.FederationModeDeclared, nil
	case 2:
		f.Mode = networkingv1.FederationModeDeclared
		f.Selectors = append(slices.Clone(f.Selectors), networkingv1.FederationSelector{
			DestinationSelectors: w.destinations(), Meshes: []commonv1.ObjectRef{w.base.Management.VirtualMeshes[0].Spec.Meshes[w.r.Intn(randomClusters)]},
		})
	case 3:
		f.Mode = networkingv1.FederationModeDeclared
	}
}

// withMode is an input whose VirtualMeshes have a mode of federation.
func withMode(in *snapshot.Input, mode networkingv1.FederationMode) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	management.VirtualMeshes = nil
	for _, vm := range in.Management.VirtualMeshes {
		vm = vm.DeepCopy()
		if vm.Spec.Federation != nil {
			vm.Spec.Federation.Mode = mode
			if len(vm.Spec.Federation.Selectors) == 0 {
				vm.Spec.Federation.Selectors = []networkingv1.FederationSelector{{}}
			}
		}
		management.VirtualMeshes = append(management.VirtualMeshes, vm)
	}
	return &out
}

// TestDeclaredIsPartOfAll over all random worlds: what is imported with mode DECLARED is federated with mode ALL, what that
// federates is offered, and each import has a reason.
func TestDeclaredIsPartOfAll(t *testing.T) {
	t.Parallel()
	imported, left := 0, 0
	for seed := range seeds(t, rounds, func() bool { return imported > 100 && left > 100 }) {
		w := newRandomWorld(seed)
		for range 8 {
			w.change()
		}
		in := w.input()
		all := map[snapshot.Ref]*snapshot.DestinationPlan{}
		for d := range engine.Translate(withMode(in, networkingv1.FederationModeAll)).Plan.Destinations.All() {
			all[d.Ref] = d
		}
		for d := range engine.Translate(withMode(in, networkingv1.FederationModeDeclared)).Plan.Destinations.All() {
			var offered []snapshot.Ref
			if d.Offered != nil {
				offered = meshRefs(d.Offered.To)
			}
			federated := all[d.Ref].Federation
			if all[d.Ref].LeftOut.Why == "" {
				require.Equal(t, meshRefs(toOf(federated)), offered, "seed %d, %s", seed, d.Ref)
			}
			if d.Federation == nil {
				left += len(offered)
				continue
			}
			require.Len(t, d.Federation.ImportedBy, len(d.Federation.To))
			for i, mesh := range d.Federation.To {
				imported++
				require.Contains(t, offered, mesh.Ref, "seed %d, %s", seed, d.Ref)
				require.NotEmpty(t, d.Federation.ImportedBy[i], "seed %d, %s", seed, d.Ref)
				require.True(t, slices.IsSortedFunc(d.Federation.ImportedBy[i], snapshot.CompareOrigins))
			}
			left += len(offered) - len(d.Federation.To)
		}
	}
	require.Positive(t, imported)
	require.Positive(t, left)
}

// TestRoutesLeadToImports over all random worlds: what a policy in force sends requests of a mesh to is imported there, if it may
// be.
func TestRoutesLeadToImports(t *testing.T) {
	t.Parallel()
	checked := 0
	for seed := range seeds(t, rounds, func() bool { return checked > 20 }) {
		w := newRandomWorld(seed)
		w.store()
		for range 10 {
			w.addTraffic()
		}
		plan := engine.Translate(withMode(w.input(), networkingv1.FederationModeDeclared)).Plan
		byService := map[commonv1.ClusterObjectRef]*snapshot.DestinationPlan{}
		for d := range plan.Destinations.All() {
			if k := d.Destination.Spec.KubeService; k != nil {
				byService[k.Ref] = d
			}
		}
		for d := range plan.Destinations.All() {
			for _, applied := range d.Traffic {
				for _, viewer := range append(toOf(d.Federation), d.Mesh) {
					if viewer == nil || !appliesIn(applied.Spec, viewer.Cluster) {
						continue
					}
					for _, service := range targetsOf(applied.Spec.Policy) {
						target := byService[service]
						if target == nil || target.Offered == nil || target.LeftOut.Why != "" || !slices.Contains(target.Offered.To, viewer) {
							continue
						}
						checked++
						require.Contains(t, meshRefs(toOf(target.Federation)), viewer.Ref, "seed %d, %s by %s", seed, target.Ref, applied.Policy.Name)
					}
				}
			}
		}
	}
	require.Positive(t, checked)
}

func toOf(f *snapshot.Federation) []*snapshot.MeshPlan {
	if f == nil {
		return nil
	}
	return slices.Clone(f.To)
}

func meshRefs(meshes []*snapshot.MeshPlan) []snapshot.Ref {
	var out []snapshot.Ref
	for _, m := range meshes {
		out = append(out, m.Ref)
	}
	return out
}

// appliesIn reports whether a policy is about requests of callers in a cluster.
func appliesIn(spec *networkingv1.TrafficPolicySpec, cluster string) bool {
	return len(spec.SourceSelector) == 0 || slices.ContainsFunc(spec.SourceSelector, func(s commonv1.WorkloadSelector) bool {
		return s.KubeWorkloadMatcher == nil || len(s.KubeWorkloadMatcher.Clusters) == 0 || slices.Contains(s.KubeWorkloadMatcher.Clusters, cluster)
	})
}

// targetsOf are the services to which a policy sends requests, or copies of them.
func targetsOf(p *networkingv1.Policy) []commonv1.ClusterObjectRef {
	var out []commonv1.ClusterObjectRef
	if p == nil {
		return nil
	}
	if p.TrafficShift != nil {
		for _, d := range p.TrafficShift.Destinations {
			if k := d.KubeService; k != nil {
				out = append(out, commonv1.ClusterObjectRef{Name: k.Name, Namespace: k.Namespace, ClusterName: k.ClusterName})
			}
		}
	}
	if p.Mirror != nil && p.Mirror.KubeService != nil {
		out = append(out, *p.Mirror.KubeService)
	}
	return out
}

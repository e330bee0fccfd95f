package policy

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// distinctViewers are the viewers of a Destination, with one for all that no check of its
// policies can tell apart: what is wrong for one is wrong for all of them, with the same words.
// Of a service that a thousand meshes see, policies are then checked twice, and not a thousand
// times. A viewer stands for itself alone if
//
//   - a source or a target names its cluster, or it is the Destination's own
//   - users wrote objects for its mesh by hand, or it is a mesh of another kind
//   - it shares no root with the Destination's mesh
//
// and so does each, if they may see different targets: a VirtualDestination, an external service,
// or a Service that is not federated to exactly the same meshes.
func (env *environment) distinctViewers(self int, policies []*trafficBinding, last lastGood) []*snapshot.MeshPlan {
	viewers := env.topology.Viewers(self)
	if len(viewers) <= 2 {
		return viewers
	}
	own := viewers[0]
	named := []string{own.Cluster}
	for _, b := range policies {
		specs := []*networkingv1.TrafficPolicySpec{&b.policy.Spec}
		if old := last.of(b.ref); old != nil {
			specs = append(specs, &old.Spec)
		}
		for _, spec := range specs {
			if !env.sameTargets(self, spec.Policy) {
				return viewers
			}
			named = append(named, sourceClusters(spec)...)
			for _, t := range targets(spec.Policy) {
				named = append(named, t.ClusterName)
			}
		}
	}
	alike := false
	return slices.DeleteFunc(viewers, func(v *snapshot.MeshPlan) bool {
		if v.Dialect != own.Dialect || slices.Contains(named, v.Cluster) || env.byHand.on(v) != nil || !v.MayShareRoot(own) {
			return false
		}
		was := alike
		alike = true
		return was
	})
}

// sameTargets reports whether all that see a Destination from elsewhere see the targets of a
// policy under the same names, or none of them does.
func (env *environment) sameTargets(self int, p *networkingv1.Policy) bool {
	if p == nil {
		return true
	}
	if p.TrafficShift != nil && slices.ContainsFunc(p.TrafficShift.Destinations, func(d networkingv1.WeightedDestination) bool {
		return d.VirtualDestination != nil || d.StaticDestination != nil
	}) {
		return false
	}
	seen := env.topology.Federation(self)
	return !slices.ContainsFunc(targets(p), func(t networkingv1.KubeDestination) bool {
		at, found := env.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName})
		if !found {
			return false // nobody sees it
		}
		mesh, of := env.topology.MeshOf(env.inv.Destinations[at]), env.topology.Federation(at)
		return mesh != env.topology.MeshOf(env.inv.Destinations[self]) || of == nil || !snapshot.SameSlice(of.To, seen.To)
	})
}

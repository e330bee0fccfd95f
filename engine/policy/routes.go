package policy

import (
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// views tells how a Destination is seen from each mesh in which something is
// special about it; its own mesh is always first.
func (w *world) views(self int, applied []snapshot.AppliedTraffic, subsets []snapshot.Subset) []*snapshot.View {
	alike := w.likeness(self, applied)
	made := map[string]*snapshot.View{}
	var out []*snapshot.View
	for at, viewer := range w.topology.Viewers(self) {
		host, _ := w.topology.Host(self, viewer)
		kind := alike(viewer)
		var view *snapshot.View
		if like := made[kind]; like != nil {
			same := *like
			same.Mesh, same.Host = viewer, host
			view = &same
		} else {
			view = w.view(self, viewer, host, applied)
			view.Subsets = subsets
			made[kind] = view
		}
		if f := w.topology.Federation(self); at > 0 && f.KeepAlive != nil {
			view.KeepAlive = f.KeepAlive
		}
		if at == 0 || special(view) {
			out = append(out, view)
		}
	}
	return out
}

func special(v *snapshot.View) bool {
	return len(v.Routes) > 0 || len(v.Subsets) > 0 || v.Outlier != nil || v.TLS != nil || v.KeepAlive != nil
}

// likeness tells meshes apart only as far as the policies do: by the clusters
// that their sources and targets name. Views that are alike are worked out
// once, and their routes are the same objects.
func (w *world) likeness(self int, applied []snapshot.AppliedTraffic) func(*snapshot.MeshPlan) string {
	named := []string{w.inv.Destinations[self].Spec.KubeService.Ref.ClusterName}
	for _, a := range applied {
		named = append(named, namedClusters(a.Spec)...)
		for _, service := range targets(a.Spec.Policy) {
			named = append(named, service.ClusterName)
		}
	}
	return func(viewer *snapshot.MeshPlan) string {
		if slices.Contains(named, viewer.Cluster) {
			return viewer.Cluster
		}
		return ""
	}
}

func (w *world) view(self int, viewer *snapshot.MeshPlan, host string, applied []snapshot.AppliedTraffic) *snapshot.View {
	view := &snapshot.View{Mesh: viewer, Host: host}
	actions := map[string]*snapshot.Action{}
	caught := false
	for i := range applied {
		spec := applied[i].Spec
		requests := matches(spec, viewer.Cluster)
		if len(requests) == 0 || spec.Policy == nil {
			continue
		}
		policy := snapshot.RefOf(snapshot.TrafficPolicy, applied[i].Policy)
		s := &setting{world: w, self: self, spec: spec, viewer: viewer}
		if routed := s.setView(policy, view); !routed {
			continue
		}
		for _, m := range requests {
			key := matchKey(m)
			action := actions[key]
			if action == nil {
				action = &snapshot.Action{}
				actions[key] = action
				caught = caught || takesAll(m)
				view.Routes = append(view.Routes, &snapshot.Route{Match: m, Key: key, Action: action})
			}
			s.setRoute(policy, action)
		}
	}
	slices.SortStableFunc(view.Routes, func(a, b *snapshot.Route) int { return compareMatches(a.Match, b.Match) })
	if len(view.Routes) > 0 && !caught {
		// Without it, requests that no policy is about would find no route.
		view.Routes = append(view.Routes, &snapshot.Route{Action: &snapshot.Action{}})
	}
	if d := w.defaultTLS; view.TLS == nil && d != nil && w.canUse(d.Value, self, viewer) {
		view.TLS = d
	}
	return view
}

// setView sets what holds for all traffic, and reports whether the policy says
// anything about routes.
func (s *setting) setView(policy snapshot.Ref, view *snapshot.View) (routed bool) {
	for i := range features {
		f := &features[i]
		if f.value(s.spec.Policy) == nil {
			continue
		}
		if f.view != nil {
			f.view(s, snapshot.Origin{Ref: policy, Field: f.field}, view)
		}
		routed = routed || f.route != nil
	}
	return routed
}

func (s *setting) setRoute(policy snapshot.Ref, action *snapshot.Action) {
	if n := len(action.Policies); n > 0 && action.Policies[n-1] == policy {
		return // two of its matchers say the same
	}
	action.Policies = append(action.Policies, policy)
	for i := range features {
		f := &features[i]
		if f.route != nil && f.value(s.spec.Policy) != nil {
			f.route(s, snapshot.Origin{Ref: policy, Field: f.field}, action)
		}
	}
}

// targets are the Services to which a policy sends requests.
func targets(p *networkingv1.Policy) []networkingv1.KubeDestination {
	if p == nil {
		return nil
	}
	var out []networkingv1.KubeDestination
	if p.TrafficShift != nil {
		for i := range p.TrafficShift.Destinations {
			if k := p.TrafficShift.Destinations[i].KubeService; k != nil {
				out = append(out, *k)
			}
		}
	}
	if p.Mirror != nil && p.Mirror.KubeService != nil {
		m := p.Mirror.KubeService
		out = append(out, networkingv1.KubeDestination{Name: m.Name, Namespace: m.Namespace, ClusterName: m.ClusterName})
	}
	return out
}

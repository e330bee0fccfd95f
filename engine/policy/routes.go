package policy

import (
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// views are the Destination as seen from each mesh in which it has settings; its own
// mesh is always first.
func (env *environment) views(self int, applied []snapshot.AppliedTraffic, required []subsetRequirement) []*snapshot.View {
	subsets, elsewhere := subsetsOf(required), subsetsElsewhere(required)
	alike := env.viewKeys(self, applied)
	made := map[string]*snapshot.View{}
	var out []*snapshot.View
	own, federation := env.inv.Destinations[self].Spec.KubeService.Ref.ClusterName, env.topology.Federation(self)
	for at, viewer := range env.topology.Viewers(self) {
		var host string
		if at > 0 && viewer.Cluster != own {
			host = federation.Hostname // it is one of those that the service is federated to
		} else {
			host, _ = env.topology.Host(self, viewer)
		}
		kind := alike(viewer)
		var view *snapshot.View
		if like := made[kind]; like != nil {
			if at > 0 && !hasSettings(like) && federation.KeepAlive == nil {
				continue
			}
			same := *like
			same.Mesh, same.Host = viewer, host
			view = &same
		} else {
			view = env.view(self, viewer, host, applied)
			if view.Subsets = subsets; viewer.Cluster != own {
				view.Subsets = elsewhere
			}
			made[kind] = view
		}
		if at > 0 && federation.KeepAlive != nil {
			view.KeepAlive = federation.KeepAlive
		}
		if at == 0 || hasSettings(view) {
			out = append(out, view)
		}
	}
	return out
}

func hasSettings(v *snapshot.View) bool {
	return len(v.Routes) > 0 || len(v.Subsets) > 0 || v.Outlier != nil || v.TLS != nil || v.KeepAlive != nil
}

// viewKeys gives meshes the same key if the policies cannot distinguish them: by the
// clusters that sources and targets name, and by what they cannot reach. Views with one
// key are computed once and share their routes.
func (env *environment) viewKeys(self int, applied []snapshot.AppliedTraffic) func(*snapshot.MeshPlan) string {
	named := []string{env.inv.Destinations[self].Spec.KubeService.Ref.ClusterName}
	for _, a := range applied {
		named = append(named, sourceClusters(a.Spec)...)
		for _, service := range targets(a.Spec.Policy) {
			named = append(named, service.ClusterName)
		}
	}
	return func(viewer *snapshot.MeshPlan) string {
		key := ""
		if slices.Contains(named, viewer.Cluster) {
			key = viewer.Cluster
		}
		for i := range applied {
			if applied[i].Missing {
				c := &fieldContext{env: env, index: self, spec: applied[i].Spec, viewer: viewer}
				key += "/" + c.missingFrom()
			}
		}
		return key
	}
}

func (env *environment) view(self int, viewer *snapshot.MeshPlan, host string, applied []snapshot.AppliedTraffic) *snapshot.View {
	view := &snapshot.View{Mesh: viewer, Host: host}
	actions := map[string]*snapshot.Action{}
	caught, requestsSeen := false, env.routesRequests(self)
	for i := range applied {
		spec := applied[i].Spec
		requests := matches(spec, viewer.Cluster)
		if len(requests) == 0 || spec.Policy == nil {
			continue
		}
		policy := snapshot.RefOf(snapshot.TrafficPolicy, applied[i].Policy)
		c := &fieldContext{env: env, index: self, spec: spec, viewer: viewer}
		if routed := c.setView(policy, view); !routed || !requestsSeen {
			continue
		}
		for _, m := range requests {
			key := env.matchKey(m)
			action := actions[key]
			if action == nil {
				action = &snapshot.Action{}
				actions[key] = action
				inherit(env, self, viewer, policy, m, applied[:i], action)
				caught = caught || takesAll(m)
				view.Routes = append(view.Routes, &snapshot.Route{Match: m, Key: key, Action: action})
			}
			c.setRoute(policy, action)
		}
	}
	slices.SortStableFunc(view.Routes, func(a, b *snapshot.Route) int { return compareMatches(a.Match, b.Match) })
	if len(view.Routes) > 0 && !caught {
		// Without this route, requests that no policy selects would match none.
		view.Routes = append(view.Routes, &snapshot.Route{Action: &snapshot.Action{}})
	}
	if d := env.defaultTLS; view.TLS == nil && d != nil && env.canUse(d.Value, self, viewer) {
		view.TLS = d
	}
	return view
}

// setView sets what applies to all traffic. It reports whether the policy has fields
// for routes.
func (c *fieldContext) setView(policy snapshot.Ref, view *snapshot.View) (routed bool) {
	for i := range features {
		f := &features[i]
		if f.value(c.spec.Policy) == nil {
			continue
		}
		if f.view != nil {
			f.view(c, snapshot.Origin{Ref: policy, Field: f.field}, view)
		}
		routed = routed || f.route != nil
	}
	return routed
}

func (c *fieldContext) setRoute(policy snapshot.Ref, action *snapshot.Action) {
	if n := len(action.Policies); n > 0 && action.Policies[n-1] == policy {
		return // two of its matchers are equal
	}
	action.Policies = append(action.Policies, policy)
	for i := range features {
		f := &features[i]
		if f.route != nil && f.value(c.spec.Policy) != nil {
			f.route(c, snapshot.Origin{Ref: policy, Field: f.field}, action)
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

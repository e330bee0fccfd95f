package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// updateExtended tracks the Destinations with routes that need objects besides those
// of the Destination. It checks only those whose plans are new.
func (r *reconciler) updateExtended() {
	if r.rebuilt || r.extended == nil {
		r.extended = map[int]bool{}
		for i, s := range r.states {
			r.markExtended(i, s)
		}
		return
	}
	for i := range r.changed {
		r.markExtended(i, r.states[i])
	}
}

// planFilters lists the filters that routes need, by mesh.
func (r assembler) planFilters() []*snapshot.FilterPlan {
	needs := map[meshPlace]*snapshot.FilterPlan{}
	for i := range r.extended {
		for _, v := range r.states[i].plan.Views {
			for _, route := range v.Routes {
				addFilters(needs, v.Mesh, route.Action)
			}
		}
	}
	out := make([]*snapshot.FilterPlan, 0, len(needs))
	for _, now := range needs {
		now.Policies = firstRefs(now.Policies)
		if r.plan != nil {
			for _, was := range r.plan.Filters {
				if was.Mesh == now.Mesh && was.CSRF == now.CSRF && was.RateLimit == now.RateLimit && slices.Equal(was.Policies, now.Policies) {
					now = was
					break
				}
			}
		}
		out = append(out, now)
	}
	slices.SortFunc(out, func(a, b *snapshot.FilterPlan) int { return a.Mesh.Ref.Compare(b.Mesh.Ref) })
	return out
}

// meshPlace is the namespace for mesh-wide configuration. Revisions of one control
// plane share it, and a filter must be added there only once.
type meshPlace struct{ cluster, namespace string }

func addFilters(needs map[meshPlace]*snapshot.FilterPlan, mesh *snapshot.MeshPlan, a *snapshot.Action) {
	if a.CSRF == nil && a.RateLimit == nil {
		return
	}
	at := meshPlace{mesh.Cluster, mesh.RootNamespace}
	plan := needs[at]
	if plan == nil {
		plan = &snapshot.FilterPlan{Mesh: mesh}
		needs[at] = plan
	}
	if mesh.Ref.Compare(plan.Mesh.Ref) < 0 {
		plan.Mesh = mesh
	}
	if a.CSRF != nil {
		plan.CSRF = true
		plan.Policies = append(plan.Policies, a.CSRF.Origin.Ref)
	}
	if a.RateLimit != nil {
		plan.RateLimit = true
		plan.Policies = append(plan.Policies, a.RateLimit.Origin.Ref)
	}
}

func (r *reconciler) markExtended(i int, s *destinationState) {
	delete(r.extended, i)
	for _, v := range s.plan.Views {
		for _, route := range v.Routes {
			a := route.Action
			if a.CSRF != nil || a.RateLimit != nil ||
				(a.Targets != nil && slices.ContainsFunc(a.Targets.Value, func(t snapshot.Target) bool { return t.Place == snapshot.PlaceOutside })) {
				r.extended[i] = true
				return
			}
		}
	}
}

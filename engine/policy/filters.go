package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// findSpecial keeps track of the Destinations with routes that need more than the
// objects of the Destination. It looks only at those whose plans are new.
func (r *round) findSpecial() {
	if r.fresh || r.special == nil {
		r.special = map[int]bool{}
		for i, c := range r.cells {
			r.markSpecial(i, c)
		}
		return
	}
	for i := range r.changed {
		r.markSpecial(i, r.cells[i])
	}
}

// filterPlans gathers what routes need of the proxies of each mesh.
func (r *round) filterPlans() []*snapshot.FilterPlan {
	needs := map[meshPlace]*snapshot.FilterPlan{}
	for i := range r.special {
		for _, v := range r.cells[i].plan.Views {
			for _, route := range v.Routes {
				need(needs, v.Mesh, route.Action)
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

// meshPlace is where what holds for all of a mesh must stand; revisions of one
// control plane share it, and would add a filter twice.
type meshPlace struct{ cluster, namespace string }

func need(needs map[meshPlace]*snapshot.FilterPlan, mesh *snapshot.MeshPlan, a *snapshot.Action) {
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

func (r *round) markSpecial(i int, c *cell) {
	delete(r.special, i)
	for _, v := range c.plan.Views {
		for _, route := range v.Routes {
			a := route.Action
			if a.CSRF != nil || a.RateLimit != nil ||
				(a.Targets != nil && slices.ContainsFunc(a.Targets.Value, func(t snapshot.Target) bool { return t.External })) {
				r.special[i] = true
				return
			}
		}
	}
}

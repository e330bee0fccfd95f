package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// filterPlans gathers what routes need of the proxies of each mesh. It looks
// only at Destinations whose plans are new, or that needed something before.
func (r *round) filterPlans() []*snapshot.FilterPlan {
	if r.fresh || r.filtered == nil {
		r.filtered = map[int]bool{}
		for i, c := range r.cells {
			r.markFiltered(i, c)
		}
	} else {
		for i := range r.changed {
			r.markFiltered(i, r.cells[i])
		}
	}
	needs := map[meshPlace]*snapshot.FilterPlan{}
	for i := range r.filtered {
		for _, v := range r.cells[i].plan.Views {
			for _, route := range v.Routes {
				need(needs, v.Mesh, route.Action)
			}
		}
	}
	out := make([]*snapshot.FilterPlan, 0, len(needs))
	for _, now := range needs {
		slices.SortFunc(now.Policies, snapshot.Ref.Compare)
		now.Policies = slices.Compact(now.Policies)
		now.Policies = now.Policies[:min(len(now.Policies), maxListed)]
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

// meshPlace is where a mesh keeps what holds for all of it; revisions of one
// control plane share it, and would add a filter twice.
type meshPlace struct{ cluster, namespace string }

func need(needs map[meshPlace]*snapshot.FilterPlan, mesh *snapshot.MeshPlan, a *snapshot.Action) {
	if a.CSRF == nil && a.RateLimit == nil {
		return
	}
	at := meshPlace{mesh.Cluster, mesh.Namespace}
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

func (r *round) markFiltered(i int, c *cell) {
	delete(r.filtered, i)
	needs := map[meshPlace]*snapshot.FilterPlan{}
	for _, v := range c.plan.Views {
		for _, route := range v.Routes {
			need(needs, v.Mesh, route.Action)
		}
	}
	if len(needs) > 0 {
		r.filtered[i] = true
	}
}

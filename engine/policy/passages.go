package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// planPassages lists what the gateways of meshes pass on: the names of services that are federated through them, and those
// by which they know VirtualDestinations. The list of before holds while neither changes.
func (r assembler) planPassages(virtuals []*snapshot.VirtualDestinationPlan) []*snapshot.PassagePlan {
	if changed := r.updatePassed(); !changed && r.plan != nil && snapshot.SameSlice(virtuals, r.plan.VirtualDestinations) {
		return r.plan.Passages
	}
	hosts, virtual := map[snapshot.Ref][]string{}, map[snapshot.Ref][]string{}
	for _, d := range r.passed {
		for i := range d.Mesh.Gateways {
			hosts[d.Mesh.Gateways[i].Destination] = append(hosts[d.Mesh.Gateways[i].Destination], d.Federation.Hostname)
		}
	}
	for _, v := range virtuals {
		for _, view := range v.Views {
			for _, p := range view.Priorities {
				for _, t := range p.Targets {
					for i := range t.Through {
						at := t.Through[i].Destination
						host := snapshot.PassedAs(v.Ref, t.Backing.Mesh.HostnameSuffix)
						hosts[at], virtual[at] = append(hosts[at], host), append(virtual[at], host)
					}
				}
			}
		}
	}
	var out []*snapshot.PassagePlan
	for _, mesh := range r.env.topology.Meshes {
		for i := range mesh.Gateways {
			gw := &mesh.Gateways[i]
			passes := hosts[gw.Destination]
			if gw.Shared || mesh.Limited || len(passes) == 0 {
				continue
			}
			slices.Sort(passes)
			slices.Sort(virtual[gw.Destination])
			out = append(out, r.reusePassage(&snapshot.PassagePlan{
				Mesh: mesh, Gateway: gw, Hosts: slices.Compact(passes), Virtual: slices.Compact(virtual[gw.Destination]),
			}))
		}
	}
	slices.SortFunc(out, func(a, b *snapshot.PassagePlan) int { return a.Gateway.Destination.Compare(b.Gateway.Destination) })
	return out
}

// reusePassage returns the plan of before if it says the same.
func (r assembler) reusePassage(now *snapshot.PassagePlan) *snapshot.PassagePlan {
	if r.plan != nil {
		for _, was := range r.plan.Passages {
			if was.Gateway == now.Gateway && was.Mesh == now.Mesh && slices.Equal(was.Hosts, now.Hosts) && slices.Equal(was.Virtual, now.Virtual) {
				return was
			}
		}
	}
	return now
}

// updatePassed tracks the Destinations that other meshes reach through gateways which pass connections on, and reports
// whether they, their names or their gateways changed. It looks only at plans that are new.
func (r *reconciler) updatePassed() (changed bool) {
	mark := func(i int, d *snapshot.DestinationPlan) {
		was := r.passed[i]
		delete(r.passed, i)
		if f := d.Federation; f != nil && !f.Flat && !f.Limited {
			r.passed[i] = d
		}
		now := r.passed[i]
		changed = changed || (was == nil) != (now == nil) || now != nil && (was.Mesh != now.Mesh || was.Federation.Hostname != now.Federation.Hostname)
	}
	if r.rebuilt || r.passed == nil {
		r.passed = map[int]*snapshot.DestinationPlan{}
		for i, s := range r.states {
			mark(i, s.plan)
		}
		return true
	}
	for i := range r.changed {
		mark(i, r.states[i].plan)
	}
	return changed
}

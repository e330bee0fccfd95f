package virtualmesh

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// A VirtualMesh in mode DECLARED offers what its selectors select, as one in mode ALL federates it. Of what is offered to it, a
// mesh imports what Needs say that its callers call. Detours follow from that: if callers of a mesh know a service, and a policy
// sends their requests for it elsewhere, they need that as well.

// importer decides what the meshes of VirtualMeshes in mode DECLARED import.
type importer struct {
	*Topology
	exporters map[*snapshot.MeshPlan]*exporter
	// calls are those of each Destination, everything those of all, and detours begin there.
	calls      map[int][]*Call
	everything []*Call
	detours    map[int][]*Detour
	// offered are the federations of mode ALL, by index of the Destination, and imported what is imported of them.
	offered  map[int]*snapshot.Federation
	imported map[int]imports
	// detoured are the origins of what is imported because of detours.
	detoured map[passage][]snapshot.Origin
}

// imports are the meshes that import a Destination, ascending, and because of what.
type imports struct {
	to []*snapshot.MeshPlan
	by [][]snapshot.Origin
}

// passage is a Destination that a mesh imports.
type passage struct {
	destination int
	to          *snapshot.MeshPlan
}

// importDeclared leaves in the federations of VirtualMeshes in mode DECLARED the meshes that need them.
func importDeclared(t *Topology, exporters map[*networkingv1.VirtualMesh]*exporter, needs *Needs, before *Topology) {
	m := &importer{
		Topology: t, exporters: map[*snapshot.MeshPlan]*exporter{}, calls: map[int][]*Call{}, detours: map[int][]*Detour{},
		offered: map[int]*snapshot.Federation{}, imported: map[int]imports{}, detoured: map[passage][]snapshot.Origin{},
	}
	for vm, e := range exporters {
		if Declares(vm) {
			for _, member := range e.plan.Members {
				m.exporters[member] = e
			}
		}
	}
	if len(m.exporters) == 0 {
		return
	}
	m.index(needs)
	for i, f := range t.federations {
		if f != nil && m.exporters[t.MeshOf(t.inv.Destinations[i])] != nil {
			m.offered[i] = f
			m.imported[i] = m.importsOf(i)
		}
	}
	m.followDetours()
	m.noteOffers(before)
	for i := range m.offered {
		t.federations[i] = m.federation(i)
	}
}

func (m *importer) index(needs *Needs) {
	if needs == nil {
		return
	}
	for _, c := range needs.Calls {
		if c.Everything {
			m.everything = append(m.everything, c)
		}
		for _, i := range c.Destinations {
			m.calls[i] = append(m.calls[i], c)
		}
	}
	for _, d := range needs.Detours {
		for _, i := range d.Selected {
			m.detours[i] = append(m.detours[i], d)
		}
	}
}

// importsOf are those of a Destination, as far as detours were followed.
func (m *importer) importsOf(i int) imports {
	var out imports
	f, e := m.offered[i], m.exporters[m.MeshOf(m.inv.Destinations[i])]
	explicit := e.declaredBySelectors(m.inv.Destinations[i])
	for _, mesh := range f.To {
		var by []snapshot.Origin
		add := func(origins []snapshot.Origin) {
			if len(by) == 0 {
				by = origins // shared by all that one object declares
				return
			}
			by = append(slices.Clip(by), origins...)
		}
		for _, calls := range [][]*Call{m.calls[i], m.everything} {
			for _, c := range calls {
				if c.makes(m.Topology, mesh) {
					add(c.Origins)
				}
			}
		}
		for _, rule := range explicit {
			if slices.Contains(rule.to, mesh) {
				add([]snapshot.Origin{{Ref: e.plan.Ref, Field: rule.field}})
			}
		}
		add(m.detoured[passage{i, mesh}])
		if len(by) == 0 {
			continue
		}
		if len(by) > 1 {
			by = slices.Clone(by)
			slices.SortFunc(by, snapshot.CompareOrigins)
			by = slices.Compact(by)
		}
		out.to, out.by = append(out.to, mesh), append(out.by, by)
	}
	return out
}

// declaredBySelectors are the rules that name both a Destination and the meshes that import it.
func (e *exporter) declaredBySelectors(d *discoveryv1.Destination) []exportRule {
	var out []exportRule
	for _, rule := range e.rules {
		if rule.to != nil && len(rule.selectors) > 0 && inventory.SelectsDestination(rule.selectors, d) {
			out = append(out, rule)
		}
	}
	return out
}

// followDetours adds what callers need because requests for what they know go there. Each round can only add, so that it ends.
func (m *importer) followDetours() {
	var queue []int
	for i := range m.inv.Destinations {
		if len(m.detours[i]) > 0 {
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, viewer := range m.viewers(i) {
			for _, d := range m.detours[i] {
				if !d.concerns(viewer.Cluster) {
					continue
				}
				for _, target := range d.Targets {
					if m.detour(target, viewer, d.Origin) && len(m.detours[target]) > 0 {
						queue = append(queue, target)
					}
				}
			}
		}
	}
}

// viewers are the meshes that know a Destination, its own first.
func (m *importer) viewers(i int) []*snapshot.MeshPlan {
	if m.offered[i] == nil {
		return m.Viewers(i)
	}
	return append([]*snapshot.MeshPlan{m.MeshOf(m.inv.Destinations[i])}, m.imported[i].to...)
}

// detour has a mesh import the target of a detour, and reports whether that is new to the mesh.
func (m *importer) detour(target int, viewer *snapshot.MeshPlan, origin snapshot.Origin) bool {
	f, at := m.offered[target], passage{target, viewer}
	if f == nil || !slices.Contains(f.To, viewer) || slices.Contains(m.detoured[at], origin) {
		return false
	}
	m.detoured[at] = append(m.detoured[at], origin)
	isNew := !slices.Contains(m.imported[target].to, viewer)
	m.imported[target] = m.importsOf(target)
	return isNew
}

// federation is what is left of a federation; nil if no mesh imports it.
func (m *importer) federation(i int) *snapshot.Federation {
	is := m.imported[i]
	if len(is.to) == 0 {
		return nil
	}
	f, mesh := *m.offered[i], m.MeshOf(m.inv.Destinations[i])
	f.To, f.ImportedBy = is.to, is.by
	f.Issues = m.exporters[mesh].issuesOf(mesh, f.To)
	return &f
}

// noteOffers notes what is offered. Equal offers of one mesh are one object, and those of the last Topology are reused.
func (m *importer) noteOffers(before *Topology) {
	m.offersOf = map[*snapshot.MeshPlan][]*snapshot.Offer{}
	m.offers = make([]*snapshot.Offer, len(m.inv.Destinations))
	for i, f := range m.offered {
		mesh := m.MeshOf(m.inv.Destinations[i])
		same := func(o *snapshot.Offer) bool { return o.Origin == f.Origin && slices.Equal(o.To, f.To) }
		at := slices.IndexFunc(m.offersOf[mesh], same)
		if at < 0 {
			offer := &snapshot.Offer{To: f.To, Origin: f.Origin}
			if before != nil {
				if was := slices.IndexFunc(before.offersOf[mesh], same); was >= 0 {
					offer = before.offersOf[mesh][was]
				}
			}
			at, m.offersOf[mesh] = len(m.offersOf[mesh]), append(m.offersOf[mesh], offer)
		}
		m.offers[i] = m.offersOf[mesh][at]
	}
}

// Offered says where a VirtualMesh in mode DECLARED lets a Destination be imported; nil if none does.
func (t *Topology) Offered(i int) *snapshot.Offer {
	if t.offers == nil {
		return nil
	}
	return t.offers[i]
}

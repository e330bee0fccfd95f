package policy

import (
	"reflect"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// Planner makes Plans. It remembers the last one and works out again only what
// has other inputs than then; what it answers never depends on what it
// remembers. The zero Planner is ready. It is not safe for concurrent use.
type Planner struct {
	// Dialects say what each kind of mesh can express; a mesh of a kind that
	// is not among them is taken to express everything. They never change.
	Dialects []*snapshot.Dialect

	basis   basis
	world   *world
	cells   []*cell
	traffic []*trafficBinding // ascending by ref
	access  []*accessBinding  // ascending by ref
	virtual virtualMemo
	plan    *snapshot.Plan

	dependencies dependencies
	byHand       map[string]*handWritten
	// special are the Destinations with routes that need filters, or go outside.
	special map[int]bool
}

// basis is what a Planner was last given.
type basis struct {
	discovered    []*snapshot.Discovered
	domains       []string
	settings      *settingsv1.Settings
	virtualMeshes []*networkingv1.VirtualMesh
	traffic       []*networkingv1.TrafficPolicy
	access        []*networkingv1.AccessPolicy
	virtual       []*enterprisev1beta1.VirtualDestination
	stored        []*discoveryv1.Destination
	// listed are all stored Destinations, and externals those that users wrote.
	listed, externals []*discoveryv1.Destination
	dependencies      []*enterprisev1beta1.ServiceDependency
}

// round is the work of one Plan: which cells are to be looked at again.
type round struct {
	*Planner
	next     basis
	fresh    bool         // the world is another one
	dirty    map[int]bool // Destinations to look at; all if fresh
	changed  map[int]bool // Destinations whose plans are new
	policies map[snapshot.Ref]bool
	virtuals map[snapshot.Ref]bool // VirtualDestinations to look at
	rebacked map[int]bool          // Destinations behind other VirtualDestinations than before
	// handChanged: what users wrote for meshes themselves is not what it was.
	handChanged bool
	judged      map[int]*grants // by the first Destination of those judged together
}

// Plan decides what shall be true.
func (p *Planner) Plan(in *snapshot.Input, discovered []*snapshot.Discovered) *snapshot.Plan {
	r := &round{Planner: p, dirty: map[int]bool{}, changed: map[int]bool{}, policies: map[snapshot.Ref]bool{}, virtuals: map[snapshot.Ref]bool{}, rebacked: map[int]bool{}}
	r.next = p.basis.next(in, discovered)
	r.renewHandWritten(in.Clusters, in.RefuseIntersecting)
	r.renewWorld(in)
	r.world.byHand, r.world.refuse = r.byHand, in.RefuseIntersecting
	r.bind()
	r.bindVirtual()
	r.markCeasing(in.Management)
	r.markHandWritten()
	r.markStored()
	r.accept()
	r.planDestinations()
	r.planDependencies()
	p.plan = r.assemble()
	p.world.judged = nil
	p.basis = r.next
	return p.plan
}

// next is the new basis, with the old objects in the place of those that say the same.
func (b *basis) next(in *snapshot.Input, discovered []*snapshot.Discovered) basis {
	m := in.Management
	n := basis{
		discovered:    discovered,
		virtualMeshes: keep(b.virtualMeshes, m.VirtualMeshes, sameVirtualMesh),
		traffic:       keep(b.traffic, m.TrafficPolicies, sameTraffic),
		access:        keep(b.access, m.AccessPolicies, sameAccess),
		virtual:       keep(b.virtual, m.VirtualDestinations, sameVirtualDestination),
		stored:        keep(b.stored, m.Destinations, sameStored),
		externals:     b.externals,
		listed:        m.Destinations,
		dependencies:  keep(b.dependencies, m.ServiceDependencies, sameDependency),
	}
	if !snapshot.SameSlice(b.listed, n.listed) {
		n.externals = externals(b.externals, n.listed)
	}
	for _, c := range in.Clusters {
		n.domains = append(n.domains, c.Name+"="+c.DomainOrDefault())
	}
	if len(m.Settings) > 0 {
		n.settings = virtualmesh.SettingsInForce(m.Settings)
		if b.settings != nil && sameHead(b.settings, n.settings) && reflect.DeepEqual(b.settings.Spec, n.settings.Spec) {
			n.settings = b.settings
		}
	}
	return n
}

// renewWorld builds the world anew if anything in it changed, and finds the
// cell of each Destination in it.
func (r *round) renewWorld(in *snapshot.Input) {
	was, old := &r.basis, r.world
	sameThings := old != nil && slices.Equal(was.discovered, r.next.discovered) && slices.Equal(was.domains, r.next.domains)
	if sameThings && slices.Equal(was.virtualMeshes, r.next.virtualMeshes) && was.settings == r.next.settings &&
		slices.Equal(was.externals, r.next.externals) {
		return
	}
	r.fresh = true
	w := &world{dialects: r.Dialects}
	var before *virtualmesh.Topology
	if old != nil {
		before = old.topology
	}
	if sameThings {
		w.inv = old.inv
	} else {
		w.inv = inventory.New(r.next.discovered, in.Clusters)
	}
	w.topology = virtualmesh.New(w.inv, r.next.virtualMeshes, r.next.settings, r.Dialects, before)
	w.accounts = newAccounts(w.inv, w.topology)
	w.defaultTLS = defaultTLS(r.next.settings)
	w.externals = r.next.externals
	if old != nil && reflect.DeepEqual(old.defaultTLS, w.defaultTLS) {
		w.defaultTLS = old.defaultTLS
	}
	r.cells = moveCells(old, r.cells, w)
	r.world = w
}

// moveCells takes along what is known of each Destination of an old world, but
// for who has a say in it.
func moveCells(old *world, cells []*cell, w *world) []*cell {
	out := make([]*cell, len(w.inv.Destinations))
	at := 0
	for i, d := range w.inv.Destinations {
		out[i] = &cell{}
		if old == nil {
			continue
		}
		for at < len(cells) && old.inv.Destinations[at].Name < d.Name {
			at++
		}
		if at < len(cells) && old.inv.Destinations[at].Name == d.Name {
			c := *cells[at]
			c.traffic, c.access, c.required = nil, nil, nil
			out[i] = &c
		}
	}
	return out
}

func defaultTLS(s *settingsv1.Settings) *snapshot.Owned[networkingv1.TLSMode] {
	if s == nil || s.Spec.Mtls == nil || s.Spec.Mtls.Istio == nil {
		return nil
	}
	mode := s.Spec.Mtls.Istio.TlsMode
	if mode == "" {
		mode = networkingv1.TLSModeDisable // the enum's zero
	}
	return &snapshot.Owned[networkingv1.TLSMode]{
		Value:  mode,
		Origin: snapshot.Origin{Ref: snapshot.RefOf(snapshot.Settings, s), Field: "mtls.istio.tlsMode"},
	}
}

// markStored looks again at Destinations whose stored state changed, as far as
// policies depend on it.
func (r *round) markStored() {
	if r.fresh || snapshot.SameSlice(r.basis.stored, r.next.stored) {
		return
	}
	for i, d := range r.world.inv.Destinations {
		if len(r.cells[i].traffic) > 0 && find(r.basis.stored, d) != find(r.next.stored, d) {
			r.dirty[i] = true
		}
	}
}

// find looks a Destination up in a list that is ascending by namespace and name.
func find(list []*discoveryv1.Destination, d *discoveryv1.Destination) *discoveryv1.Destination {
	i, ok := slices.BinarySearchFunc(list, d, func(a, b *discoveryv1.Destination) int { return compareNames(a, b) })
	if !ok {
		return nil
	}
	return list[i]
}

// each calls f for the Destinations to look at.
func (r *round) each(f func(i int, c *cell)) {
	if r.fresh {
		for i, c := range r.cells {
			f(i, c)
		}
		return
	}
	for i := range r.dirty {
		f(i, r.cells[i])
	}
}

// accept decides which TrafficPolicies are in force, and carries what they
// require of other Destinations there.
func (r *round) accept() {
	r.each(func(i int, c *cell) {
		now := r.world.gather(i, c, find(r.next.stored, r.world.inv.Destinations[i]))
		same := c.plan != nil && now.same(&c.inputs)
		if same && !r.fresh {
			return
		}
		r.shift(i, c, &now)
		accepted := c.accepted
		if !same {
			r.changed[i] = true
			accepted = nil
			if len(c.traffic) > 0 {
				accepted = r.world.accept(i, c.traffic, now.stored)
			}
			for _, b := range c.traffic {
				r.policies[b.ref] = true
			}
		}
		r.require(i, c, accepted)
		c.inputs, c.accepted = now, accepted
	})
}

// require moves a Destination's requirements from what was accepted to what is.
func (r *round) require(from int, c *cell, accepted *acceptance) {
	if !r.fresh {
		for at := range r.world.requirements(from, c.accepted) {
			target := r.cells[at]
			target.required = slices.DeleteFunc(slices.Clone(target.required), func(x requirement) bool { return x.from == from })
			r.dirty[at] = true
		}
	}
	for at, required := range r.world.requirements(from, accepted) {
		target := r.cells[at]
		target.required = append(target.required, required...)
		r.dirty[at] = true
	}
}

// planDestinations plans what has other inputs than before.
func (r *round) planDestinations() {
	r.each(func(i int, c *cell) {
		sortRequirements(c.required)
		rules, granted := r.accessOn(i, c)
		if !slices.Equal(rules, c.rules) || !slices.Equal(granted, c.granted) {
			r.changed[i] = true
			c.rules, c.granted = rules, granted
		}
		if subsets := subsetsOf(c.required); !reflect.DeepEqual(subsets, c.subsets) {
			r.changed[i] = true
			c.subsets = subsets
		}
		if !r.changed[i] && sameRequirers(c) {
			return
		}
		plan := r.world.planDestination(i, c)
		if c.plan != nil && reflect.DeepEqual(plan, c.plan) {
			delete(r.changed, i)
			return
		}
		c.plan = plan
		r.changed[i] = true
	})
}

// accessOn lists the AccessPolicies in force on a Destination, and what they
// come to where access is granted to accounts. Destinations that share accounts
// are judged once, together.
func (r *round) accessOn(i int, c *cell) ([]*snapshot.AccessRule, []*snapshot.Grant) {
	d := r.world.inv.Destinations[i]
	if k := d.Spec.KubeService; k == nil || len(k.WorkloadSelectorLabels) == 0 {
		return nil, nil // there are no pods on which access could be enforced
	}
	mesh := r.world.topology.MeshOf(d)
	if mesh == nil || !mesh.ByAccount {
		rules := make([]*snapshot.AccessRule, 0, len(c.access))
		for _, b := range c.access {
			rules = append(rules, b.rule)
		}
		return rules, nil
	}
	members := r.world.accounts.members(i)
	if r.judged == nil {
		r.judged = map[int]*grants{}
	}
	judged := r.judged[members[0]]
	if judged == nil {
		judged = r.world.grant(members, r.cells)
		r.judged[members[0]] = judged
	}
	c.grants = judged
	return judged.on(i, c.access)
}

// sameRequirers reports whether the plan names the policies that require subsets.
func sameRequirers(c *cell) bool {
	return slices.Equal(requirers(c.required), c.plan.RequiredSubsets)
}

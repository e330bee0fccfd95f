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

// Planner makes Plans. It caches the last one and computes again only what has other
// inputs; the result never depends on the cache. The zero Planner is ready for use.
// It is not safe for concurrent use.
type Planner struct {
	// Dialects say what each kind of mesh supports; a mesh of another kind supports
	// nothing. They never change.
	Dialects []*snapshot.Dialect

	last                inputs
	env                 *environment
	states              []*destinationState
	traffic             []*trafficBinding // ascending by ref
	access              []*accessBinding  // ascending by ref
	virtualDestinations virtualDestinationStates
	plan                *snapshot.Plan

	dependencies dependencies
	handWritten  map[string]*handWritten
	// extended are the Destinations with routes that need filters or external
	// services.
	extended map[int]bool
}

// inputs are what a Plan is made from.
type inputs struct {
	discovered          []*snapshot.Discovered
	domains             []string
	settings            *settingsv1.Settings
	virtualMeshes       []*networkingv1.VirtualMesh
	traffic             []*networkingv1.TrafficPolicy
	access              []*networkingv1.AccessPolicy
	virtualDestinations []*enterprisev1beta1.VirtualDestination
	stored              []*discoveryv1.Destination
	// destinations are all stored Destinations, and externals those that users wrote.
	destinations, externals []*discoveryv1.Destination
	dependencies            []*enterprisev1beta1.ServiceDependency
}

// reconciler makes one Plan. It tracks what has to be computed again.
type reconciler struct {
	*Planner
	next                     inputs
	rebuilt                  bool         // the environment is new
	dirty                    map[int]bool // Destinations to plan; all if rebuilt
	changed                  map[int]bool // Destinations whose plans are new
	dirtyPolicies            map[snapshot.Ref]bool
	dirtyVirtualDestinations map[snapshot.Ref]bool
	rebacked                 map[int]bool // Destinations whose VirtualDestinations changed
	// handWrittenChanged is set if a hand-written object changed.
	handWrittenChanged bool
	grants             map[int]*grants // by the first Destination of the account group
}

// Plan makes the Plan for an Input and what was discovered in it.
func (p *Planner) Plan(in *snapshot.Input, discovered []*snapshot.Discovered) *snapshot.Plan {
	r := &reconciler{Planner: p, dirty: map[int]bool{}, changed: map[int]bool{}, dirtyPolicies: map[snapshot.Ref]bool{}, dirtyVirtualDestinations: map[snapshot.Ref]bool{}, rebacked: map[int]bool{}}
	r.next = p.last.next(in, discovered)
	r.updateHandWritten(in.Clusters, in.RefuseIntersecting)
	r.updateEnvironment(in)
	r.env.handWritten, r.env.refuseIntersecting = r.handWritten, in.RefuseIntersecting
	r.bindPolicies()
	r.bindVirtualDestinations()
	r.readEnforced(in.Management)
	r.markHandWritten()
	r.markStored()
	r.acceptTrafficPolicies()
	r.planDestinations()
	r.planDependencies()
	p.plan = r.assemble()
	p.env.specIssues = nil
	p.last = r.next
	return p.plan
}

// next reads the inputs. Objects that are equal to the last ones are replaced by
// those.
func (last *inputs) next(in *snapshot.Input, discovered []*snapshot.Discovered) inputs {
	m := in.Management
	n := inputs{
		discovered:          discovered,
		virtualMeshes:       reuseUnchanged(last.virtualMeshes, m.VirtualMeshes, sameVirtualMesh),
		traffic:             reuseUnchanged(last.traffic, m.TrafficPolicies, sameTraffic),
		access:              reuseUnchanged(last.access, m.AccessPolicies, sameAccess),
		virtualDestinations: reuseUnchanged(last.virtualDestinations, m.VirtualDestinations, sameVirtualDestination),
		stored:              reuseUnchanged(last.stored, m.Destinations, sameStored),
		externals:           last.externals,
		destinations:        m.Destinations,
		dependencies:        reuseUnchanged(last.dependencies, m.ServiceDependencies, sameDependency),
	}
	if !snapshot.SameSlice(last.destinations, n.destinations) {
		n.externals = externals(last.externals, n.destinations)
	}
	for _, c := range in.Clusters {
		n.domains = append(n.domains, c.Name+"="+c.DomainOrDefault())
	}
	if len(m.Settings) > 0 {
		n.settings = virtualmesh.SettingsInForce(m.Settings)
		if last.settings != nil && sameMetadata(last.settings, n.settings) && reflect.DeepEqual(last.settings.Spec, n.settings.Spec) {
			n.settings = last.settings
		}
	}
	return n
}

// updateEnvironment builds a new environment if anything in it changed, and carries
// the states of the Destinations over.
func (r *reconciler) updateEnvironment(in *snapshot.Input) {
	was, old := &r.last, r.env
	sameThings := old != nil && slices.Equal(was.discovered, r.next.discovered) && slices.Equal(was.domains, r.next.domains)
	if sameThings && slices.Equal(was.virtualMeshes, r.next.virtualMeshes) && was.settings == r.next.settings &&
		slices.Equal(was.externals, r.next.externals) {
		return
	}
	r.rebuilt = true
	env := &environment{}
	var previous *virtualmesh.Topology
	if old != nil {
		previous = old.topology
	}
	if sameThings {
		env.inv = old.inv
	} else {
		env.inv = inventory.New(r.next.discovered, in.Clusters)
	}
	env.topology = virtualmesh.New(env.inv, r.next.virtualMeshes, r.next.settings, r.Dialects, previous)
	env.accounts = newAccounts(env.inv, env.topology)
	env.defaultTLS = defaultTLS(r.next.settings)
	env.externals = r.next.externals
	if old != nil && reflect.DeepEqual(old.defaultTLS, env.defaultTLS) {
		env.defaultTLS = old.defaultTLS
	}
	r.states = carryStates(old, r.states, env)
	r.env = env
}

// carryStates carries the state of each Destination over to a new environment,
// without its policies.
func carryStates(old *environment, states []*destinationState, env *environment) []*destinationState {
	out := make([]*destinationState, len(env.inv.Destinations))
	at := 0
	for i, d := range env.inv.Destinations {
		out[i] = &destinationState{}
		if old == nil {
			continue
		}
		for at < len(states) && old.inv.Destinations[at].Name < d.Name {
			at++
		}
		if at < len(states) && old.inv.Destinations[at].Name == d.Name {
			s := *states[at]
			s.traffic, s.access, s.required = nil, nil, nil
			out[i] = &s
		}
	}
	return out
}

func defaultTLS(s *settingsv1.Settings) *snapshot.WithOrigin[networkingv1.TLSMode] {
	if s == nil || s.Spec.Mtls == nil || s.Spec.Mtls.Istio == nil {
		return nil
	}
	mode := s.Spec.Mtls.Istio.TlsMode
	if mode == "" {
		mode = networkingv1.TLSModeDisable // the default of the enum
	}
	return &snapshot.WithOrigin[networkingv1.TLSMode]{
		Value:  mode,
		Origin: snapshot.Origin{Ref: snapshot.RefOf(snapshot.Settings, s), Field: "mtls.istio.tlsMode"},
	}
}

// markStored marks the Destinations whose stored specs of policies changed.
func (r *reconciler) markStored() {
	if r.rebuilt || snapshot.SameSlice(r.last.stored, r.next.stored) {
		return
	}
	for i, d := range r.env.inv.Destinations {
		if len(r.states[i].traffic) > 0 && find(r.last.stored, d) != find(r.next.stored, d) {
			r.dirty[i] = true
		}
	}
}

// find finds a Destination in a list that is ascending by namespace and name.
func find(list []*discoveryv1.Destination, d *discoveryv1.Destination) *discoveryv1.Destination {
	i, ok := slices.BinarySearchFunc(list, d, snapshot.CompareNames)
	if !ok {
		return nil
	}
	return list[i]
}

// eachDirty calls f for the Destinations to look at.
func (r *reconciler) eachDirty(f func(i int, s *destinationState)) {
	if r.rebuilt {
		for i, s := range r.states {
			f(i, s)
		}
		return
	}
	for i := range r.dirty {
		f(i, r.states[i])
	}
}

// acceptTrafficPolicies decides which TrafficPolicies are in force, and adds the
// subsets that they require to the target Destinations.
func (r *reconciler) acceptTrafficPolicies() {
	r.eachDirty(func(i int, s *destinationState) {
		now := r.env.collectInputs(i, s, find(r.next.stored, r.env.inv.Destinations[i]))
		same := s.plan != nil && now.same(&s.inputs)
		if same && !r.rebuilt {
			return
		}
		r.trackShifts(i, s, &now)
		accepted := s.accepted
		if !same {
			r.changed[i] = true
			accepted = nil
			if len(s.traffic) > 0 {
				accepted = r.env.acceptPolicies(i, s.traffic, now.stored)
			}
			for _, b := range s.traffic {
				r.dirtyPolicies[b.ref] = true
			}
		}
		r.updateRequirements(i, s, accepted)
		s.inputs, s.accepted = now, accepted
	})
}

// updateRequirements replaces the subsets that the policies of a Destination require
// of others.
func (r *reconciler) updateRequirements(from int, s *destinationState, accepted *acceptance) {
	if !r.rebuilt {
		for at := range r.env.requirements(from, s.accepted) {
			target := r.states[at]
			target.required = slices.DeleteFunc(slices.Clone(target.required), func(x subsetRequirement) bool { return x.from == from })
			r.dirty[at] = true
		}
	}
	for at, required := range r.env.requirements(from, accepted) {
		target := r.states[at]
		target.required = append(target.required, required...)
		r.dirty[at] = true
	}
}

// planDestinations plans the Destinations whose inputs changed.
func (r *reconciler) planDestinations() {
	r.eachDirty(func(i int, s *destinationState) {
		sortRequirements(s.required)
		rules, granted := r.accessOn(i, s)
		if !slices.Equal(rules, s.rules) || !slices.Equal(granted, s.granted) {
			r.changed[i] = true
			s.rules, s.granted = rules, granted
		}
		if subsets := subsetsOf(s.required); !reflect.DeepEqual(subsets, s.subsets) {
			r.changed[i] = true
			s.subsets = subsets
		}
		if !r.changed[i] && requiringPoliciesUnchanged(s) {
			return
		}
		plan := r.env.planDestination(i, s)
		if s.plan != nil && reflect.DeepEqual(plan, s.plan) {
			delete(r.changed, i)
			return
		}
		s.plan = plan
		r.changed[i] = true
	})
}

// accessOn lists the AccessPolicies in force on a Destination, and their grants where
// the mesh identifies by account. Destinations that share accounts are evaluated
// once, together.
func (r *reconciler) accessOn(i int, s *destinationState) ([]*snapshot.AccessRule, []*snapshot.Grant) {
	d := r.env.inv.Destinations[i]
	if k := d.Spec.KubeService; k == nil || len(k.WorkloadSelectorLabels) == 0 {
		return nil, nil // there are no pods on which access could be enforced
	}
	mesh := r.env.topology.MeshOf(d)
	if mesh == nil || !mesh.Dialect.ByAccount {
		rules := make([]*snapshot.AccessRule, 0, len(s.access))
		for _, b := range s.access {
			if mesh == nil || !snapshot.HasErrors(b.unsupportedFields(mesh.Dialect)) {
				rules = append(rules, b.rule)
			}
		}
		return rules, nil
	}
	members := r.env.accounts.members(i)
	if r.grants == nil {
		r.grants = map[int]*grants{}
	}
	granted := r.grants[members[0]]
	if granted == nil {
		granted = r.env.evaluateGrants(members, r.states)
		r.grants[members[0]] = granted
	}
	s.grants = granted
	return granted.inForceOn(i, s.access)
}

// requiringPoliciesUnchanged reports whether the plan names the policies that require
// subsets.
func requiringPoliciesUnchanged(s *destinationState) bool {
	return slices.Equal(requiringPolicies(s.required), s.plan.RequiredSubsets)
}

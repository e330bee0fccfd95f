package policy

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
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

	last inputs
	env  *environment
	// attached are the policies on each Destination, and planned those that its plan
	// was made from; nil if it was made in another environment. Where the two are the
	// same object, the plan still holds.
	attached, planned   []*attachments
	states              []*destinationState
	traffic             []*trafficBinding // ascending by ref
	access              []*accessBinding  // ascending by ref
	virtualDestinations virtualDestinationStates
	plan                *snapshot.Plan

	declared     declared
	dependencies dependencies
	handWritten  map[string]*handWritten
	someByHand   bool
	services     map[string]*clusterServices
	// extended are the Destinations with routes that need filters or external
	// services.
	extended map[int]bool
	// filters are the hand-written filters by mesh; nil if they were not looked for.
	filters map[commonv1.ObjectRef]snapshot.ByHand
	network network
	// shadowed are the issues about hand-written objects for the host names of federated Destinations.
	shadowed map[int][]snapshot.Issue
	// hidden are the issues about those that hide federated Destinations from callers.
	hidden []snapshot.Issue
	// passed are the plans of Destinations that gateways pass connections on to.
	passed map[int]*snapshot.DestinationPlan
}

// inputs are what a Plan is made from.
type inputs struct {
	// read is the management plane as it was read; what follows from it may have equal
	// objects that were read before.
	read          *snapshot.Management
	clusters      []*snapshot.Cluster
	discovered    []*snapshot.Discovered
	domains       []string
	settings      *settingsv1.Settings
	scope         virtualmesh.Scope
	virtualMeshes []*networkingv1.VirtualMesh
	traffic       []*networkingv1.TrafficPolicy
	access        []*networkingv1.AccessPolicy
	// ofTraffic, ofAccess, ofVirtuals and ofDependencies are what traffic, access, virtualDestinations and dependencies were made of.
	ofTraffic           policies[*networkingv1.TrafficPolicy]
	ofAccess            policies[*networkingv1.AccessPolicy]
	ofVirtuals          policies[*enterprisev1beta1.VirtualDestination]
	ofDependencies      policies[*enterprisev1beta1.ServiceDependency]
	virtualDestinations []*enterprisev1beta1.VirtualDestination
	stored              []*discoveryv1.Destination
	// destinations are all stored Destinations, and externals those that users wrote.
	destinations, externals []*discoveryv1.Destination
	dependencies            []*enterprisev1beta1.ServiceDependency
	// addresses are those of all stored Destinations and VirtualDestinations.
	addresses virtualmesh.Addresses
	trust     virtualmesh.TrustFacts
	// needs are what VirtualMeshes import that import only what is declared; nil if there are none.
	needs *virtualmesh.Needs
}

// reconciler makes one Plan.
type reconciler struct {
	*Planner
	next inputs
	// rebuilt is set if the environment is new, handWrittenChanged if a hand-written
	// object changed, servicesChanged if a host name of a VirtualDestination became that of
	// a Service or no longer is, and resolved if VirtualDestinations were resolved again.
	rebuilt, handWrittenChanged, servicesChanged, resolved bool
	// changed are the new plans of Destinations.
	changed map[int]*snapshot.DestinationPlan
	grants  map[int]*grants // by the first Destination of the account group
	// sets are the policies on each group of services that share pods.
	sets map[int][]accessSet
}

// Plan makes the Plan for an Input and what was discovered in it.
func (p *Planner) Plan(in *snapshot.Input, discovered []*snapshot.Discovered) *snapshot.Plan {
	r := &reconciler{Planner: p, changed: map[int]*snapshot.DestinationPlan{}}
	r.next = p.last.next(in, discovered)
	r.updateHandWritten(in)
	r.updateEnvironment(in)
	r.servicesChanged = r.updateServices(in)
	r.env.byHand, r.env.services = byHand{r.handWritten, r.someByHand, in.RefuseIntersecting}, r.services
	r.env.local = localIssues(&r.next)
	r.network = r.network.next(r.next.clusters)
	r.bindPolicies()
	r.bindVirtualDestinations()
	r.readEnforced()
	r.acceptTrafficPolicies()
	r.planDestinations()
	r.planDependencies()
	p.plan = assembling(r).assemble()
	p.env.bound(len(r.next.traffic))
	p.last = r.next
	return p.plan
}

// next reads the inputs. Objects that are equal to the last ones are replaced by
// those.
func (last *inputs) next(in *snapshot.Input, discovered []*snapshot.Discovered) inputs {
	m, was := in.Management, last.read
	if was == nil {
		was = &snapshot.Management{}
	}
	n := inputs{
		read:          m,
		clusters:      in.Clusters,
		discovered:    discovered,
		virtualMeshes: reuseUnchanged(last.virtualMeshes, was.VirtualMeshes, m.VirtualMeshes, sameVirtualMesh),
		stored:        reuseUnchanged(last.stored, was.Destinations, m.Destinations, sameStored),
		externals:     last.externals,
		destinations:  m.Destinations,
		scope:         virtualmesh.ScopeOf(m),
	}
	n.ofTraffic = last.ofTraffic.next(in, m.TrafficPolicies, &n.scope, localTraffic)
	n.ofAccess = last.ofAccess.next(in, m.AccessPolicies, &n.scope, localAccess)
	n.ofDependencies = last.ofDependencies.next(in, m.ServiceDependencies, &n.scope, localDependencies)
	n.ofVirtuals = last.ofVirtuals.next(in, m.VirtualDestinations, &n.scope, localVirtuals)
	n.traffic, n.access, n.virtualDestinations, n.dependencies = n.ofTraffic.all, n.ofAccess.all, n.ofVirtuals.all, n.ofDependencies.all
	n.addresses = virtualmesh.Addresses{Destinations: m.Destinations, VirtualDestinations: m.VirtualDestinations, InClusters: localAddresses(n.ofVirtuals)}
	if !snapshot.SameSlice(last.destinations, n.destinations) {
		n.externals = externals(last.externals, n.destinations)
	}
	if last.read != nil && slices.Equal(last.clusters, n.clusters) {
		n.clusters, n.domains = last.clusters, last.domains
	} else {
		for _, c := range in.Clusters {
			n.domains = append(n.domains, c.Name+"="+c.DomainOrDefault())
		}
	}
	if last.sameClusters(&n) && last.trust.SameSources(was, in) {
		n.trust = last.trust
	} else {
		n.trust = virtualmesh.NewTrustFacts(in)
	}
	if len(m.Settings) > 0 {
		n.settings = virtualmesh.SettingsInForce(m)
		if last.settings != nil && n.settings != nil && snapshot.CompareNames(last.settings, n.settings) == 0 && sameMetadata(last.settings, n.settings) && reflect.DeepEqual(last.settings.Spec, n.settings.Spec) {
			n.settings = last.settings
		}
	}
	return n
}

// sameClusters reports whether the next clusters are the same, by identity.
func (last *inputs) sameClusters(next *inputs) bool {
	return last.read != nil && snapshot.SameSlice(last.clusters, next.clusters)
}

// updateEnvironment builds a new environment if anything in it changed, and carries
// the states of the Destinations over.
func (r *reconciler) updateEnvironment(in *snapshot.Input) {
	was, old := &r.last, r.env
	sameThings := old != nil && slices.Equal(was.discovered, r.next.discovered) && (was.sameClusters(&r.next) || slices.Equal(was.domains, r.next.domains))
	var inv *inventory.Inventory
	if sameThings {
		inv = old.inv
	} else {
		inv = inventory.New(r.next.discovered, in.Clusters)
	}
	r.next.needs = updateNeeds(r, inv)
	if sameThings && was.needs == r.next.needs && slices.Equal(was.virtualMeshes, r.next.virtualMeshes) && was.settings == r.next.settings && was.scope.Equal(&r.next.scope) &&
		slices.Equal(was.externals, r.next.externals) && was.trust.Same(r.next.trust) && r.keepsAddresses() {
		return
	}
	r.rebuilt = true
	env := &environment{inv: inv, scope: r.next.scope}
	var previous *virtualmesh.Topology
	if old != nil {
		previous = old.topology
	}
	env.topology = virtualmesh.New(env.inv, r.next.virtualMeshes, r.next.settings, r.next.scope, r.Dialects, r.next.addresses, r.next.trust, r.next.needs, previous)
	env.accounts = newAccounts(env.inv, env.topology)
	if sameThings {
		env.shared, env.captures = old.shared, old.captures
	} else {
		env.shared, env.captures = newSharedPods(env.inv, env.topology), newCaptures(env.inv)
	}
	env.defaultTLS = defaultTLS(r.next.settings)
	env.externals = r.next.externals
	if old != nil && reflect.DeepEqual(old.defaultTLS, env.defaultTLS) {
		env.defaultTLS = old.defaultTLS
	}
	r.states = carryStates(old, r.states, env)
	r.env = env
	r.attached = slices.Repeat([]*attachments{noAttachments}, len(r.states))
	r.planned = make([]*attachments, len(r.states))
}

// carryStates carries the state of each Destination over to a new environment.
func carryStates(old *environment, states []*destinationState, env *environment) []*destinationState {
	out := make([]*destinationState, len(env.inv.Destinations))
	at := 0
	for i, d := range env.inv.Destinations {
		for at < len(states) && old.inv.Destinations[at].Name < d.Name {
			at++
		}
		if at < len(states) && old.inv.Destinations[at].Name == d.Name {
			out[i] = states[at]
		} else {
			out[i] = &destinationState{}
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

// find finds a Destination in a list that is ascending by namespace and name.
func find(list []*discoveryv1.Destination, d *discoveryv1.Destination) *discoveryv1.Destination {
	i, ok := slices.BinarySearchFunc(list, d, snapshot.CompareNames)
	if !ok {
		return nil
	}
	return list[i]
}

// acceptTrafficPolicies decides which TrafficPolicies are in force, and adds the
// subsets that they require to the target Destinations. It does so where the policies
// or their stored specs changed; everywhere if something that all depend on did.
func (r *reconciler) acceptTrafficPolicies() {
	all := r.handWrittenChanged || r.resolved
	sameStored := snapshot.SameSlice(r.last.stored, r.next.stored)
	planned := r.planned[:len(r.attached)]
	for i, a := range r.attached {
		if a == planned[i] && (a == noAttachments || !all && sameStored) {
			continue
		}
		s, stored := r.states[i], find(r.next.stored, r.env.inv.Destinations[i])
		if a == r.planned[i] && !all && stored == s.inputs.stored {
			continue
		}
		now := r.env.collectInputs(i, a, stored)
		same := s.plan != nil && now.same(&s.inputs)
		if same && !r.rebuilt {
			continue
		}
		r.trackShifts(i, s, &now)
		accepted := s.accepted
		if !same {
			s.stale = true
			r.edit(i)
			accepted = nil
			if len(a.traffic) > 0 {
				accepted = r.env.acceptPolicies(i, a.traffic, now.stored)
			}
			for _, b := range a.traffic {
				b.stale = true
			}
		}
		r.updateRequirements(i, s.accepted, accepted)
		s.inputs, s.accepted = now, accepted
	}
}

// updateRequirements replaces the subsets that the policies of a Destination require
// of others.
func (r *reconciler) updateRequirements(from int, before, now *acceptance) {
	if !r.rebuilt {
		for at := range r.env.requirements(from, before) {
			target := r.edit(at)
			target.required = slices.DeleteFunc(target.required, func(x subsetRequirement) bool { return x.from == from })
		}
	}
	for at, required := range r.env.requirements(from, now) {
		target := r.edit(at)
		target.required = append(target.required, required...)
	}
}

// planDestinations plans the Destinations whose policies changed.
func (r *reconciler) planDestinations() {
	r.editAccountGroups()
	r.editSharedPods()
	planned := r.planned[:len(r.attached)]
	for i, a := range r.attached {
		if a != planned[i] {
			r.updatePlan(i, a)
			planned[i] = a
		}
	}
}

// updatePlan plans one Destination.
func (r *reconciler) updatePlan(i int, a *attachments) {
	s := r.states[i]
	sortRequirements(a.required)
	stale := s.stale
	s.stale = false
	rules, granted := r.accessOn(i, a.access)
	denials := denialsOn(r, i, a.access)
	if !slices.Equal(rules, s.rules) || !slices.Equal(granted, s.granted) || !slices.Equal(denials, s.denials) {
		stale = true
		s.rules, s.granted, s.denials = rules, granted, denials
		for _, b := range a.access {
			b.stale = true // what is in force may follow from the stored status; see keptRules
		}
	}
	for _, b := range a.access {
		b.stale = b.stale || b.ref.Cluster != "" // see overruledBy
	}
	if shared := r.sharingOf(i); !reflect.DeepEqual(shared, s.shared) {
		stale = true
		s.shared = shared
		for _, b := range a.access {
			b.stale = true
		}
	}
	if r.accessChanged(i) || s.grants != nil {
		for _, b := range a.access {
			b.stale = true // its order here may have changed
		}
	}
	if subsets := subsetsOf(a.required); !reflect.DeepEqual(subsets, s.subsets) {
		stale = true
		s.subsets = subsets
	}
	// The plan names the policies that require subsets.
	if !stale && slices.Equal(requiringPolicies(a.required), s.plan.RequiredSubsets) {
		return
	}
	was := s.plan
	if plan := r.env.planDestination(i, s, a.required); was == nil || !reflect.DeepEqual(plan, was) {
		s.plan, r.changed[i] = plan, plan
	}
	if !sameUnidentified(was, s.plan) {
		for _, b := range a.traffic {
			b.stale = true
		}
		for _, b := range a.access {
			b.stale = true
		}
	}
}

// accessOn lists the AccessPolicies in force on a Destination, and their grants where
// the mesh identifies by account. Destinations that share accounts are evaluated
// once, together.
func (r *reconciler) accessOn(i int, policies []*accessBinding) ([]*snapshot.AccessRule, []*snapshot.Grant) {
	d := r.env.inv.Destinations[i]
	r.states[i].grants = nil
	if k := d.Spec.KubeService; k == nil || len(k.WorkloadSelectorLabels) == 0 {
		return nil, nil // there are no pods on which access could be enforced
	}
	mesh := r.env.topology.MeshOf(d)
	if mesh == nil || !mesh.Dialect.ByAccount {
		return keptRules(r, i, rulesOn(r, i, policies, false)), nil
	}
	members := r.env.accounts.members(i)
	if r.grants == nil {
		r.grants = map[int]*grants{}
	}
	granted := r.grants[members[0]]
	if granted == nil {
		granted = r.env.accounts.evaluate(members, r.attached)
		r.grants[members[0]] = granted
	}
	r.states[i].grants = granted
	return granted.inForceOn(i, policies)
}

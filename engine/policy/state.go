package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// attachments are the policies on one Destination. They never change once a plan was
// made from them: a Destination with other policies has other attachments.
type attachments struct {
	traffic  []*trafficBinding // oldest first
	access   []*accessBinding  // ascending by ref
	required []subsetRequirement
}

// noAttachments are the attachments of every Destination without policies.
var noAttachments = &attachments{}

// edit returns the attachments of a Destination to be changed.
func (r *reconciler) edit(i int) *attachments {
	a := r.attached[i]
	if a == noAttachments || a == r.planned[i] {
		a = &attachments{traffic: slices.Clone(a.traffic), access: slices.Clone(a.access), required: slices.Clone(a.required)}
		r.attached[i] = a
	}
	return a
}

// destinationState is the Planner's cache of one Destination: the results for its
// policies.
type destinationState struct {
	inputs   destinationInputs
	accepted *acceptance
	rules    []*snapshot.AccessRule // those that allow
	denials  []*snapshot.AccessRule
	granted  []*snapshot.Grant
	grants   *grants // set if the mesh identifies by account
	shared   *sharing
	subsets  []snapshot.Subset
	plan     *snapshot.DestinationPlan
	// stale is set if the plan was made from other inputs.
	stale bool
}

// subsetRequirement is a subset of a Destination to which a policy in force on
// another one, with index from, sends requests.
type subsetRequirement struct {
	from    int
	applied snapshot.AppliedTraffic
	labels  map[string]string
}

// destinationInputs are what the plan of a Destination is made from, except subsets
// and access rules. Equal inputs give equal plans.
type destinationInputs struct {
	targetInputs
	stored     *discoveryv1.Destination
	defaultTLS *snapshot.WithOrigin[networkingv1.TLSMode]
	policies   []*networkingv1.TrafficPolicy
	targets    []targetInputs
	// missing is what is known of each target that was not discovered.
	missing []string
	// virtuals are the VirtualDestinations to which policies send requests, nil for
	// one that does not exist, and virtualRefs their references.
	virtuals    []*snapshot.VirtualDestinationPlan
	virtualRefs []snapshot.Ref
	// viewers, handWritten and refuseIntersecting are set if there are policies.
	viewers            []*snapshot.MeshPlan
	handWritten        []*handWritten
	refuseIntersecting bool
	// externals are all external services, if a policy sends requests to any.
	externals []*discoveryv1.Destination
}

// targetInputs are what names a Destination as a target.
type targetInputs struct {
	destination *discoveryv1.Destination
	mesh        *snapshot.MeshPlan
	federation  *snapshot.Federation
	leftOut     snapshot.Unfederated
	offered     *snapshot.Offer
	fqdn        string
}

func (a *destinationInputs) same(b *destinationInputs) bool {
	return a.targetInputs == b.targetInputs && a.stored == b.stored && a.defaultTLS == b.defaultTLS &&
		slices.Equal(a.policies, b.policies) && slices.Equal(a.targets, b.targets) && slices.Equal(a.missing, b.missing) && slices.Equal(a.virtuals, b.virtuals) &&
		slices.Equal(a.viewers, b.viewers) && slices.Equal(a.handWritten, b.handWritten) && a.refuseIntersecting == b.refuseIntersecting && slices.Equal(a.externals, b.externals)
}

func (env *environment) targetInputs(i int) targetInputs {
	d := env.inv.Destinations[i]
	p := targetInputs{destination: d, mesh: env.topology.MeshOf(d), federation: env.topology.Federation(i), leftOut: env.topology.LeftOut(i), offered: env.topology.Offered(i)}
	if d.Spec.KubeService != nil {
		p.fqdn = env.inv.LocalFQDN(d.Spec.KubeService.Ref)
	}
	return p
}

// collectInputs collects the inputs of a Destination's plan.
func (env *environment) collectInputs(i int, a *attachments, stored *discoveryv1.Destination) destinationInputs {
	in, traffic := destinationInputs{targetInputs: env.targetInputs(i), defaultTLS: env.defaultTLS}, a.traffic
	if needsStored(in.destination, a) {
		in.stored = stored
	}
	if len(traffic) == 0 {
		return in
	}
	in.refuseIntersecting = env.byHand.refuse
	in.viewers = env.topology.Viewers(i)
	for _, viewer := range in.viewers {
		in.handWritten = append(in.handWritten, env.byHand.of[viewer.Cluster])
	}
	last := lastGoodOf(stored)
	in.policies = make([]*networkingv1.TrafficPolicy, 0, len(traffic))
	for _, b := range traffic {
		in.policies = append(in.policies, b.policy)
		env.collectTargets(&in, b.policy.Spec.Policy)
		if old := last.of(b.ref); old != nil {
			env.collectTargets(&in, old.Spec.Policy)
		}
	}
	return in
}

func (env *environment) collectTargets(in *destinationInputs, p *networkingv1.Policy) {
	if p != nil && p.TrafficShift != nil && slices.ContainsFunc(p.TrafficShift.Destinations,
		func(d networkingv1.WeightedDestination) bool { return d.StaticDestination != nil }) {
		in.externals = env.externals
	}
	for _, t := range targets(p) {
		service := commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}
		if at, ok := env.inv.IndexOfService(service); ok {
			in.targets = append(in.targets, env.targetInputs(at))
		} else {
			in.missing = append(in.missing, env.inv.NotDiscovered("", service, "").Text())
		}
	}
	for _, t := range virtualTargets(p) {
		at := virtualRef(t)
		in.virtualRefs = append(in.virtualRefs, at)
		in.virtuals = append(in.virtuals, env.virtualDestinations[at])
	}
}

// planDestination builds a Destination's plan.
func (env *environment) planDestination(i int, s *destinationState, required []subsetRequirement) *snapshot.DestinationPlan {
	at := &s.inputs
	plan := &snapshot.DestinationPlan{
		Ref: inventory.DestinationRef(at.destination), Destination: at.destination, Mesh: at.mesh, LocalFQDN: at.fqdn,
		Federation: at.federation, LeftOut: at.leftOut, Offered: at.offered, Access: s.rules, Grants: s.granted,
	}
	if s.accepted != nil {
		plan.Traffic = s.accepted.applied
	}
	plan.RequiredSubsets = requiringPolicies(required)
	if at.mesh != nil && at.destination.Spec.KubeService != nil {
		plan.Views = env.views(i, plan.Traffic, required)
	}
	plan.Callers, plan.Denials = callersOf(plan, s.shared), denialsOf(plan, s.denials)
	return plan
}

// requiringPolicies are the policies that require subsets, ascending. A policy with
// different specs in force on different Destinations is listed twice.
func requiringPolicies(required []subsetRequirement) []snapshot.AppliedTraffic {
	var out []snapshot.AppliedTraffic
	for _, r := range required {
		same := func(a snapshot.AppliedTraffic) bool {
			return a.Policy == r.applied.Policy && a.Generation == r.applied.Generation && a.LastGood == r.applied.LastGood
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out, r.applied)
		}
	}
	slices.SortFunc(out, func(a, b snapshot.AppliedTraffic) int {
		return cmp.Or(snapshot.CompareNames(a.Policy, b.Policy), strings.Compare(a.Policy.InCluster, b.Policy.InCluster), cmp.Compare(b.Generation, a.Generation))
	})
	return out
}

// subsetsOf merges requirements into named subsets.
func subsetsOf(required []subsetRequirement) []snapshot.Subset {
	byName := map[string]map[string]string{}
	for _, r := range required {
		byName[subsetName(r.labels)] = r.labels
	}
	var out []snapshot.Subset
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, snapshot.Subset{Name: name, Labels: byName[name]})
	}
	return out
}

// requirements are the subsets to which a Destination's policies in force send
// requests, by the index of the target Destination.
func (env *environment) requirements(from int, accepted *acceptance) map[int][]subsetRequirement {
	out := map[int][]subsetRequirement{}
	if accepted == nil {
		return out
	}
	for _, a := range accepted.applied {
		for _, t := range targets(a.Spec.Policy) {
			if len(t.Subset) == 0 {
				continue
			}
			if at, ok := env.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}); ok {
				out[at] = append(out[at], subsetRequirement{from: from, applied: a, labels: t.Subset})
			}
		}
	}
	return out
}

func sortRequirements(r []subsetRequirement) {
	slices.SortStableFunc(r, func(a, b subsetRequirement) int { return cmp.Compare(a.from, b.from) })
}

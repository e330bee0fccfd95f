package policy

import (
	"cmp"
	"maps"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// cell is what a Planner keeps of one Destination from plan to plan: what
// decides over it, and what was decided.
type cell struct {
	traffic  []*trafficBinding // oldest first
	access   []*accessBinding  // ascending by ref
	required []requirement

	inputs   inputs
	accepted *acceptance
	rules    []*snapshot.AccessRule
	granted  []*snapshot.Grant
	grants   *grants // where access is granted to accounts
	subsets  []snapshot.Subset
	plan     *snapshot.DestinationPlan
}

// requirement is a subset of a Destination to which a policy in force on
// another one (by its index) sends requests.
type requirement struct {
	from    int
	applied snapshot.AppliedTraffic
	labels  map[string]string
}

// inputs are all that the plan of a Destination is made from, but for its
// subsets and access rules. Equal inputs give equal plans.
type inputs struct {
	place
	stored     *discoveryv1.Destination
	defaultTLS *snapshot.Owned[networkingv1.TLSMode]
	policies   []*networkingv1.TrafficPolicy
	targets    []place
	// virtuals are the VirtualDestinations that policies shift to, nil where
	// there is none of that name, and shiftsTo how they are called.
	virtuals []*snapshot.VirtualDestinationPlan
	shiftsTo []snapshot.Ref
	// byHand and refuse stand for all that users wrote for the meshes that see the
	// Destination; nil where nobody has a say in it.
	byHand []*handWritten
	refuse bool
	// externals are all there are, if a policy sends requests to any.
	externals []*discoveryv1.Destination
}

// place is a Destination as far as naming it goes.
type place struct {
	destination *discoveryv1.Destination
	mesh        *snapshot.MeshPlan
	federation  *snapshot.Federation
	fqdn        string
}

func (a *inputs) same(b *inputs) bool {
	return a.place == b.place && a.stored == b.stored && a.defaultTLS == b.defaultTLS &&
		slices.Equal(a.policies, b.policies) && slices.Equal(a.targets, b.targets) && slices.Equal(a.virtuals, b.virtuals) &&
		slices.Equal(a.byHand, b.byHand) && a.refuse == b.refuse && slices.Equal(a.externals, b.externals)
}

func (w *world) place(i int) place {
	d := w.inv.Destinations[i]
	p := place{destination: d, mesh: w.topology.MeshOf(d), federation: w.topology.Federation(i)}
	if d.Spec.KubeService != nil {
		p.fqdn = w.inv.LocalFQDN(d.Spec.KubeService.Ref)
	}
	return p
}

// gather collects what the plan of a Destination is made from.
func (w *world) gather(i int, c *cell, stored *discoveryv1.Destination) inputs {
	in := inputs{place: w.place(i), defaultTLS: w.defaultTLS}
	if len(c.traffic) == 0 {
		return in
	}
	in.stored, in.refuse = stored, w.refuse
	for _, viewer := range w.topology.Viewers(i) {
		in.byHand = append(in.byHand, w.byHand[viewer.Cluster])
	}
	in.policies = make([]*networkingv1.TrafficPolicy, 0, len(c.traffic))
	for _, b := range c.traffic {
		in.policies = append(in.policies, b.policy)
		w.gatherTargets(&in, b.policy.Spec.Policy)
		if old := lastGood(stored, b.ref); old != nil {
			w.gatherTargets(&in, old.Spec.Policy)
		}
	}
	return in
}

func (w *world) gatherTargets(in *inputs, p *networkingv1.Policy) {
	if p != nil && p.TrafficShift != nil && slices.ContainsFunc(p.TrafficShift.Destinations,
		func(d networkingv1.WeightedDestination) bool { return d.StaticDestination != nil }) {
		in.externals = w.externals
	}
	for _, t := range targets(p) {
		if at, ok := w.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}); ok {
			in.targets = append(in.targets, w.place(at))
		}
	}
	for _, t := range virtualTargets(p) {
		at := virtualRef(t)
		in.shiftsTo = append(in.shiftsTo, at)
		in.virtuals = append(in.virtuals, w.virtuals[at])
	}
}

// planDestination puts a Destination's plan together.
func (w *world) planDestination(i int, c *cell) *snapshot.DestinationPlan {
	at := &c.inputs
	plan := &snapshot.DestinationPlan{
		Ref: inventory.DestinationRef(at.destination), Destination: at.destination, Mesh: at.mesh, LocalFQDN: at.fqdn,
		Federation: at.federation, Access: c.rules, Grants: c.granted,
	}
	if c.accepted != nil {
		plan.Traffic = c.accepted.applied
	}
	plan.RequiredSubsets = requirers(c.required)
	if at.mesh != nil && at.destination.Spec.KubeService != nil {
		plan.Views = w.views(i, plan.Traffic, c.subsets)
	}
	return plan
}

// requirers are the policies that require something, ascending; a policy of
// which different specs are in force on different Destinations is there twice.
func requirers(required []requirement) []snapshot.AppliedTraffic {
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
		return cmp.Or(compareNames(a.Policy, b.Policy), cmp.Compare(b.Generation, a.Generation))
	})
	return out
}

// subsetsOf merges what is required of a Destination into named subsets.
func subsetsOf(required []requirement) []snapshot.Subset {
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
// requests, by the index of the Destination that must have them.
func (w *world) requirements(from int, accepted *acceptance) map[int][]requirement {
	out := map[int][]requirement{}
	if accepted == nil {
		return out
	}
	for _, a := range accepted.applied {
		for _, t := range targets(a.Spec.Policy) {
			if len(t.Subset) == 0 {
				continue
			}
			if at, ok := w.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}); ok {
				out[at] = append(out[at], requirement{from: from, applied: a, labels: t.Subset})
			}
		}
	}
	return out
}

func sortRequirements(r []requirement) {
	slices.SortStableFunc(r, func(a, b requirement) int { return cmp.Compare(a.from, b.from) })
}

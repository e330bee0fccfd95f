package policy

import (
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Default outlier detection of a VirtualDestination, as documented for Gloo Mesh 1.x.
const (
	virtualErrors       = 10
	virtualInterval     = 5 * time.Second
	virtualEjectionTime = 120 * time.Second
)

// virtualDestinationStates is the Planner's cache of VirtualDestinations.
type virtualDestinationStates struct {
	states []*virtualDestinationState // ascending by ref
	// shifts are the policies that send requests to a VirtualDestination, or would if
	// it existed.
	shifts map[snapshot.Ref]*shifts
}

// shifts are the Destinations, by index, whose policies send requests to one
// VirtualDestination. Where one of them changes, there is a new object.
type shifts struct{ from map[int]bool }

type virtualDestinationState struct {
	virtualDestination *virtualDestination
	// base is the plan without what follows from policies.
	base *snapshot.VirtualDestinationPlan
	plan *snapshot.VirtualDestinationPlan
	// planned is what plan was made from.
	planned virtualDestinationInputs
}

// virtualDestinationInputs are what the plan of a VirtualDestination is made from.
type virtualDestinationInputs struct {
	base     *snapshot.VirtualDestinationPlan
	shifts   *shifts
	services []*snapshot.DestinationPlan
}

func (a *virtualDestinationInputs) same(b *virtualDestinationInputs) bool {
	return a.base == b.base && a.shifts == b.shifts && slices.Equal(a.services, b.services)
}

// bindVirtualDestinations finds the meshes and services of each VirtualDestination,
// and assigns host names. If the environment did not change, only changed ones are
// resolved again.
func (r *reconciler) bindVirtualDestinations() {
	if r.rebuilt {
		r.virtualDestinations.shifts = map[snapshot.Ref]*shifts{} // indexes may have changed
	} else if snapshot.SameSlice(r.last.virtualDestinations, r.next.virtualDestinations) && !r.handWrittenChanged && !r.servicesChanged {
		return
	}
	r.resolved = true
	old := make(map[snapshot.Ref]*virtualDestinationState, len(r.virtualDestinations.states))
	for _, s := range r.virtualDestinations.states {
		old[s.virtualDestination.ref] = s
	}
	r.virtualDestinations.states = make([]*virtualDestinationState, 0, len(r.next.virtualDestinations))
	for _, v := range r.next.virtualDestinations {
		s := old[snapshot.RefOf(snapshot.VirtualDestination, v)]
		if s == nil {
			s = &virtualDestinationState{}
		}
		if r.rebuilt || s.virtualDestination == nil || s.virtualDestination.source != v || r.next.ofVirtuals.beyond[s.virtualDestination.ref] {
			s.virtualDestination = r.env.newVirtualDestination(v)
		}
		r.virtualDestinations.states = append(r.virtualDestinations.states, s)
	}
	r.assignHostnames()
}

// byAge are the VirtualDestinations in the order in which they get names and addresses: those of the management cluster, oldest first,
// and then those of registered clusters, by cluster and namespace, which take nothing from the former, whatever their age.
func (s *virtualDestinationStates) byAge() []*virtualDestinationState {
	out := slices.Clone(s.states)
	slices.SortFunc(out, func(x, y *virtualDestinationState) int {
		a, b := x.virtualDestination, y.virtualDestination
		if c := strings.Compare(a.ref.Cluster, b.ref.Cluster); c != 0 {
			return c
		}
		if a.ref.Cluster != "" && a.ref.Namespace != b.ref.Namespace {
			return strings.Compare(a.ref.Namespace, b.ref.Namespace)
		}
		return inventory.CompareAge(a.source, b.source)
	})
	return out
}

// keepsAddresses reports whether services and VirtualDestinations have the addresses
// that follow from those that are stored. After writing a status they usually do.
func (r *reconciler) keepsAddresses() bool {
	if r.last.addresses.Same(r.next.addresses) {
		return true
	}
	if !r.env.topology.Keeps(r.next.addresses) {
		return false
	}
	byAge := r.virtualDestinations.byAge()
	now := r.env.virtualAddresses(byAge, r.next.addresses)
	return !slices.ContainsFunc(byAge, func(s *virtualDestinationState) bool { return s.base.Address != now[s.virtualDestination.ref] })
}

// assignHostnames assigns host names and addresses, and makes the base plans.
func (r *reconciler) assignHostnames() {
	byAge := r.virtualDestinations.byAge()
	addresses := r.env.virtualAddresses(byAge, r.next.addresses)
	names := &hostnames{env: r.env, owners: map[hostKey]*virtualDestination{}}
	r.env.virtualDestinations = make(map[snapshot.Ref]*snapshot.VirtualDestinationPlan, len(byAge))
	r.env.backedBy = map[int][]*snapshot.VirtualDestinationPlan{}
	for _, s := range byAge {
		v := s.virtualDestination
		base := v.newPlan(r.env, addresses[v.ref], names.assign(v))
		if s.base == nil || !reflect.DeepEqual(base, s.base) {
			s.base = base
		}
		r.env.virtualDestinations[v.ref] = s.base
		for _, i := range v.selected {
			r.env.backedBy[i] = append(r.env.backedBy[i], s.base)
		}
	}
}

// trackShifts records to which VirtualDestinations the policies of a Destination send
// requests. Those and the earlier ones may need other subsets.
func (r *reconciler) trackShifts(i int, s *destinationState, now *destinationInputs) {
	from := func(ref snapshot.Ref) map[int]bool {
		was := r.virtualDestinations.shifts[ref]
		if was == nil {
			was = &shifts{from: map[int]bool{}}
		}
		r.virtualDestinations.shifts[ref] = &shifts{from: was.from}
		return was.from
	}
	if !r.rebuilt {
		for _, ref := range s.inputs.virtualRefs {
			delete(from(ref), i)
		}
	}
	for _, ref := range now.virtualRefs {
		from(ref)[i] = true
	}
}

// planVirtualDestinations completes the plans of VirtualDestinations, after those of
// the services behind them.
func (r assembler) planVirtualDestinations() []*snapshot.VirtualDestinationPlan {
	out := make([]*snapshot.VirtualDestinationPlan, 0, len(r.virtualDestinations.states))
	for _, s := range r.virtualDestinations.states {
		now := virtualDestinationInputs{base: s.base, shifts: r.virtualDestinations.shifts[s.virtualDestination.ref]}
		for _, i := range s.virtualDestination.selected {
			now.services = append(now.services, r.states[i].plan)
		}
		if r.rebuilt || s.plan == nil || !now.same(&s.planned) {
			if plan := r.planVirtualDestination(s); s.plan == nil || !reflect.DeepEqual(plan, s.plan) {
				s.plan = plan
			}
		}
		s.planned = now
		out = append(out, s.plan)
	}
	if r.plan != nil && slices.Equal(r.plan.VirtualDestinations, out) {
		return r.plan.VirtualDestinations
	}
	return out
}

// sorted are the indexes, ascending.
func (s *shifts) sorted() []int {
	if s == nil {
		return nil
	}
	return sortedKeys(s.from)
}

func (r assembler) planVirtualDestination(s *virtualDestinationState) *snapshot.VirtualDestinationPlan {
	plan := *s.base
	plan.Issues = slices.Clone(plan.Issues)
	var required []subsetRequirement
	for _, i := range r.virtualDestinations.shifts[plan.Ref].sorted() {
		required = append(required, requirementsOn(plan.Ref, i, r.states[i].accepted)...)
	}
	plan.Subsets = subsetsOf(required)
	plan.RequiredSubsets = requiringPolicies(required)
	r.detectOutliers(s.virtualDestination, &plan)
	for _, v := range plan.Views {
		if len(plan.Subsets) > 0 && len(v.Priorities) > 1 && usesHostNames(v) {
			plan.Issues = append(plan.Issues, snapshot.Warnf(snapshot.FailoverIncomplete,
				"give the gateways IP addresses, or shift to it without a subset",
				"requests that policies shift to its subsets do not fail over in mesh %s: its proxies resolve the host names of gateways, and do not apply priorities then", v.Mesh.Ref.Name).On(plan.Ref, v.Mesh.Ref))
		}
	}
	return &plan
}

// detectOutliers sets the outlier detection: that of the VirtualDestination; for a
// static list that of the first service that has one; or else the default.
func (r *reconciler) detectOutliers(v *virtualDestination, plan *snapshot.VirtualDestinationPlan) {
	value := networkingv1.OutlierDetection{
		ConsecutiveErrors: virtualErrors, MaxEjectionPercent: defaultMaxEjectionPercent,
		Interval:         &metav1.Duration{Duration: virtualInterval},
		BaseEjectionTime: &metav1.Duration{Duration: virtualEjectionTime},
	}
	plan.Outlier = &snapshot.WithOrigin[networkingv1.OutlierDetection]{Value: value, Origin: snapshot.Origin{Ref: v.ref, Field: "port"}}
	switch spec := &v.source.Spec; {
	case spec.Localized != nil:
		plan.Outlier.Origin.Field = "localized"
		own := spec.Localized.OutlierDetection
		if own == nil {
			break
		}
		issues := checkStep("localized.outlierDetection.interval", own.Interval, time.Millisecond)
		issues = append(issues, checkStep("localized.outlierDetection.baseEjectionTime", own.BaseEjectionTime, time.Millisecond)...)
		for _, issue := range issues {
			plan.Issues = append(plan.Issues, issue.On(v.ref, snapshot.Ref{}))
		}
		if !snapshot.HasErrors(issues) {
			plan.Outlier.Value, plan.Outlier.Origin.Field = withDefaults(*own), "localized.outlierDetection"
		}
	case spec.Static != nil:
		plan.Outlier.Origin.Field = "static"
		r.inheritOutliers(v, plan)
	}
	if o := plan.Outlier; o.Value.MaxEjectionPercent < defaultMaxEjectionPercent {
		by := o.Origin.Field
		if o.Origin.Ref != v.ref {
			by += " of " + o.Origin.Ref.Kind.String() + " " + o.Origin.Ref.Name + "." + o.Origin.Ref.Namespace
		}
		issue := snapshot.Warnf(snapshot.FailoverIncomplete, "set it to 100",
			"maxEjectionPercent is %d (%s): the remaining endpoints stay in use even if they fail, so failover is only partial", o.Value.MaxEjectionPercent, by)
		if o.Origin.Ref == v.ref {
			issue = issue.At(o.Origin.Field + ".maxEjectionPercent")
		} else {
			issue = issue.CausedBy(o.Origin.Ref)
		}
		plan.Issues = append(plan.Issues, issue.On(v.ref, snapshot.Ref{}))
	}
}

// inheritOutliers uses the outlier detection of the services behind.
func (r *reconciler) inheritOutliers(v *virtualDestination, plan *snapshot.VirtualDestinationPlan) {
	var first *snapshot.BackingPlan
	for i, at := range v.selected {
		views := r.states[at].plan.Views
		if len(views) == 0 || views[0].Outlier == nil {
			continue
		}
		its := views[0].Outlier
		switch {
		case first == nil:
			first, plan.Outlier = v.backing[i], its
		case !reflect.DeepEqual(its.Value, plan.Outlier.Value):
			plan.Issues = append(plan.Issues, snapshot.Warnf(snapshot.FieldConflict, "set the same for all services behind it",
				"outlierDetection of %s differs from that of %s, which applies to all services behind it", inventory.ServiceName(v.backing[i].Destination.Spec.KubeService.Ref), inventory.ServiceName(first.Destination.Spec.KubeService.Ref)).
				CausedBy(plan.Outlier.Origin.Ref).On(v.ref, v.backing[i].Ref))
		}
	}
}

// usesHostNames reports whether a gateway of the view is reached by host name.
func usesHostNames(v *snapshot.VirtualView) bool {
	for _, p := range v.Priorities {
		for _, t := range p.Targets {
			for _, gw := range t.Through {
				if slices.ContainsFunc(gw.Addresses, isName) {
					return true
				}
			}
		}
	}
	return false
}

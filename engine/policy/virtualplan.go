package policy

import (
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Outlier detection of a VirtualDestination that asks for none: documented
// defaults of Gloo Mesh 1.x.
const (
	virtualErrors       = 10
	virtualInterval     = 5 * time.Second
	virtualEjectionTime = 120 * time.Second
)

// virtualMemo is what a Planner keeps of VirtualDestinations from plan to plan.
type virtualMemo struct {
	cells []*virtualCell // ascending by ref
	// shifters are the Destinations, by index, whose policies shift to a
	// VirtualDestination, or would if it were there.
	shifters map[snapshot.Ref]map[int]bool
}

type virtualCell struct {
	binding *virtualBinding
	// base is the plan before policies have a say in it.
	base *snapshot.VirtualDestinationPlan
	plan *snapshot.VirtualDestinationPlan
}

// bindVirtual finds what each VirtualDestination stands for, and who has which
// host name. Where the world is the same, only changed ones are looked into.
func (r *round) bindVirtual() {
	if r.fresh {
		r.virtual.shifters = map[snapshot.Ref]map[int]bool{} // indexes may be others
	} else if snapshot.SameSlice(r.basis.virtual, r.next.virtual) && !r.handChanged {
		return
	}
	old := make(map[snapshot.Ref]*virtualCell, len(r.virtual.cells))
	for _, c := range r.virtual.cells {
		old[c.binding.ref] = c
		if !r.fresh {
			r.reback(c)
		}
	}
	r.virtual.cells = make([]*virtualCell, 0, len(r.next.virtual))
	for _, v := range r.next.virtual {
		ref := snapshot.RefOf(snapshot.VirtualDestination, v)
		c := old[ref]
		delete(old, ref)
		if c == nil {
			c = &virtualCell{}
		}
		if r.fresh || c.binding == nil || c.binding.source != v {
			c.binding = r.world.bindVirtual(v)
		}
		r.virtual.cells = append(r.virtual.cells, c)
	}
	for ref := range old {
		r.touch(ref)
	}
	r.nameVirtuals()
}

// nameVirtuals gives out host names, and makes the plans that follow.
func (r *round) nameVirtuals() {
	byAge := slices.Clone(r.virtual.cells)
	slices.SortFunc(byAge, func(a, b *virtualCell) int { return inventory.CompareAge(a.binding.source, b.binding.source) })
	names := newHostnames(r.world)
	r.world.virtuals = make(map[snapshot.Ref]*snapshot.VirtualDestinationPlan, len(byAge))
	r.world.backed = map[int][]*snapshot.VirtualDestinationPlan{}
	for _, c := range byAge {
		address, taken := names.give(c.binding)
		base := c.binding.plan(r.world, address, taken)
		if c.base == nil || !reflect.DeepEqual(base, c.base) {
			c.base = base
			r.touch(c.binding.ref)
		}
		r.world.virtuals[c.binding.ref] = c.base
		for _, i := range c.binding.selected {
			r.world.backed[i] = append(r.world.backed[i], c.base)
		}
		r.reback(c)
	}
}

// reback notes that the hosts under which Destinations are reached may be others.
func (r *round) reback(c *virtualCell) {
	for _, i := range c.binding.selected {
		r.rebacked[i] = true
	}
}

// reachedAnew are the Destinations whose plans, or VirtualDestinations, are new.
func (r *round) reachedAnew() map[int]bool {
	if len(r.rebacked) == 0 {
		return r.changed
	}
	out := maps.Clone(r.changed)
	maps.Copy(out, r.rebacked)
	return out
}

// touch looks again at a VirtualDestination and at what shifts to it.
func (r *round) touch(virtual snapshot.Ref) {
	r.virtuals[virtual] = true
	for i := range r.virtual.shifters[virtual] {
		r.dirty[i] = true
	}
}

// shift notes to which VirtualDestinations the policies of a Destination shift
// now; these and the ones before may need other subsets.
func (r *round) shift(i int, c *cell, now *inputs) {
	if !r.fresh {
		for _, ref := range c.inputs.shiftsTo {
			delete(r.virtual.shifters[ref], i)
			r.virtuals[ref] = true
		}
	}
	for _, ref := range now.shiftsTo {
		if r.virtual.shifters[ref] == nil {
			r.virtual.shifters[ref] = map[int]bool{}
		}
		r.virtual.shifters[ref][i] = true
		r.virtuals[ref] = true
	}
}

// planVirtuals finishes the plans of VirtualDestinations, after those of the
// services behind them.
func (r *round) planVirtuals() []*snapshot.VirtualDestinationPlan {
	out := make([]*snapshot.VirtualDestinationPlan, 0, len(r.virtual.cells))
	for _, c := range r.virtual.cells {
		behind := func(i int) bool { return r.changed[i] }
		if r.fresh || c.plan == nil || r.virtuals[c.binding.ref] || slices.ContainsFunc(c.binding.selected, behind) {
			if plan := r.planVirtual(c); c.plan == nil || !reflect.DeepEqual(plan, c.plan) {
				c.plan = plan
			}
		}
		out = append(out, c.plan)
	}
	if r.plan != nil && slices.Equal(r.plan.VirtualDestinations, out) {
		return r.plan.VirtualDestinations
	}
	return out
}

func (r *round) planVirtual(c *virtualCell) *snapshot.VirtualDestinationPlan {
	plan := *c.base
	plan.Issues = slices.Clone(plan.Issues)
	var required []requirement
	for _, i := range slices.Sorted(maps.Keys(r.virtual.shifters[plan.Ref])) {
		required = append(required, requirementsOn(plan.Ref, i, r.cells[i].accepted)...)
	}
	plan.Subsets = subsetsOf(required)
	plan.RequiredSubsets = requirers(required)
	r.detectOutliers(c.binding, &plan)
	for _, v := range plan.Views {
		if len(plan.Subsets) > 0 && len(v.Priorities) > 1 && byName(v) {
			plan.Issues = append(plan.Issues, snapshot.Warnf(snapshot.FailoverIncomplete,
				"give the gateways IP addresses, or shift to it without a subset",
				"requests that policies shift to its subsets do not fail over in mesh %s: its proxies resolve the gateways' host names themselves, and know no order then", v.Mesh.Ref.Name).On(plan.Ref, v.Mesh.Ref))
		}
	}
	return &plan
}

// detectOutliers sets the outlier detection: the VirtualDestination's own; in a
// list of services that of the first one which has some from a TrafficPolicy;
// or else the default.
func (r *round) detectOutliers(b *virtualBinding, plan *snapshot.VirtualDestinationPlan) {
	value := networkingv1.OutlierDetection{
		ConsecutiveErrors: virtualErrors, MaxEjectionPercent: defaultMaxEjectionPercent,
		Interval:         &metav1.Duration{Duration: virtualInterval},
		BaseEjectionTime: &metav1.Duration{Duration: virtualEjectionTime},
	}
	plan.Outlier = &snapshot.Owned[networkingv1.OutlierDetection]{Value: value, Origin: snapshot.Origin{Ref: b.ref, Field: "port"}}
	switch spec := &b.source.Spec; {
	case spec.Localized != nil:
		plan.Outlier.Origin.Field = "localized"
		own := spec.Localized.OutlierDetection
		if own == nil {
			break
		}
		issues := checkStep("localized.outlierDetection.interval", own.Interval, time.Millisecond)
		issues = append(issues, checkStep("localized.outlierDetection.baseEjectionTime", own.BaseEjectionTime, time.Millisecond)...)
		for _, issue := range issues {
			plan.Issues = append(plan.Issues, issue.On(b.ref, snapshot.Ref{}))
		}
		if !snapshot.HasErrors(issues) {
			plan.Outlier.Value, plan.Outlier.Origin.Field = withDefaults(*own), "localized.outlierDetection"
		}
	case spec.Static != nil:
		plan.Outlier.Origin.Field = "static"
		r.inheritOutliers(b, plan)
	}
	if o := plan.Outlier; o.Value.MaxEjectionPercent < defaultMaxEjectionPercent {
		by := o.Origin.Field
		if o.Origin.Ref != b.ref {
			by += " of " + o.Origin.Ref.Kind.String() + " " + o.Origin.Ref.Name + "." + o.Origin.Ref.Namespace
		}
		plan.Issues = append(plan.Issues, snapshot.Warnf(snapshot.FailoverIncomplete, "set it to 100",
			"maxEjectionPercent is %d (%s): the other endpoints stay in use however much they fail, and others take over in part only", o.Value.MaxEjectionPercent, by).On(b.ref, snapshot.Ref{}))
	}
}

// inheritOutliers takes over what TrafficPolicies say of the services behind.
func (r *round) inheritOutliers(b *virtualBinding, plan *snapshot.VirtualDestinationPlan) {
	var first *snapshot.BackingPlan
	for i, at := range b.selected {
		views := r.cells[at].plan.Views
		if len(views) == 0 || views[0].Outlier == nil {
			continue
		}
		its := views[0].Outlier
		switch {
		case first == nil:
			first, plan.Outlier = b.backing[i], its
		case !reflect.DeepEqual(its.Value, plan.Outlier.Value):
			plan.Issues = append(plan.Issues, snapshot.Warnf(snapshot.FieldConflict, "ask for the same on all services behind it",
				"outlierDetection of %s differs from that of %s, which holds for all services behind it", inventory.ServiceName(b.backing[i].Destination.Spec.KubeService.Ref), inventory.ServiceName(first.Destination.Spec.KubeService.Ref)).On(b.ref, b.backing[i].Ref))
		}
	}
}

// byName reports whether any gateway on the way has a host name.
func byName(v *snapshot.VirtualView) bool {
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

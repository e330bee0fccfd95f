package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// EffectKind says what an Effect is about.
type EffectKind string

// The kinds of effects.
const (
	// EffectAccess: workloads may call a service that they might not before, or the other way round.
	EffectAccess EffectKind = "access"
	// EffectLimit: callers may ask a service for more or for less than before.
	EffectLimit EffectKind = "limit"
	// EffectReach: callers in a mesh have a name for a service that they did not have, or lose it.
	EffectReach EffectKind = "reach"
	// EffectRoute: requests go elsewhere.
	EffectRoute EffectKind = "route"
	// EffectSetting: something else is done with requests, such as another timeout.
	EffectSetting EffectKind = "setting"
	// EffectLocality: callers begin or cease to prefer pods near them.
	EffectLocality EffectKind = "locality"
	// EffectHosts: proxies know other hosts.
	EffectHosts EffectKind = "hosts"
	// EffectTrust: workloads get certificates of another root, and restart.
	EffectTrust EffectKind = "trust"
	// EffectSize: proxies or clusters hold more or less.
	EffectSize EffectKind = "size"
)

// Effect is what a change does to traffic.
type Effect struct {
	Kind EffectKind `json:"kind"`
	// On is the service, VirtualDestination, workload, mesh or VirtualMesh.
	On snapshot.Ref `json:"on"`
	// From are the meshes whose callers are concerned, ascending; none means all callers.
	From []snapshot.Ref `json:"from,omitempty"`
	// What says in a few words what it is, such as "timeout of any requests".
	What string `json:"what"`
	// Before and After are what it is, or a list of workloads; empty for nothing.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Then says what follows from it, such as "6 services without an AccessPolicy open".
	Then string `json:"then,omitempty"`
	// Workloads are the callers that are refused, or allowed, from now on, ascending.
	Workloads []snapshot.Ref `json:"workloads,omitempty"`
	// Harm: requests that were answered before are not any more.
	Harm bool `json:"harm,omitempty"`
	// Opens: callers are let in whom no policy names.
	Opens bool `json:"opens,omitempty"`
}

// Text is the effect as a sentence without a period.
func (e *Effect) Text() string {
	from := ""
	if len(e.From) > 0 {
		from = " from " + meshNames(e.From)
	}
	if e.Then != "" {
		whole := *e
		whole.Then = ""
		return whole.Text() + ": " + e.Then
	}
	switch {
	case e.Kind == EffectLimit:
		return fmt.Sprintf("%s: callers could ask for %s; now for %s", e.On.Name, orNothing(e.Before), orNothing(e.After))
	case len(e.Workloads) > 0:
		return fmt.Sprintf("%s: %s: %s", e.On.Name, e.What, refNames(e.Workloads))
	case e.Before == "" && e.After == "":
		return fmt.Sprintf("%s%s: %s", e.On.Name, from, e.What)
	case e.Before == "":
		return fmt.Sprintf("%s%s: %s: %s", e.On.Name, from, e.What, e.After)
	case e.After == "":
		return fmt.Sprintf("%s%s: %s: no longer %s", e.On.Name, from, e.What, e.Before)
	}
	return fmt.Sprintf("%s%s: %s: %s, before %s", e.On.Name, from, e.What, e.After, e.Before)
}

// Mark stands before the text of an effect: ! means that requests fail which did not before, or that a service opens to callers
// whom no policy names.
func (e *Effect) Mark() string {
	if e.Harm || e.Opens {
		return "!"
	}
	return "-"
}

// Level is how bad it is: an error if requests fail which did not before, and a warning if a service opens.
func (e *Effect) Level() Level {
	switch {
	case e.Harm:
		return Error
	case e.Opens:
		return Warning
	}
	return OK
}

// meshNames names meshes for people.
func meshNames(refs []snapshot.Ref) string {
	return verb(len(refs), "mesh ", "meshes ") + refNames(refs)
}

func refNames(refs []snapshot.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.Name
	}
	return firstOf(names)
}

// compare orders effects: harm first and then what opens, then by kind and object.
func (e *Effect) compare(o *Effect) int {
	switch {
	case e.Harm != o.Harm && e.Harm:
		return -1
	case e.Harm != o.Harm:
		return 1
	case e.Opens != o.Opens && e.Opens:
		return -1
	case e.Opens != o.Opens:
		return 1
	}
	return cmp.Or(cmp.Compare(e.order(), o.order()), e.On.Compare(o.On), strings.Compare(e.What, o.What), slices.CompareFunc(e.From, o.From, snapshot.Ref.Compare))
}

func (e *Effect) order() int {
	return slices.Index([]EffectKind{EffectAccess, EffectLimit, EffectReach, EffectRoute, EffectSetting, EffectLocality, EffectTrust, EffectHosts, EffectSize}, e.Kind)
}

// Effects are what a change does to traffic: harm first. Both translations are of the same
// Translator, which shares what is the same.
func Effects(before, after *Index) []Effect {
	e := &effects{before: before, after: after, callers: after.Refs(snapshot.Workload)}
	for _, ref := range sortedRefs(after.destinations) {
		switch was, is := before.destinations[ref], after.destinations[ref]; {
		case was != is:
			e.destination(ref, was, is)
		case !slices.Equal(before.outside.othersInFront(was), after.outside.othersInFront(is)) || !slices.Equal(before.outside.denyingBeside(was), after.outside.denyingBeside(is)):
			e.access(ref, was, is)
		}
	}
	for _, ref := range sortedRefs(before.destinations) {
		if after.destinations[ref] == nil {
			e.gone(ref, before.destinations[ref])
		}
	}
	for _, ref := range sortedRefs(union(before.virtualDestinations, after.virtualDestinations)) {
		if was, is := before.virtualDestinations[ref], after.virtualDestinations[ref]; was != is {
			e.virtualDestination(ref, was, is)
		}
	}
	e.defaults()
	e.hosts()
	e.trust()
	e.sizes()
	e.list = gather(e.list)
	slices.SortStableFunc(e.list, func(a, b Effect) int { return a.compare(&b) })
	return e.list
}

// effects collects what differs.
type effects struct {
	before, after *Index
	// callers are all workloads, ascending.
	callers []snapshot.Ref
	list    []Effect
}

func (e *effects) add(effect Effect) { e.list = append(e.list, effect) }

// union has the keys of both maps.
func union[T any](a, b map[snapshot.Ref]T) map[snapshot.Ref]T {
	out := map[snapshot.Ref]T{}
	for _, m := range []map[snapshot.Ref]T{a, b} {
		for ref, value := range m {
			out[ref] = value
		}
	}
	return out
}

// destination compares a service; was is nil if it was not there before.
func (e *effects) destination(ref snapshot.Ref, was, is *snapshot.DestinationPlan) {
	if was == nil || is.Mesh == nil || was.Mesh == nil {
		return
	}
	e.reach(ref, was, is)
	e.openness(ref, was, is)
	e.access(ref, was, is)
	e.views(ref, was, is)
	e.locality(ref, was, is)
}

// reach compares the meshes that know the service.
func (e *effects) reach(ref snapshot.Ref, was, is *snapshot.DestinationPlan) {
	had, has := federatedTo(was), federatedTo(is)
	for _, mesh := range has {
		if !slices.Contains(had, mesh) {
			e.add(Effect{Kind: EffectReach, On: ref, From: []snapshot.Ref{mesh}, What: "can be called", After: nameAt(is, mesh)})
		}
	}
	for _, mesh := range had {
		if !slices.Contains(has, mesh) {
			e.add(Effect{Kind: EffectReach, On: ref, From: []snapshot.Ref{mesh}, What: "can be called", Before: nameAt(was, mesh), Harm: true})
		}
	}
}

// nameAt is the name by which callers in a mesh know a service, and because of what.
func nameAt(d *snapshot.DestinationPlan, mesh snapshot.Ref) string {
	text := "as " + d.Federation.Hostname
	for i, to := range d.Federation.To {
		if to.Ref == mesh && d.Federation.ImportedBy != nil {
			text += ", " + needText(d.Federation.ImportedBy[i])
		}
	}
	return text
}

// gone is about a service that is no longer there: other meshes lose it.
func (e *effects) gone(ref snapshot.Ref, was *snapshot.DestinationPlan) {
	for _, mesh := range federatedTo(was) {
		if e.after.meshes[mesh] != nil {
			e.add(Effect{Kind: EffectReach, On: ref, From: []snapshot.Ref{mesh}, What: "can be called", Before: nameAt(was, mesh), Harm: true})
		}
	}
}

func federatedTo(d *snapshot.DestinationPlan) (refs []snapshot.Ref) {
	if d.Federation != nil {
		for _, mesh := range d.Federation.To {
			refs = append(refs, mesh.Ref)
		}
	}
	return refs
}

// access compares who may call the service, and what for. Callers that cannot reach it at all are
// for reach.
func (e *effects) access(ref snapshot.Ref, was, is *snapshot.DestinationPlan) {
	beside := len(e.before.outside.othersInFront(was)) + len(e.after.outside.othersInFront(is)) + len(e.before.outside.denyingBeside(was)) + len(e.after.outside.denyingBeside(is))
	if was.Open() != snapshot.OpenNot && is.Open() != snapshot.OpenNot && beside == 0 {
		return
	}
	var refused, allowed []snapshot.Ref
	narrowed := false
	gateBefore, gateAfter := e.before.gateTo(was), e.after.gateTo(is)
	for _, caller := range e.callers {
		workload := e.after.workloads[caller]
		before, after := e.before.meshOf(workload), e.after.meshOf(workload)
		if before == nil || after == nil || !reaches(before, was) || !reaches(after, is) {
			continue
		}
		could, _ := gateBefore.admits(workload)
		switch can, _ := gateAfter.admits(workload); {
		case could && !can:
			refused = append(refused, caller)
		case can && !could:
			allowed = append(allowed, caller)
		case can && !narrowed:
			narrowed = asksLess(conditionsFor(workload, before, was), conditionsFor(workload, after, is)) || deniesMore(workload, was, is, before, after)
		}
	}
	if len(refused) > 0 {
		e.add(Effect{Kind: EffectAccess, On: ref, What: snapshot.Count(len(refused), "workload") + " may no longer call it", Workloads: refused, Harm: true})
	}
	if len(allowed) > 0 {
		e.add(Effect{Kind: EffectAccess, On: ref, What: snapshot.Count(len(allowed), "workload") + " may call it now", Workloads: allowed})
	}
	before, wasLimited := asked(was)
	after, isLimited := asked(is)
	if (wasLimited || isLimited) && before != after {
		e.add(Effect{Kind: EffectLimit, On: ref, What: "callers may ask for", Before: before, After: after, Harm: narrowed})
	}
}

// conditionsFor are the rules that let a workload in, as if they were for anyone; one without conditions
// where everybody may call.
func conditionsFor(workload *discoveryv1.Workload, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) (out []snapshot.EffectiveRule) {
	if d.Open() != snapshot.OpenNot {
		return []snapshot.EffectiveRule{{Anyone: true}}
	}
	caller := callerOf(workload, mesh, d.WithoutIdentity(mesh) == nil)
	for _, rule := range access.RulesFor(d, mesh) {
		if access.AllowsCaller(d.Mesh, &rule, caller) {
			rule.Anyone = true
			out = append(out, rule)
		}
	}
	return out
}

// asksLess reports whether something that rules for anyone allowed is not allowed by any rule now.
func asksLess(before, after []snapshot.EffectiveRule) bool {
	rules := access.NewIntersection(nil)
	return slices.ContainsFunc(before, func(was snapshot.EffectiveRule) bool { return !rules.AnyContains(after, &was) })
}

// asked says what callers may ask for, with the callers in parentheses, and whether a rule limits that.
func asked(d *snapshot.DestinationPlan) (text string, limited bool) {
	add := func(rules []Rule) (parts []string) {
		for _, r := range rules {
			asks := r.asks()
			limited = limited || asks != ""
			parts = append(parts, cmp.Or(asks, "anything")+" ("+firstOf(r.Callers)+")")
		}
		slices.Sort(parts)
		return slices.Compact(parts)
	}
	text = "anything"
	if d.Open() == snapshot.OpenNot {
		text = strings.Join(add(rulesOn(d)), "; ")
	}
	return text + prefixed(", but not ", strings.Join(add(deniedRules(d)), "; nor ")), limited
}

// locality says if callers begin or cease to prefer pods near them: Istio does that for services
// with outlier detection (istio.io: locality load balancing).
func (e *effects) locality(ref snapshot.Ref, was, is *snapshot.DestinationPlan) {
	places := map[string]bool{}
	for _, endpoint := range describing(e.after).endpoints(is) {
		places[endpoint.Zone] = true
	}
	if len(places) < 2 {
		return
	}
	prefers := func(d *snapshot.DestinationPlan) bool {
		return slices.ContainsFunc(d.Views, func(v *snapshot.View) bool { return v.Mesh.Ref == d.Mesh.Ref && v.Outlier != nil })
	}
	switch {
	case prefers(is) && !prefers(was):
		e.add(Effect{Kind: EffectLocality, On: ref, What: "with outlier detection, callers prefer pods in their own region and zone, and go to others if those fail"})
	case prefers(was) && !prefers(is):
		e.add(Effect{Kind: EffectLocality, On: ref, What: "without outlier detection, callers no longer prefer pods in their own region and zone"})
	}
}

package engine

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// try is what proxies are to try: what would be refused if all that is audited was enforced.
//
// Proxies try all that may let a request in by itself, without what is in force beside it. So who is let in is tried for all services of a
// namespace as soon as it closes one, as several may have the same pods; and for all of a mesh where its VirtualMesh is audited. Where that
// only lets in more, nothing is tried. What is denied is tried where that is audited, and no other denial: what these deny is refused now.
func (a *auditor) try(inForce, would *snapshot.Plan) []*snapshot.TrialPlan {
	t := &trying{audited: map[snapshot.Ref]bool{}, places: map[place][]snapshot.Ref{}, before: a.trials, now: map[string]*snapshot.TrialPlan{}}
	closed := map[snapshot.Ref]bool{}
	for d := range inForce.Destinations.All() {
		if d.Open() == snapshot.OpenNot {
			closed[d.Ref] = true
		}
	}
	for _, p := range would.Policies {
		t.audited[p.Ref] = a.policies[p] != nil
	}
	t.meshes(inForce, would)
	for d := range would.Destinations.All() {
		if of := placeOf(d); of != (place{}) && !closed[d.Ref] {
			for _, rule := range d.Access {
				if ref := rule.Origin.Ref; t.audited[ref] && !slices.Contains(t.places[of], ref) {
					t.places[of] = append(t.places[of], ref)
				}
			}
		}
	}
	for d := range would.Destinations.All() {
		t.destination(d)
	}
	a.trials = t.now
	slices.SortFunc(t.list, func(a, b *snapshot.TrialPlan) int { return strings.Compare(a.Key(), b.Key()) })
	return t.list
}

// place is where a mesh applies what is allowed on one service to others: a namespace, or with an empty one all of the mesh.
type place struct {
	mesh      *snapshot.MeshPlan
	namespace string
}

// placeOf is that of a service; zero if its proxies can try nothing.
func placeOf(d *snapshot.DestinationPlan) place {
	k := d.Destination.Spec.KubeService
	if k == nil || d.Mesh == nil || d.Mesh.Dialect.Tries == nil || !d.Mesh.Dialect.Tries(d.Mesh, k) {
		return place{}
	}
	return place{d.Mesh, k.Ref.Namespace}
}

// trying collects trials.
type trying struct {
	audited map[snapshot.Ref]bool
	// places are those where it is tried who is let in, with what is audited there.
	places map[place][]snapshot.Ref
	// before are the trials of the last plan, and now those of this one, by their keys.
	before, now map[string]*snapshot.TrialPlan
	list        []*snapshot.TrialPlan
}

// meshes tries whether the meshes deny by default that do not now.
func (t *trying) meshes(inForce, would *snapshot.Plan) {
	denies := map[snapshot.Ref]bool{}
	for _, m := range inForce.Meshes {
		denies[m.Ref] = m.DenyByDefault != nil
	}
	for _, m := range would.Meshes {
		if m.DenyByDefault == nil || denies[m.Ref] || m.Dialect.Tries == nil || !m.Dialect.Tries(m, nil) {
			continue
		}
		audits := []snapshot.Ref{m.DenyByDefault.Ref}
		t.places[place{mesh: m}] = audits
		t.add(&snapshot.TrialPlan{Mesh: m, Audits: audits})
	}
}

// destination tries what is audited on a service, and beside it.
func (t *trying) destination(d *snapshot.DestinationPlan) {
	of := placeOf(d)
	if of == (place{}) {
		return
	}
	trial := &snapshot.TrialPlan{Mesh: d.Mesh, Destination: d, Denials: t.denials(d)}
	if len(d.Access) > 0 {
		trial.Audits = slices.Concat(t.places[of], t.places[place{mesh: d.Mesh}])
		trial.Allows = len(trial.Audits) > 0
	}
	if trial.Denials != nil {
		for _, rule := range trial.Denials.Policies {
			trial.Audits = append(trial.Audits, rule.Origin.Ref)
		}
	}
	if len(trial.Audits) == 0 {
		return
	}
	slices.SortFunc(trial.Audits, snapshot.Ref.Compare)
	trial.Audits = slices.Compact(trial.Audits)
	t.add(trial)
}

// denials are those of a service that are audited; nil if none are.
func (t *trying) denials(d *snapshot.DestinationPlan) *snapshot.Denials {
	if d.Denials == nil {
		return nil
	}
	out := &snapshot.Denials{}
	for _, rule := range d.Denials.Rules {
		if t.audited[rule.Policy] {
			out.Rules = append(out.Rules, rule)
		}
	}
	for _, rule := range d.Denials.Policies {
		if t.audited[rule.Origin.Ref] {
			out.Policies = append(out.Policies, rule)
		}
	}
	if len(out.Rules) == 0 {
		return nil
	}
	return out
}

// add adds a trial, or the one of the plan before if that is the same: what is the same has the same address.
func (t *trying) add(trial *snapshot.TrialPlan) {
	key := trial.Key()
	if was := t.before[key]; was != nil && was.Mesh == trial.Mesh && was.Destination == trial.Destination && was.Allows == trial.Allows &&
		(was.Denials == nil) == (trial.Denials == nil) && slices.Equal(was.Audits, trial.Audits) {
		trial = was
	}
	t.now[key] = trial
	t.list = append(t.list, trial)
}

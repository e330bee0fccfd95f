package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Moment is a step from one translation to a later one of the same Translator, to be told as changes.
type Moment struct {
	Before, After *snapshot.State
	// Edits are the objects that users created, edited or deleted in between.
	Edits []snapshot.ChangeCause
	// Observed says in a few words which objects differ otherwise, such as "3 pods in cluster-1".
	Observed string
	At       time.Time
}

const (
	// maxCompared is how many services are compared at once; of more, the first ones are.
	maxCompared = 200
	// maxAround is how many services beside them are looked at, because they may have the same pods.
	maxAround = 2000
	// maxToldEffects is how many effects are listed at once.
	maxToldEffects = 20
)

// Changes are what the step changed for traffic, harm first, and what else it is worth to be told: clusters that
// were lost and found, problems of what carries traffic, and edits without effect. What comes and goes without any
// of these, such as pods, is none.
func (m *Moment) Changes() []snapshot.Change {
	t := &telling{Moment: m, clusters: m.clusterChanges(), told: map[snapshot.Ref]bool{}}
	if m.isFirstRead() && len(m.Edits) == 0 {
		return t.clusters // what follows is not new, but newly read
	}
	t.problems, t.because = m.problemChanges()
	t.tellEffects()
	for i := range m.Edits {
		if edit := &m.Edits[i]; !t.told[edit.On] {
			t.add(snapshot.Change{Kind: snapshot.ChangeEdited, On: edit.On, What: editText(edit) + "; nothing changes for traffic"})
		}
	}
	// What happened first is listed first.
	return slices.Concat(t.clusters, t.problems, t.rootChanges(), t.list)
}

// telling collects changes.
type telling struct {
	*Moment
	clusters, problems, list []snapshot.Change
	// because are the problems as causes.
	because []snapshot.ChangeCause
	// told are the edits that an entry has as its cause.
	told map[snapshot.Ref]bool
}

func (t *telling) add(c snapshot.Change) {
	c.Time = t.At
	t.list = append(t.list, c)
}

func editText(edit *snapshot.ChangeCause) string {
	if edit.By == "" {
		return edit.What
	}
	return edit.What + " by " + edit.By
}

// clusterChanges are the clusters that were registered, lost and found.
func (m *Moment) clusterChanges() (out []snapshot.Change) {
	add := func(name string, kind snapshot.ChangeKind, what string) {
		ref := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: m.After.Input.Management.Namespace, Name: name}
		out = append(out, snapshot.Change{Time: m.At, Kind: kind, On: ref, Cluster: name, What: what})
	}
	was := map[string]*snapshot.Cluster{}
	for _, c := range m.Before.Input.Clusters {
		was[c.Name] = c
	}
	for _, c := range m.After.Input.Clusters {
		old := was[c.Name]
		delete(was, c.Name)
		switch {
		case old == nil:
			add(c.Name, snapshot.ChangeClusterAdded, "was registered")
		case old.Sync == snapshot.Synced && c.Sync == snapshot.Stale:
			add(c.Name, snapshot.ChangeClusterLost, "is "+cmp.Or(c.Unreachable(), "unreachable"))
		case old.Sync == snapshot.Stale && c.Sync == snapshot.Synced:
			add(c.Name, snapshot.ChangeClusterFound, "is reachable again")
		}
	}
	for _, c := range m.Before.Input.Clusters {
		if was[c.Name] != nil {
			add(c.Name, snapshot.ChangeClusterRemoved, "is not registered any more")
		}
	}
	return out
}

// carries are the codes of issues that say what carries traffic is not there.
var carries = map[snapshot.Code]bool{
	snapshot.GatewayMissing: true, snapshot.GatewayUnusable: true, snapshot.ControlPlaneMissing: true, snapshot.MeshUnreadable: true,
	snapshot.TargetMissing: true, snapshot.SubsetEmpty: true, snapshot.NoEndpoints: true, snapshot.RootMissing: true,
	snapshot.TrustPending: true, snapshot.CertificateFailed: true, snapshot.LastGoodInForce: true, snapshot.NoLongerEnforced: true,
	snapshot.RootsDiffer: true, snapshot.WithdrawalHeld: true,
}

// problemChanges are the problems of what carries traffic that are new, and those that are gone; and the same as causes.
func (m *Moment) problemChanges() (out []snapshot.Change, causes []snapshot.ChangeCause) {
	before, after := carrying(m.Before.Output), carrying(m.After.Output)
	for _, list := range []struct {
		issues, others map[problemKey]*snapshot.Issue
		kind           snapshot.ChangeKind
	}{{after, before, snapshot.ChangeProblem}, {before, after, snapshot.ChangeRepaired}} {
		var found []snapshot.Change
		for key, issue := range list.issues {
			if list.others[key] != nil {
				continue
			}
			what, because := issue.Message, "has a problem: "+issue.Message
			if list.kind == snapshot.ChangeRepaired {
				what, because = "solved: "+issue.Message, "does not have this problem any more: "+issue.Message
			}
			causes = append(causes, snapshot.ChangeCause{Kind: list.kind, Code: issue.Code, On: issue.Ref, What: because})
			found = append(found, snapshot.Change{
				Time: m.At, Kind: list.kind, Code: issue.Code, On: issue.Ref, Cluster: cmp.Or(issue.Ref.Cluster, issue.Target.Cluster), What: what,
				Harm: list.kind == snapshot.ChangeProblem && issue.Severity == snapshot.Error,
			})
		}
		slices.SortFunc(found, func(a, b snapshot.Change) int { return cmp.Or(a.On.Compare(b.On), strings.Compare(a.What, b.What)) })
		if more := len(found) - maxToldEffects; more > 0 {
			found = append(found[:maxToldEffects], snapshot.Change{Time: m.At, Kind: snapshot.ChangeMore, What: snapshot.Count(more, "more problem")})
		}
		out = append(out, found...)
	}
	slices.SortFunc(causes, func(a, b snapshot.ChangeCause) int {
		return cmp.Or(a.On.Compare(b.On), strings.Compare(a.What, b.What))
	})
	return out, causes
}

// problemKey is what is the same of an issue, whatever numbers its message has.
type problemKey struct {
	code        snapshot.Code
	ref, target snapshot.Ref
}

func carrying(out *snapshot.Output) map[problemKey]*snapshot.Issue {
	found := map[problemKey]*snapshot.Issue{}
	for i := range out.Issues {
		if issue := &out.Issues[i]; carries[issue.Code] && issue.Severity > snapshot.Info {
			found[problemKey{issue.Code, issue.Ref, issue.Target}] = issue
		}
	}
	return found
}

// rootChanges are the VirtualMeshes that sign with another root.
func (m *Moment) rootChanges() (out []snapshot.Change) {
	was := map[snapshot.Ref]string{}
	for _, r := range m.Before.Input.Roots {
		was[r.VirtualMesh] = r.Signs
	}
	for _, r := range m.After.Input.Roots {
		if old, known := was[r.VirtualMesh]; r.Signs == "" || old == r.Signs {
			continue
		} else if what := "has a root certificate: " + shortPrint(r.Signs); !known || old == "" {
			out = append(out, snapshot.Change{Time: m.At, Kind: snapshot.ChangeRoot, On: r.VirtualMesh, What: what})
		} else {
			what = "exchanges its root certificate: " + shortPrint(r.Signs) + ", before " + shortPrint(old)
			out = append(out, snapshot.Change{Time: m.At, Kind: snapshot.ChangeRoot, On: r.VirtualMesh, What: what})
		}
	}
	return out
}

// shortPrint is the beginning of a fingerprint.
func shortPrint(fingerprint string) string { return fingerprint[:min(len(fingerprint), 12)] }

// tellEffects lists what changed for traffic.
func (t *telling) tellEffects() {
	changed := changedDestinations(t.Before.Plan, t.After.Plan)
	if len(changed) == 0 && sameElsewhere(t.Before.Plan, t.After.Plan) {
		return
	}
	compared := changed[:min(len(changed), maxCompared)]
	before, after := New(narrowed(t.Before, compared)), New(narrowed(t.After, compared))
	var list []Effect
	for _, e := range Effects(before, after) {
		// How much proxies hold changes with each pod.
		if e.Kind != EffectSize {
			list = append(list, e)
		}
	}
	told := t.byObject(list, before, after)
	for i := range told[:min(len(told), maxToldEffects)] {
		t.add(told[i])
	}
	more := len(told) - maxToldEffects
	if len(told) > 0 && len(changed) > len(compared) {
		t.add(snapshot.Change{
			Kind: snapshot.ChangeMore, What: "of " + snapshot.Count(len(changed), "service") + " that may have changed, " +
				snapshot.Count(len(compared), "service") + " were compared", Causes: t.causesOf(snapshot.Ref{}),
		})
	}
	if more > 0 {
		t.add(snapshot.Change{Kind: snapshot.ChangeMore, What: snapshot.Count(more, "more object") + " changed for traffic", Causes: t.causesOf(snapshot.Ref{})})
	}
}

// isFirstRead reports whether a cluster was read for the first time, as after a start.
func (m *Moment) isFirstRead() bool {
	unread := map[string]bool{}
	for _, c := range m.Before.Input.Clusters {
		unread[c.Name] = c.Sync == snapshot.Unsynced
	}
	return slices.ContainsFunc(m.After.Input.Clusters, func(c *snapshot.Cluster) bool { return unread[c.Name] && c.Sync != snapshot.Unsynced })
}

// sameElsewhere reports whether all that effects are about but Destinations is the same.
func sameElsewhere(a, b *snapshot.Plan) bool {
	return slices.Equal(a.Meshes, b.Meshes) && slices.Equal(a.VirtualMeshes, b.VirtualMeshes) &&
		slices.Equal(a.VirtualDestinations, b.VirtualDestinations) && slices.Equal(a.Sidecars, b.Sidecars)
}

// maxClauses bounds the effects on one object that an entry has in words.
const maxClauses = 3

// byObject makes an entry for each object with effects, in the order of the worst of these.
func (t *telling) byObject(list []Effect, before, after *Index) (out []snapshot.Change) {
	place, count := map[snapshot.Ref]int{}, map[snapshot.Ref]int{}
	for i := range list {
		e := &list[i]
		at, known := place[e.On]
		if count[e.On]++; known {
			if count[e.On] <= maxClauses {
				out[at].What += "; " + e.clause()
			}
			continue
		}
		x := after
		if x.destinations[e.On] == nil {
			x = before
		}
		place[e.On] = len(out)
		out = append(out, snapshot.Change{
			Kind: snapshot.ChangeKind(e.Kind), On: e.On, Called: calledAs(x, e.On), Cluster: clusterOfEffect(x, e.On), What: e.clause(),
			Harm: e.Harm, Causes: t.causesOf(e.On),
		})
	}
	for on, n := range count {
		if n > maxClauses {
			out[place[on]].What += fmt.Sprintf("; and %d more", n-maxClauses)
		}
	}
	return out
}

// clause is the text of an effect without its object.
func (e *Effect) clause() string {
	bare := *e
	bare.From = nil
	text := strings.TrimPrefix(bare.Text(), e.On.Name+": ")
	if len(e.From) > 0 {
		text += " (from " + meshNames(e.From) + ")"
	}
	return text
}

// changedDestinations are those whose plan is not the same in both, ascending.
func changedDestinations(before, after *snapshot.Plan) (out []snapshot.Ref) {
	snapshot.Diff(before.Destinations, after.Destinations, func(a, b *snapshot.DestinationPlan) int { return a.Ref.Compare(b.Ref) },
		func(a, b *snapshot.DestinationPlan) {
			if a == nil {
				a = b
			}
			out = append(out, a.Ref)
		})
	return out
}

// narrowed is a State with some Destinations and those that may have the same pods, which is indexed fast.
func narrowed(state *snapshot.State, refs []snapshot.Ref) *snapshot.State {
	wanted, namespaces := map[snapshot.Ref]bool{}, map[[2]string]bool{}
	for _, ref := range refs {
		wanted[ref] = true
	}
	place := func(d *snapshot.DestinationPlan) (at [2]string, ok bool) {
		k := d.Destination.Spec.KubeService
		if k == nil {
			return at, false
		}
		return [2]string{k.Ref.ClusterName, k.Ref.Namespace}, true
	}
	for d := range state.Plan.Destinations.All() {
		if at, ok := place(d); ok && wanted[d.Ref] {
			namespaces[at] = true
		}
	}
	var kept []*snapshot.DestinationPlan
	around := 0
	for d := range state.Plan.Destinations.All() {
		at, ok := place(d)
		if beside := !wanted[d.Ref] && ok && namespaces[at] && around < maxAround; beside || wanted[d.Ref] {
			kept = append(kept, d)
			if beside {
				around++
			}
		}
	}
	plan, out := *state.Plan, *state.Output
	plan.Destinations = snapshot.ListOf(kept)
	out.Statuses, out.Issues = snapshot.List[*snapshot.Status]{}, nil
	narrow := *state
	narrow.Plan, narrow.Output = &plan, &out
	return &narrow
}

// calledAs is the source of a discovered object, as people call it; empty for other objects.
func calledAs(x *Index, ref snapshot.Ref) string {
	if x.destinations[ref] == nil && x.workloads[ref] == nil {
		return ""
	}
	if source := x.source(ref); source != ref.Name {
		return source
	}
	return ""
}

// clusterOfEffect is the cluster of what an effect is on; empty if it has none.
func clusterOfEffect(x *Index, ref snapshot.Ref) string {
	if m := x.meshes[ref]; m != nil {
		return m.Cluster
	}
	return cmp.Or(x.clusterOf(ref), x.clusterOfWorkload(ref))
}

// causesOf are what may have changed something on an object, as far as that is known: edits of users first, then
// what was lost and found, and else what differs in clusters. The zero Ref stands for several objects.
func (t *telling) causesOf(on snapshot.Ref) (out []snapshot.ChangeCause) {
	for _, edit := range t.Edits {
		if t.selects(edit.On, on) {
			out = append(out, edit)
			t.told[edit.On] = true
		}
	}
	if len(out) == 0 {
		for _, c := range t.clusters {
			out = append(out, snapshot.ChangeCause{Kind: c.Kind, On: c.On, What: c.What})
		}
		out = append(out, slices.DeleteFunc(slices.Clone(t.because), func(c snapshot.ChangeCause) bool { return c.On == on })...)
	}
	if len(out) == 0 && t.Observed != "" {
		out = append(out, snapshot.ChangeCause{Kind: snapshot.ChangeObserved, What: "of " + t.Observed})
	}
	return out[:min(len(out), snapshot.MaxChangeCauses)]
}

// selects reports whether a policy that was edited selects a Destination now, or did; other objects may be about
// everything.
func (t *telling) selects(edited, on snapshot.Ref) bool {
	if on.Kind != snapshot.Destination || edited.Kind != snapshot.TrafficPolicy && edited.Kind != snapshot.AccessPolicy {
		return true
	}
	for _, plan := range []*snapshot.Plan{t.Before.Plan, t.After.Plan} {
		for _, p := range plan.Policies {
			if p.Ref == edited && slices.ContainsFunc(p.Verdicts, func(v snapshot.Verdict) bool { return v.Destination == on }) {
				return true
			}
		}
	}
	return false
}

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// States that only answers have: statuses in the API do not distinguish them.
const (
	// StatePartial: some targets accepted it, and others did not.
	StatePartial commonv1.ApprovalState = "PARTIAL"
	// StateDiffers: it was accepted, and a cluster has something else.
	StateDiffers commonv1.ApprovalState = "DIFFERS"
)

// InForce is how what is in force differs from what follows.
type InForce struct {
	// Stored is how the stored status differs; nil if it does not.
	Stored *Stored `json:"stored,omitempty"`
	// Drifts are the objects generated from it, or for it, that are not in their clusters as
	// they should be.
	Drifts []snapshot.Drift `json:"drifts,omitempty"`
	// InProxies is how many proxies have it, as their control planes say; nil if nobody asked them.
	InProxies *Synced `json:"inProxies,omitempty"`
}

func (x describer) inForceOf(ref snapshot.Ref) InForce {
	f := InForce{Drifts: x.drifts[ref]}
	if s := x.stored[ref]; s != nil {
		f.Stored = s.difference
	}
	return f
}

// Observe adds what is known of the serve that runs, and of the objects in the clusters: what
// is in force, and not only what follows. Both may be nil. It is called once, before the
// Index is used. Leads says whether a serve leads.
func (x *Index) Observe(serving *snapshot.Serving, leads bool, observed *snapshot.Observed) {
	x.drifts, x.unobserved = map[snapshot.Ref][]snapshot.Drift{}, map[string]string{}
	if serving != nil && serving.Known && !leads {
		x.issues.add(notServed(serving), snapshot.Ref{})
		for _, status := range x.stored {
			if status.difference != nil {
				status.difference.Why, _ = notServing(serving)
			}
		}
	}
	if observed == nil {
		return
	}
	x.unobserved = observed.Unread
	x.created = observed.Created
	ages{x}.say()
	drifts := map[snapshot.Ref]*snapshot.Drift{}
	for i := range observed.Drifts {
		d := &observed.Drifts[i]
		x.drifts[d.Ref] = append(x.drifts[d.Ref], *d)
		if d.State == snapshot.DriftLeftover {
			x.issues.add(driftIssue(d, leads, x.frozenReason(d.Ref.Cluster) != ""), d.Ref)
			continue
		}
		drifts[d.Ref] = d
	}
	if len(drifts) == 0 {
		return
	}
	for part := range x.state.Output.Parts.All() {
		for _, o := range part.Objects {
			d := drifts[o.Ref]
			if d == nil || d.State == snapshot.DriftForeign && len(x.issues[o.Ref]) > 0 {
				continue // the server has said so
			}
			issue := driftIssue(d, leads, x.frozenReason(d.Ref.Cluster) != "")
			x.issues.add(issue, d.Ref)
			concerned := slices.Clone(o.Content.Parents)
			for _, made := range part.Objects {
				if discovered(made.Ref.Kind) {
					concerned = append(concerned, made.Ref)
				}
			}
			for _, ref := range concerned {
				x.drifts[ref] = append(x.drifts[ref], *d)
			}
			x.issues.add(issue, concerned...)
		}
	}
}

// NotServed says that no serve leads, and since when.
func NotServed(s *snapshot.Serving) string {
	what, effect := notServing(s)
	return what + ": " + effect
}

// notServing says since when no serve leads, and what that means.
func notServing(s *snapshot.Serving) (what, effect string) {
	if s.Since.IsZero() {
		return "no `meshctl serve` has led in this management cluster yet", "nothing is written, and what is shown is what would be"
	}
	since := s.Since
	if s.Holder != "" {
		since = s.Until
	}
	return "nothing has served since " + timeText(since), "edits are not written, and what is shown is what would be"
}

// notServed makes that an issue.
func notServed(s *snapshot.Serving) snapshot.Issue {
	return snapshot.Errorf(snapshot.NotServed, "start it: `meshctl serve`, or see why the pods of `meshctl install` are not ready", "%s", NotServed(s))
}

// ServingText says who serves: "serve: leading for 3 s". Alarm says that nothing does.
func ServingText(s *snapshot.Serving, now time.Time) (text string, alarm bool) {
	if !s.Known {
		return "serve: not known (" + s.Reason + ")", false
	}
	leads, since := s.At(now)
	switch {
	case leads:
		return "serve: leading for " + duration.HumanDuration(max(now.Sub(since), 0)), false
	case since.IsZero():
		return "nothing serves: this is what would be", true
	}
	return "nothing has served for " + duration.HumanDuration(max(now.Sub(since), 0)) + ": this is what would be", true
}

// driftIssue is the issue of an object that is not as it should be. Leads says whether a serve leads, and frozen that nothing is changed in
// its cluster.
func driftIssue(d *snapshot.Drift, leads, frozen bool) snapshot.Issue {
	hint := "`meshctl serve` writes it again"
	switch {
	case frozen:
		hint = "nothing is written in cluster " + d.Ref.Cluster + " until it can be read again"
	case !leads:
		hint = "start `meshctl serve`: it writes it again"
	case d.By != "":
		hint += "; if it is changed again and again, stop " + d.By
	}
	name := shortName(d.Ref)
	switch d.State {
	case snapshot.DriftMissing:
		return snapshot.Errorf(snapshot.Drifted, hint, "%s %s is not in cluster %s, and should be", d.Ref.Kind, name, d.Ref.Cluster).On(d.Ref, d.Ref)
	case snapshot.DriftLeftover:
		issue := snapshot.Warnf(snapshot.Drifted, "start `meshctl serve`: it deletes it", "%s %s is in cluster %s, and nothing wants it any more", d.Ref.Kind, name, d.Ref.Cluster)
		switch {
		case leads:
			// It knows why it keeps it, for a while (Settings), and says so if that needs somebody.
			issue.Severity, issue.Hint = snapshot.Info, "`meshctl serve` deletes it after a while"
		case d.Ref.Kind == snapshot.PodBounceDirective:
			issue.Severity = snapshot.Info // it was carried out, and decides about no request
		}
		return issue.On(d.Ref, d.Ref)
	case snapshot.DriftForeign:
		return snapshot.Errorf(snapshot.Drifted, "rename or delete the other one", "another %s %s is in cluster %s, which meshctl did not write", d.Ref.Kind, name, d.Ref.Cluster).On(d.Ref, d.Ref)
	}
	by := ""
	if d.By != "" {
		by = "; last changed by " + d.By + " at " + timeText(d.At)
	}
	return snapshot.Errorf(snapshot.Drifted, hint, "%s %s in cluster %s is not as it should be%s%s", d.Ref.Kind, name, d.Ref.Cluster, prefixed(": ", driftText(d.Fields)), by).On(d.Ref, d.Ref)
}

// driftText is the first of the fields: "http[0].route[].weight: in force 75/15/10, wanted
// 75/60/10".
func driftText(fields []snapshot.DriftField) string {
	if len(fields) == 0 {
		return ""
	}
	f := fields[0]
	text := fmt.Sprintf("%s: in force %s, wanted %s", strings.TrimPrefix(f.Path, "spec."), orNothing(f.InForce), orNothing(f.Wanted))
	if more := len(fields) - 1; more > 0 {
		text += ", and " + snapshot.Count(more, "more field")
	}
	return text
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// stateOf is the state of an object: that of its stored status if a server
// writes them, else the one that follows.
func (x *Index) stateOf(ref snapshot.Ref) commonv1.ApprovalState {
	state := commonv1.ApprovalState("")
	if s := x.stored[ref]; s != nil {
		state = s.state
		if s.behind && state != commonv1.ApprovalStateFailed {
			state = commonv1.ApprovalStatePending
		}
	} else if s := x.statuses[ref]; s != nil && x.stored == nil {
		if f := factsOf(s.Value); f != nil {
			state = f.state
		}
	}
	switch {
	case slices.ContainsFunc(x.issues[ref], func(i snapshot.Issue) bool { return i.Code == snapshot.WriteFailed }):
		return commonv1.ApprovalStateFailed
	case state == "":
		return commonv1.ApprovalStatePending
	case state == commonv1.ApprovalStateInvalid && x.someAccept(ref):
		return StatePartial
	case state == commonv1.ApprovalStateAccepted && slices.ContainsFunc(x.drifts[ref], func(d snapshot.Drift) bool { return d.State != snapshot.DriftLeftover }):
		return StateDiffers
	}
	return state
}

// someAccept reports whether a target of a policy, or a member of a VirtualMesh, accepted it.
func (x *Index) someAccept(ref snapshot.Ref) bool {
	verdicts := []snapshot.Verdict{}
	switch {
	case x.virtualMeshes[ref] != nil:
		v := x.virtualMeshes[ref]
		return slices.ContainsFunc(v.Members, func(m *snapshot.MeshPlan) bool {
			return describing(x).member(v, m.Ref).State == commonv1.ApprovalStateAccepted
		})
	case x.policies[ref] != nil:
		verdicts = x.policies[ref].Verdicts
	case x.dependencies[ref] != nil:
		verdicts = x.dependencies[ref].Verdicts
	}
	for i := range verdicts {
		if state, _ := x.targetState(ref, &verdicts[i]); state == string(commonv1.ApprovalStateAccepted) {
			return true
		}
	}
	return false
}

// on returns a page that shows the differences below its first section.
func (f InForce) on(page Page) Page {
	var sections []Section
	if f.InProxies != nil {
		sections = append(sections, Section{Title: "In proxies", Text: f.InProxies.Text() + "."})
	}
	if len(f.Drifts) > 0 {
		sections = append(sections, driftSection(f.Drifts))
	}
	if s := f.Stored; s != nil {
		out := Section{Title: "Stored status", Text: "It differs from what follows now: " + s.Why + ".", Header: []string{"FIELD", "ON", "STORED", "WOULD BE"}}
		for i, d := range s.Differences {
			if i == maxDifferences {
				out.Rows = append(out.Rows, []string{snapshot.Count(len(s.Differences)-i, "more field"), "", "", ""})
				break
			}
			out.Rows = append(out.Rows, []string{d.Field, d.On, d.Stored, d.WouldBe})
		}
		sections = append(sections, out)
	}
	page.Sections = slices.Insert(page.Sections, 1, sections...)
	return page
}

// maxDifferences bounds the fields that a page shows.
const maxDifferences = 10

// driftSection shows what clusters have, beside what they should.
func driftSection(drifts []snapshot.Drift) Section {
	out := Section{
		Title: "Not in force as it should be", Header: []string{"CLUSTER", "OBJECT", "FIELD", "IN FORCE", "WANTED", "CHANGED BY"},
		Text: "Everything else on this page is what should be.",
	}
	for i := range drifts {
		d := &drifts[i]
		object := d.Ref.Kind.String() + " " + shortName(d.Ref)
		switch {
		case d.State == snapshot.DriftMissing:
			out.Rows = append(out.Rows, []string{d.Ref.Cluster, object, "", "not there", "there", ""})
		case len(d.Fields) == 0:
			out.Rows = append(out.Rows, []string{d.Ref.Cluster, object, "", string(d.State), "", d.By})
		}
		for _, f := range d.Fields {
			out.Rows = append(out.Rows, []string{d.Ref.Cluster, object, strings.TrimPrefix(f.Path, "spec."), orNothing(f.InForce), orNothing(f.Wanted), d.By})
		}
	}
	if more := len(out.Rows) - maxDifferences; more > 0 {
		out.Rows = append(out.Rows[:maxDifferences], []string{"", snapshot.Count(more, "more difference"), "", "", "", ""})
	}
	return out
}

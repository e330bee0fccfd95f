package explain

import (
	"maps"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Evidence is what proxies have counted lately. Answers show it beside what they say, and never follow from it. Nil stands for a source
// that has none by its nature, such as a folder: nothing is said of it then.
type Evidence struct {
	// Report has the numbers, by traffic.ByAll; nil if there is none, and Unknown says why.
	Report  *traffic.Report
	Unknown string
}

// The least that is judged.
const (
	// fewestRequests is the least count of requests in the window of which it is said that they fail, or that their shares are not as asked.
	fewestRequests = 100
	// mostFailures is the share of requests that may fail, in percent, before it is a warning.
	mostFailures = 5.0
	// fewestContradicting is the least count of requests that contradict an answer.
	fewestContradicting = 10
)

// sight is Evidence, indexed.
type sight struct {
	Evidence
	// edgesTo and edgesFrom are those that have numbers, by what is called and by who calls. served are Workloads with the requests that they
	// get, and called are Destinations and VirtualDestinations.
	edgesTo, edgesFrom map[snapshot.Ref][]*traffic.Row
	served, called     map[snapshot.Ref]*traffic.Row
	// denying are those of served whose proxies refused requests.
	denying []*traffic.Row
	// shifts are those of the Plan, by their TrafficPolicy, with what was seen of them.
	shifts map[snapshot.Ref][]SeenShift
}

// WithEvidence is an Index that has the same answers, and shows evidence beside them. The Index that it is given stays as it is.
func WithEvidence(x *Index, e *Evidence) *Index {
	if x == nil || e == nil {
		return x
	}
	out := *x
	out.kinds = map[snapshot.Kind]describedKind{}
	for _, k := range describedKinds(&out) {
		out.kinds[k.kind] = k
	}
	s := &sight{
		Evidence: *e, edgesTo: map[snapshot.Ref][]*traffic.Row{}, edgesFrom: map[snapshot.Ref][]*traffic.Row{},
		served: map[snapshot.Ref]*traffic.Row{}, called: map[snapshot.Ref]*traffic.Row{},
	}
	out.sight = s
	if s.Report == nil {
		return &out
	}
	for i := range s.Report.Rows {
		switch row := &s.Report.Rows[i]; {
		case row.From != nil:
			s.edgesTo[row.To.Ref] = append(s.edgesTo[row.To.Ref], row)
			s.edgesFrom[row.From.Ref] = append(s.edgesFrom[row.From.Ref], row)
		case row.To.Ref.Kind == snapshot.Workload:
			s.served[row.To.Ref] = row
			if row.Denied > 0 {
				s.denying = append(s.denying, row)
			}
		default:
			s.called[row.To.Ref] = row
		}
	}
	s.shifts = seenShifts(&out)
	out.issues = maps.Clone(x.issues)
	add := func(ref snapshot.Ref, issue *snapshot.Issue) {
		out.issues[ref] = append(slices.Clip(out.issues[ref]), *issue)
	}
	for _, f := range failingIssues(&out) {
		for _, ref := range append(f.by, f.Ref) {
			add(ref, &f.Issue)
		}
	}
	for _, issue := range shiftIssues(&out) {
		add(issue.Ref, &issue)
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			add(issue.Target, &issue)
		}
	}
	return &out
}

// window is the time that the numbers are of, in words, such as "last 15m".
func (s *sight) window() string {
	if s.Report == nil {
		return "last " + short(traffic.Kept)
	}
	return "last " + short(min(time.Duration(s.Report.Seconds*float64(time.Second)).Round(time.Minute), traffic.Kept))
}

// changedAt is since when a policy or a VirtualMesh is in force as it is, with the time until its effect is counted;
// zero if that is longer than the window.
func (s *sight) changedAt(ref snapshot.Ref) time.Time {
	for _, c := range s.Report.Changed {
		if c.On == ref {
			return c.Since.Add(traffic.Settles)
		}
	}
	return time.Time{}
}

// minutesOf is how many of the last minutes, which are whole, a policy is in force as it is; false if that is longer than the window.
func (s *sight) minutesOf(ref snapshot.Ref) (minutes int, changed bool) {
	at := s.changedAt(ref)
	return max(int(s.Report.At.Sub(at)/time.Minute), 0), !at.IsZero()
}

// failed are the requests of a row that were answered with 5xx, or not at all.
func failed(row *traffic.Row) uint64 {
	return row.Answers[snapshot.Answered5xx.String()] + row.Answers[snapshot.Unanswered.String()]
}

// edgeEnd is how an edge gets there, in parentheses; empty if that goes without saying.
func edgeEnd(row *traffic.Row) string {
	switch {
	case row.Subset != "":
		return " to " + row.Subset
	case row.Via == "gateway":
		return " through a gateway"
	}
	return ""
}

// shiftIssues are about shifts of which the shares are not as asked, and not by chance.
func shiftIssues(x *Index) (out []snapshot.Issue) {
	for _, policy := range sortedRefs(x.sight.shifts) {
		for i := range x.sight.shifts[policy] {
			s := &x.sight.shifts[policy][i]
			off := s.off()
			if off == nil {
				continue
			}
			issue := snapshot.Warnf(snapshot.ShiftOffWeights,
				"see what routes them: meshctl describe destination "+s.Destination.Name+"; what the proxies hold: meshctl why FROM TO --proxy",
				"of %s from mesh %s in the %s, %s went to %s, and %s is asked", counting(s.Requests, "request"), s.Mesh.Name, s.Window,
				shareText(off.Requests, s.Requests), off.name(), snapshot.Percent(off.Asked))
			out = append(out, issue.On(policy, s.Destination).At("policy.trafficShift"))
		}
	}
	return out
}

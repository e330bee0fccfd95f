package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// addSeen adds to an answer what callers really sent, whatever they asked for, and says so where that contradicts it. It changes no verdict.
func (w *Why) addSeen(x *Index) {
	s := x.sight
	if s == nil {
		return
	}
	if w.Seen = s.unseen(); w.Seen != nil {
		return
	}
	w.Seen = &Seen{Window: s.window(), State: traffic.NoTraffic}
	places := []snapshot.Ref{w.To}
	for i := range w.Outcomes {
		places = append(places, w.Outcomes[i].Destination)
	}
	if w.Route != nil {
		for _, t := range w.Route.Targets {
			places = append(places, t.Destination)
		}
	}
	var counted []*traffic.Row
	for _, edge := range s.edgesFrom[w.From] {
		if edge.To.Ref != (snapshot.Ref{}) && slices.Contains(places, edge.To.Ref) {
			w.Seen.add(edge)
			w.Seen.State = traffic.HasNumbers
			counted = append(counted, edge)
		}
	}
	n := countFailing(counted...)
	if severity, _ := n.severity(); severity == snapshot.Error {
		w.Seen.Failing = shareText(n.late.failed, n.late.all) + " of its requests there fail: " + n.lateText(s)
	}
	if known, why := s.sending(w.From); w.Seen.State == traffic.NoTraffic && !known {
		w.Seen.State, w.Seen.Why = traffic.NoData, why
	}
	if note := w.contradiction(); note != "" {
		w.Notes = append(w.Notes, note)
	}
}

// contradiction is a note where what was counted is not what the verdict says of all requests; empty if it may be.
func (w *Why) contradiction() string {
	n := &w.Seen.SeenCount
	good := n.Requests - min(n.Requests, n.Failed+n.Refused)
	switch {
	case n.Requests < fewestContradicting:
	case w.Verdict == Allowed && n.Refused == n.Requests:
		return "all of " + n.text() + " in the " + w.Seen.Window + ": something refuses them that is not modelled, such as the application, or the policy is not in force; ask with --proxy, and look at the log of the pods"
	case w.Verdict == Allowed && n.Failed == n.Requests:
		return "all of " + n.text() + " in the " + w.Seen.Window + ": they are let in, and fail; see: meshctl top edges"
	case w.Verdict == Refused && good == n.Requests:
		return "none of " + counting(n.Requests, "request") + " in the " + w.Seen.Window + " was refused: others than this one were sent, or the policy is not in force; ask with --proxy"
	case w.Verdict == Unreachable && good == n.Requests:
		return "all of " + counting(n.Requests, "request") + " in the " + w.Seen.Window + " were answered, although this answer says that none arrives; ask with --proxy"
	}
	return ""
}

// seenText is a line of evidence; empty if nobody counts.
func (w *Why) seenText() string {
	s := w.Seen
	switch {
	case s == nil:
		return ""
	case s.State == traffic.HasNumbers:
		return "in the " + s.Window + ": " + s.text()
	case s.State == traffic.NoTraffic:
		return "in the " + s.Window + ": no request"
	}
	return "no data: " + s.Why
}

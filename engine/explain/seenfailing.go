package explain

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

const (
	// fewestFailing is the least count of requests of the last minutes of which it is said that they fail.
	fewestFailing = 20
	// manyFailures is the share of requests that fail, in percent, from which on that is an error.
	manyFailures = 100.0 / 3
)

// failingCount are requests, and how many of them failed: in the window, and in its last minutes.
type failingCount struct {
	whole, late failedOf
	// minutes is how many the late ones are; 0 if they are those of the window, as it is not known when requests failed.
	minutes int
}

type failedOf struct{ failed, all uint64 }

// countFailing counts rows. The late minutes are the last three, or as many more as it takes for enough requests.
func countFailing(rows ...*traffic.Row) (n failingCount) {
	var all, bad []uint64
	known := true
	for _, row := range rows {
		n.whole.all += row.Requests
		n.whole.failed += failed(row)
		known = known && len(row.Trend) > 0 && (len(row.FailedTrend) > 0 || failed(row) == 0)
		all, bad = addTrend(all, row.Trend), addTrend(bad, row.FailedTrend)
	}
	if !known {
		n.late = n.whole
		return n
	}
	for back := 1; back <= len(all) && (back <= lateMinutes || n.late.all < fewestFailing); back++ {
		n.minutes = back
		n.late.all += all[len(all)-back]
		if back <= len(bad) {
			n.late.failed += bad[len(bad)-back]
		}
	}
	return n
}

// severity is how bad it is; false if there is nothing to say.
//
// It is an error if a third or more of the late requests failed, and not by chance: so many fail less than once in 15,787 times (four standard
// deviations) where no more fail than may. It is a warning if more requests of the window failed than may.
func (n *failingCount) severity() (severity snapshot.Severity, is bool) {
	switch late := n.late; {
	case late.all >= fewestFailing && percent(late.failed, late.all) >= manyFailures && chance(late.failed, late.all, mostFailures/100) < unlikely:
		return snapshot.Error, true
	case n.whole.all >= fewestRequests && percent(n.whole.failed, n.whole.all) > mostFailures:
		return snapshot.Warning, true
	}
	return snapshot.Info, false
}

// of are the requests that a severity is about.
func (n *failingCount) of(severity snapshot.Severity) failedOf {
	if severity == snapshot.Error {
		return n.late
	}
	return n.whole
}

// lateText is "46 of 60 in the last 3m".
func (n *failingCount) lateText(s *sight) string {
	window := s.window()
	if n.minutes > 0 {
		window = "last " + short(time.Duration(n.minutes)*time.Minute)
	}
	return grouped(n.late.failed) + " of " + grouped(n.late.all) + " in the " + window
}

// failing is an issue about a service of which more requests fail than may. By are the TrafficPolicies that send requests to where they fail.
type failing struct {
	snapshot.Issue
	by []snapshot.Ref
}

// failingIssues are about the requests of all callers of a service or, where these are well together, about those of one. Each names the edge
// of which the most fail.
func failingIssues(x *Index) (out []failing) {
	for _, ref := range sortedRefs(x.sight.called) {
		if !x.Has(ref) {
			continue
		}
		n, of := countFailing(x.sight.called[ref]), ""
		severity, is := n.severity()
		for from, edges := range x.sight.callersOf(ref) {
			one := countFailing(edges...)
			if s, fails := one.severity(); fails && (!is || s > severity) {
				n, of, severity, is = one, " of "+from, s, true
			}
		}
		if is {
			out = append(out, failingIssue(x, ref, severity, &n, of))
		}
	}
	return out
}

// callersOf yields the edges to a service by their caller, the one of which the most requests fail first.
func (s *sight) callersOf(ref snapshot.Ref) iter.Seq2[string, []*traffic.Row] {
	edges := slices.Clone(s.edgesTo[ref])
	slices.SortStableFunc(edges, func(a, b *traffic.Row) int { return a.From.Ref.Compare(b.From.Ref) })
	var callers [][]*traffic.Row
	for i, edge := range edges {
		if i == 0 || edge.From.Ref != edges[i-1].From.Ref {
			callers = append(callers, nil)
		}
		callers[len(callers)-1] = append(callers[len(callers)-1], edge)
	}
	slices.SortStableFunc(callers, func(a, b []*traffic.Row) int {
		return cmp.Compare(countFailing(b...).late.failed, countFailing(a...).late.failed)
	})
	return func(yield func(string, []*traffic.Row) bool) {
		for _, rows := range callers {
			if !yield(placed(rows[0].From), rows) {
				return
			}
		}
	}
}

// failingIssue says how many of the requests to a service fail, of all callers or of one.
func failingIssue(x *Index, ref snapshot.Ref, severity snapshot.Severity, n *failingCount, of string) failing {
	var worst *traffic.Row
	var most failedOf
	for _, edge := range x.sight.edgesTo[ref] {
		count := countFailing(edge)
		if c := count.of(severity); c.failed > most.failed {
			worst, most = edge, c
		}
	}
	out, from := failing{}, ""
	if worst != nil {
		switch caller := placed(worst.From) + edgeEnd(worst); {
		case most != n.of(severity):
			from = ", most of those of " + caller + ": " + grouped(most.failed) + " of " + grouped(most.all)
		case of == "":
			from = ", all of " + caller
		}
		for _, s := range shiftsTo(x, worst) {
			from += "; " + s.Policy.String() + " sends " + snapshot.Percent(s.asked) + " of the requests to " + x.source(s.on) + " there"
			if !slices.Contains(out.by, s.Policy) {
				out.by = append(out.by, s.Policy)
			}
		}
	}
	hint := "see which, and how: meshctl top edges --to " + x.source(ref) + "; why one goes where it does: meshctl why"
	if severity == snapshot.Error {
		out.Issue = snapshot.Errorf(snapshot.RequestsFail, hint, "%s of the requests%s to %s fail: %s%s",
			shareText(n.late.failed, n.late.all), of, x.source(ref), n.lateText(x.sight), from)
	} else {
		out.Issue = snapshot.Warnf(snapshot.RequestsFail, hint, "%s of %s%s failed in the %s (%s)%s",
			grouped(n.whole.failed), counting(n.whole.all, "request"), of, x.sight.window(), shareText(n.whole.failed, n.whole.all), from)
	}
	out.Ref = ref
	if worst != nil && worst.From.Ref != (snapshot.Ref{}) {
		out.Cause = worst.From.Ref
	}
	return out
}

// leadingShift is a shift that leads to the end of an edge, with the share that is asked for there.
type leadingShift struct {
	Policy, on snapshot.Ref
	asked      float64
}

// shiftsTo are the shifts that lead the caller of an edge to its end.
func shiftsTo(x *Index, edge *traffic.Row) (out []leadingShift) {
	caller := x.workloads[edge.From.Ref]
	if caller == nil {
		return nil
	}
	mesh := x.meshOf(caller)
	for _, shift := range Shifts(x) {
		if mesh == nil || shift.Mesh != mesh.Ref {
			continue
		}
		for _, t := range shift.Targets {
			if !t.Elsewhere && t.Asked > 0 && t.Destination == edge.To.Ref && t.Subset == edge.Subset {
				out = append(out, leadingShift{shift.Policy, shift.Destination, t.Asked})
			}
		}
	}
	return out
}

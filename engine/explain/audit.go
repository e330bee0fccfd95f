package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Audit is what would change for calls if all that is audited was enforced: AccessPolicies with enforcement AUDIT, and VirtualMeshes with
// globalAccessPolicy AUDIT. Of an object, it has the calls to services that the object is about.
type Audit struct {
	// Refused are calls that are answered now.
	Refused []AuditedCalls `json:"refused"`
	// Allowed are calls that are refused now.
	Allowed []AuditedCalls `json:"allowed,omitempty"`
	// Narrowed are services of which callers that are let in could ask for less.
	Narrowed []snapshot.Ref `json:"narrowed,omitempty"`
	// Seen are the requests that were counted lately; nil where nobody counts.
	Seen *AuditSeen `json:"seen,omitempty"`
}

// AuditSeen are requests that were answered lately, and would have been refused. The proxies of services try each request, where they can;
// of other services, what callers sent counts: requests of those that would not be let in at all. Of callers that could ask for less, it is
// not known then which requests those are.
type AuditSeen struct {
	Window string `json:"window"`
	// Refused are those requests, of all Requests to the services; AtMost: proxies that try both who is let in and who is denied, or that refuse
	// some requests now, may have counted some of them twice, or beside what is refused.
	Refused  uint64 `json:"refused"`
	AtMost   bool   `json:"atMost,omitempty"`
	Requests uint64 `json:"requests"`
	// Services is of how many services some requests would be refused, or may be. Tried is of how many of them the proxies tried the requests;
	// TriedRefused and TriedRequests are what of Refused and Requests they counted.
	Tried         int    `json:"tried"`
	Services      int    `json:"services"`
	TriedRefused  uint64 `json:"triedRefused,omitempty"`
	TriedRequests uint64 `json:"triedRequests,omitempty"`
	// Changed is since when all that is about access is in force, or is tried, as it is: what proxies tried before was something else. Zero if
	// that is longer than the window.
	Changed time.Time `json:"changed,omitzero"`
	// Calls are what callers sent that would not be let in at all, by caller and service, and Callers how many of them there are. All of it is
	// in Refused.
	Callers int        `json:"callers"`
	Calls   []SeenCall `json:"calls"`
	// Narrowed are the requests to services of which callers could ask for less, and whose proxies try nothing: some of them would have been
	// refused, too.
	Narrowed uint64 `json:"narrowed,omitempty"`
	// Uncounted is how many workloads would be refused of whose requests nothing is known. Unknown says why nothing is known at all; empty if
	// something is.
	Uncounted int    `json:"uncounted,omitempty"`
	Unknown   string `json:"unknown,omitempty"`
}

// AuditedCalls are calls of each of From to each of To, both ascending.
type AuditedCalls struct {
	From []snapshot.Ref `json:"from"`
	To   []snapshot.Ref `json:"to"`
}

// audit compares what is in force with what would be, on Destinations. It is nil if nothing is audited.
func audit(x *Index, on func(*snapshot.DestinationPlan) bool) *Audit {
	if x.audited == nil {
		return nil
	}
	e := &effects{before: x, after: x.audited, callers: x.Refs(snapshot.Workload)}
	out := &Audit{Refused: []AuditedCalls{}}
	var services []snapshot.Ref
	for _, ref := range sortedRefs(x.destinations) {
		was, is := x.destinations[ref], x.audited.destinations[ref]
		if is != nil && on(was) {
			services = append(services, ref)
			e.access(ref, was, is)
		}
	}
	for i := range e.list {
		if effect := &e.list[i]; effect.Kind == EffectLimit && effect.Harm {
			out.Narrowed = append(out.Narrowed, effect.On)
		}
	}
	for _, row := range (&Planned{Effects: e.list}).Calls() {
		calls := AuditedCalls{From: row.From, To: row.To}
		if row.Lost {
			out.Refused = append(out.Refused, calls)
		} else {
			out.Allowed = append(out.Allowed, calls)
		}
	}
	out.Seen = auditSeen(x, services, out.Narrowed, e.list)
	return out
}

// auditSeen counts the requests to services that effects would have ended; nil where nobody counts.
func auditSeen(x *Index, services, narrowed []snapshot.Ref, effects []Effect) *AuditSeen {
	if x.sight == nil {
		return nil
	}
	out := &AuditSeen{Window: x.sight.window(), Calls: []SeenCall{}}
	if x.sight.Report == nil {
		out.Unknown = x.sight.Unknown
		return out
	}
	tried := countTried(x, services, effects)
	out.Services = tried.changed
	for _, c := range x.sight.Report.Changed {
		if at := x.sight.changedAt(c.On); c.On.Kind != snapshot.TrafficPolicy && at.After(out.Changed) {
			out.Changed = at
		}
	}
	untried := func(ref snapshot.Ref) bool { return !tried.services[ref] }
	out.Tried, out.TriedRefused, out.TriedRequests, out.AtMost = len(tried.services), tried.refused, tried.requests, tried.most
	out.Refused, out.Requests = tried.refused, tried.requests+x.sight.requestsTo(services, untried)
	out.Narrowed = x.sight.requestsTo(narrowed, untried)
	lost := plannedSeen(x, effects)
	if lost == nil {
		return out
	}
	out.Callers, out.Calls, out.Uncounted = lost.Callers, lost.Sent, lost.Uncounted
	for i := range lost.Sent {
		if call := &lost.Sent[i]; untried(call.To) {
			out.Refused += call.Requests
		}
	}
	return out
}

// requestsTo are all requests that callers sent to some of the services.
func (s *sight) requestsTo(services []snapshot.Ref, some func(snapshot.Ref) bool) (n uint64) {
	for _, ref := range services {
		for _, edge := range s.edgesTo[ref] {
			if some(ref) {
				n += edge.Requests
			}
		}
	}
	return n
}

// Text is it as a sentence.
func (s *AuditSeen) Text() string {
	switch {
	case s.Unknown != "":
		return "Which requests it would have refused is not known: " + s.Unknown + "."
	case s.Refused == 0 && s.Uncounted > 0 && s.Tried == 0:
		return "In the " + s.Window + ", it would have refused no request that was counted; of " + snapshot.Count(s.Uncounted, "caller") + " nothing is known."
	}
	most := ""
	if s.AtMost {
		most = "at most "
	}
	text := fmt.Sprintf("In the %s, it would have refused %s%s of %s", s.Window, most, grouped(s.Refused), counting(s.Requests, "request"))
	switch {
	case s.Tried == 0 && s.Callers > 0:
		text += ", of " + snapshot.Count(s.Callers, "caller")
	case s.Tried > 0 && s.Tried == s.Services:
		text += ", as the proxies of the pods that were called count"
	case s.Tried > 0:
		text += fmt.Sprintf(": %s of %s as the proxies of the pods that were called count, which is known of %d of %s, and else as those of callers do",
			grouped(s.TriedRefused), grouped(s.TriedRequests), s.Tried, snapshot.Count(s.Services, "service"))
	}
	if s.TriedRequests > 0 && !s.Changed.IsZero() {
		text += "; what they tried before " + timeText(s.Changed) + " was not yet what is audited now"
	}
	if s.Tried > 0 && s.Callers > 0 {
		text += "; " + snapshot.Count(s.Callers, "caller") + " would not be let in at all"
	}
	if s.Narrowed > 0 {
		text += fmt.Sprintf("; and some of the %s to services of which callers could ask for less", counting(s.Narrowed, "request"))
	}
	if s.Uncounted > 0 && s.Tried < s.Services {
		text += "; of " + snapshot.Count(s.Uncounted, "other caller") + " nothing is known"
	}
	return text + "."
}

// policyAudit is what a policy that is audited would change on its Destinations; nil for others.
func policyAudit(x *Index, p *snapshot.PolicyPlan) *Audit {
	if !p.Audited {
		return nil
	}
	return audit(x, func(d *snapshot.DestinationPlan) bool {
		_, selected := slices.BinarySearchFunc(p.Verdicts, d.Ref, func(v snapshot.Verdict, ref snapshot.Ref) int { return v.Destination.Compare(ref) })
		return selected
	})
}

// destinationAudit is what would change for the callers of a Destination; nil if nothing would.
func destinationAudit(x *Index, d *snapshot.DestinationPlan) *Audit {
	out := audit(x, func(o *snapshot.DestinationPlan) bool { return o == d })
	if out != nil && len(out.Refused)+len(out.Allowed)+len(out.Narrowed) == 0 {
		return nil
	}
	return out
}

// meshAudit is what a VirtualMesh would change that audits access; nil for others.
func meshAudit(x *Index, v *snapshot.VirtualMeshPlan) *Audit {
	if !v.VirtualMesh.Spec.AuditsAccess() {
		return nil
	}
	return audit(x, func(d *snapshot.DestinationPlan) bool { return d.Mesh != nil && d.Mesh.VirtualMesh == v.VirtualMesh })
}

// sections show an audit.
func (a *Audit) sections() []Section {
	if a == nil {
		return nil
	}
	out := Section{Title: "Audit: if all that is audited was enforced", Header: []string{"CALLERS", "WOULD BE", "TO"}}
	row := func(word string, calls []AuditedCalls) {
		for i := range calls {
			out.Rows = append(out.Rows, []string{refNames(calls[i].From), word, refNames(calls[i].To)})
		}
	}
	row("refused", a.Refused)
	row("let in", a.Allowed)
	if len(a.Narrowed) > 0 {
		out.Rows = append(out.Rows, []string{"some", "refused some requests", refNames(a.Narrowed)})
	}
	if len(out.Rows) == 0 {
		out = Section{Title: out.Title, Text: "No known caller would be refused."}
	}
	return append([]Section{out}, a.Seen.sections()...)
}

// sections show the requests that would have been refused.
func (s *AuditSeen) sections() []Section {
	if s == nil {
		return nil
	}
	out := Section{Title: "Audit: seen", Text: s.Text()}
	if len(s.Calls) == 0 {
		return []Section{out}
	}
	calls := Section{Title: "Callers that would not be let in at all", Header: []string{"CALLER", "TO", "REQUESTS"}}
	for i := range s.Calls {
		calls.Rows = append(calls.Rows, []string{s.Calls[i].From.Name, s.Calls[i].To.Name, grouped(s.Calls[i].Requests)})
	}
	return []Section{out, calls}
}

// auditSentence says what an object that is audited would change for calls; empty for others.
func auditSentence(x *Index, ref snapshot.Ref) string {
	var audit *Audit
	if p := x.policies[ref]; p != nil {
		audit = policyAudit(x, p)
	} else if v := x.virtualMeshes[ref]; v != nil {
		audit = meshAudit(x, v)
	}
	if audit == nil {
		return ""
	}
	var parts []string
	add := func(word string, calls []AuditedCalls) {
		var texts []string
		for i := range calls {
			texts = append(texts, refNames(calls[i].From)+" to "+refNames(calls[i].To))
		}
		if len(texts) > 0 {
			parts = append(parts, word+" calls of "+firstOf(texts))
		}
	}
	add("refuse", audit.Refused)
	add("let in", audit.Allowed)
	if len(audit.Narrowed) > 0 {
		parts = append(parts, "refuse some requests to "+refNames(audit.Narrowed))
	}
	if len(parts) == 0 {
		parts = append(parts, "refuse no known caller")
	}
	text := fmt.Sprintf("%s %s is audited: nothing is refused. With all that is audited enforced, it would %s", ref.Kind, shortName(ref), strings.Join(parts, ", and "))
	if audit.Seen != nil {
		text += ". " + strings.TrimSuffix(audit.Seen.Text(), ".")
	}
	return text
}

// auditNote says what would become of requests if all that is audited was enforced; empty if the same.
func auditNote(x *Index, w *Why) string {
	if x.audited == nil {
		return ""
	}
	would := x.audited.Why(w.From, w.To, w.Request)
	if would == nil || would.Verdict == w.Verdict || would.Verdict != Refused && would.Verdict != Partly && w.Verdict != Refused && w.Verdict != Partly {
		return ""
	}
	return fmt.Sprintf("if all that is audited was enforced, this would be %s: %s", would.Verdict, would.Reason)
}

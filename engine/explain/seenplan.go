package explain

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// PlannedSeen is what the callers sent lately that a change closes services to.
type PlannedSeen struct {
	Window string `json:"window"`
	// Calls are pairs of a caller and a service that are lost. Sent are those of them with requests, and Requests how many there were.
	Calls    int        `json:"calls"`
	Sent     []SeenCall `json:"sent"`
	Requests uint64     `json:"requests"`
	// Callers is how many workloads are among Sent.
	Callers int `json:"callers"`
	// Uncounted is how many workloads lose calls of which nothing is known.
	Uncounted int `json:"uncounted,omitempty"`
	// Unknown says why nothing is known at all; empty if something is.
	Unknown string `json:"unknown,omitempty"`
}

// plannedSeen says what the calls were that effects end; nil if they end none, or if nobody counts.
func plannedSeen(before *Index, effects []Effect) *PlannedSeen {
	s := before.sight
	if s == nil {
		return nil
	}
	out := &PlannedSeen{Window: s.window(), Sent: []SeenCall{}}
	callers, uncounted := map[snapshot.Ref]bool{}, map[snapshot.Ref]bool{}
	for i := range effects {
		e := &effects[i]
		sent := map[snapshot.Ref]*SeenCall{}
		for _, edge := range s.edgesTo[e.On] {
			if sent[edge.From.Ref] == nil {
				sent[edge.From.Ref] = &SeenCall{From: edge.From.Ref, To: e.On, Via: edge.Via}
			}
			sent[edge.From.Ref].add(edge)
		}
		for _, from := range losing(before, e) {
			out.Calls++
			known, _ := s.sending(from)
			switch call := sent[from]; {
			case call != nil && call.Requests > 0:
				callers[from] = true
				out.Requests += call.Requests
				out.Sent = append(out.Sent, *call)
			case !known:
				uncounted[from] = true
			}
		}
	}
	if out.Calls == 0 {
		return nil
	}
	out.Callers, out.Uncounted = len(callers), len(uncounted)
	if s.Report == nil {
		out.Unknown, out.Uncounted = s.Unknown, 0
	}
	return out
}

// losing are the workloads that lose calls by an effect.
func losing(x *Index, e *Effect) (out []snapshot.Ref) {
	for _, from := range e.callers(true) {
		if from.Kind != snapshot.Mesh {
			out = append(out, from)
			continue
		}
		for _, ref := range sortedRefs(x.workloads) {
			if mesh := x.meshOf(x.workloads[ref]); mesh != nil && mesh.Ref == from {
				out = append(out, ref)
			}
		}
	}
	return out
}

// Text is it as a sentence without a period.
func (p *PlannedSeen) Text() string {
	if p.Unknown != "" {
		return "what the callers that this closes sent is not known: " + p.Unknown
	}
	text := fmt.Sprintf("of the callers that this closes, none sent a request in the %s", p.Window)
	if p.Callers > 0 {
		text = fmt.Sprintf("of the callers that this closes, %d sent %s in the %s", p.Callers, counting(p.Requests, "request"), p.Window)
	}
	if p.Uncounted > 0 {
		text += "; of " + snapshot.Count(p.Uncounted, "other workload") + " it is not known"
	}
	return text
}

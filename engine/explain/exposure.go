package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Exposure is what stands open, or has no use, without any outage.
type Exposure struct {
	// Unprotected are services that let everybody in, gateways left out; ascending.
	Unprotected []snapshot.Ref `json:"unprotected"`
	// Openings are where services that policies protect let in callers without an identity all the same; ascending by service.
	Openings []Opening `json:"openings"`
	// InNoMesh are services in namespaces of a mesh whose pods all are without it, so that no policy is for them; ascending. They are
	// Services of clusters.
	InNoMesh []snapshot.Ref `json:"inNoMesh"`
	// Closed are services that let nobody in; ascending.
	Closed []snapshot.Ref `json:"closed"`
	// NotLetIn are workloads of which no service that they reach lets requests in, gateways left out; ascending.
	NotLetIn []snapshot.Ref `json:"notLetIn"`
	// WithoutEffect are policies that are in force on nothing, ascending, with the reason.
	WithoutEffect []IdlePolicy `json:"withoutEffect"`
	// Notes are sentences on what was not looked at.
	Notes []string `json:"notes,omitempty"`
}

// IdlePolicy is a policy that is in force on nothing.
type IdlePolicy struct {
	Policy snapshot.Ref `json:"policy"`
	// Why is the first issue that says so, or that it selects nothing.
	Why string `json:"why"`
}

// mostJudged bounds how often it is asked whether a service lets a workload in: a large fleet that denies by default has more
// pairs than a person waits for.
const mostJudged = 2_000_000

// ExposureOf lists what nobody protects, who is let in nowhere, and what has no effect.
func ExposureOf(x *Index) *Exposure {
	out := &Exposure{Unprotected: []snapshot.Ref{}, Openings: []Opening{}, InNoMesh: []snapshot.Ref{}, Closed: []snapshot.Ref{}, NotLetIn: []snapshot.Ref{}, WithoutEffect: []IdlePolicy{}}
	var gates []*gate
	for _, ref := range sortedRefs(x.destinations) {
		d := x.destinations[ref]
		if d.Mesh == nil || d.Destination.Spec.KubeService == nil {
			continue
		}
		gates = append(gates, x.gateTo(d))
		if d.Open() == snapshot.OpenAsGateway || isPassage(x, ref) {
			continue
		}
		switch x.outside.accessMode(d) {
		case AccessOpen:
			out.Unprotected = append(out.Unprotected, ref)
		case AccessClosed:
			out.Closed = append(out.Closed, ref)
			fallthrough
		default:
			out.Openings = append(out.Openings, openingsOf(x, d)...)
		}
	}
	judged := 0
	for _, ref := range sortedRefs(x.workloads) {
		workload := x.workloads[ref]
		if x.meshOf(workload) == nil || isGateway(workload) || judged > mostJudged {
			continue
		}
		let := false
		for _, g := range gates {
			judged++
			if let, _ = g.admits(workload); let {
				break
			}
		}
		if !let && len(gates) > 0 {
			out.NotLetIn = append(out.NotLetIn, ref)
		}
	}
	if judged > mostJudged {
		out.Notes = append(out.Notes, "not all workloads were compared with all services: there are too many")
	}
	for _, ref := range sortedRefs(x.policies) {
		p := x.policies[ref]
		accepted := false
		for i := range p.Verdicts {
			accepted = accepted || p.Verdicts[i].Accepted
		}
		if !accepted {
			out.WithoutEffect = append(out.WithoutEffect, IdlePolicy{ref, idleWhy(x, p)})
		}
	}
	beside, elsewhere, namespaces := inNoMesh(x)
	out.InNoMesh = append(out.InNoMesh, beside...)
	if note := elsewhereNote(elsewhere, namespaces); note != "" {
		out.Notes = append(out.Notes, note)
	}
	if not := x.NotRead(); not != "" {
		out.Notes = append(out.Notes, "not read: "+not)
	}
	return out
}

// idleWhy is why a policy is in force on nothing.
func idleWhy(x *Index, p *snapshot.PolicyPlan) string {
	for _, issue := range x.issues.of(p.Ref) {
		if issue.Ref == p.Ref {
			return issue.Message
		}
	}
	if len(p.Verdicts) == 0 {
		return "it selects no service"
	}
	return "no service accepts it"
}

// Page is the Exposure as text.
func (e *Exposure) Page() Page {
	page := Page{Title: "What stands open, and what has no use"}
	lists := []struct {
		title, none, header string
		refs                []snapshot.Ref
	}{
		{"Services that nobody protects", "None.", "SERVICE", e.Unprotected},
		{"Services that let nobody in", "None.", "SERVICE", e.Closed},
		{"Callers that nobody lets in", "None.", "WORKLOAD", e.NotLetIn},
	}
	for _, l := range lists {
		s := refsSection(l.title, l.header, l.refs)
		if len(l.refs) == 0 {
			s = Section{Title: l.title, Text: l.none}
		}
		page.Sections = append(page.Sections, s)
	}
	openings := Section{Title: "Where others let in callers without an identity", Header: []string{"SERVICE", "PORTS", "PODS", "WHY"}}
	for i := range e.Openings {
		openings.Rows = append(openings.Rows, e.Openings[i].row())
		openings.Refs = append(openings.Refs, e.Openings[i].Service)
	}
	if len(openings.Rows) == 0 {
		openings = Section{Title: openings.Title, Text: "Nowhere."}
	}
	outside := Section{Title: "Services in no mesh, beside those of one", Header: []string{"SERVICE"}}
	for _, ref := range e.InNoMesh {
		outside.Rows = append(outside.Rows, []string{ref.Name + "." + ref.Namespace + "." + ref.Cluster})
		outside.Refs = append(outside.Refs, ref)
	}
	if len(outside.Rows) == 0 {
		outside = Section{Title: outside.Title, Text: "None."}
	}
	page.Sections = slices.Insert(page.Sections, 1, openings, outside)
	policies := Section{Title: "Policies without effect", Header: []string{"POLICY", "WHY"}}
	for _, p := range e.WithoutEffect {
		policies.Rows = append(policies.Rows, []string{kindAndName(p.Policy), p.Why})
		policies.Refs = append(policies.Refs, p.Policy)
	}
	if len(policies.Rows) == 0 {
		policies = Section{Title: policies.Title, Text: "None."}
	}
	page.Sections = append(page.Sections, policies)
	if len(e.Notes) > 0 {
		notes := Section{Title: "Notes", Header: []string{"NOTE"}}
		for _, note := range e.Notes {
			notes.Rows = append(notes.Rows, []string{note})
		}
		page.Sections = append(page.Sections, notes)
	}
	return page
}

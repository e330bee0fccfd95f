package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Refusal is an object that the API server would not take, and so has no effect.
type Refusal struct {
	Ref snapshot.Ref `json:"ref"`
	// Reason is what the API server says.
	Reason string `json:"reason"`
}

// Refuse notes what the API server would not take.
func (p *Planned) Refuse(list []Refusal) {
	p.Refused = list
	p.Verdict = p.verdict()
}

// SetUnasked notes why the API server was not asked what the objects would be: the files are taken to replace them.
func (p *Planned) SetUnasked(why string) {
	p.Unasked = why
	p.Verdict = p.verdict()
}

// CallRow is calls that change in the same way: each of From to each of To.
type CallRow struct {
	// Lost: they were answered before, and are not any more; else they are from now on.
	Lost bool
	// From are workloads, or meshes whose workloads all lose or get a name for the services; To are services. Both ascending.
	From, To []snapshot.Ref
}

// Calls are the calls that are lost and gained, lost ones first. Callers with the same services are one row.
func (p *Planned) Calls() []CallRow {
	var rows []CallRow
	for _, lost := range []bool{true, false} {
		to := map[snapshot.Ref][]snapshot.Ref{}
		for i := range p.Effects {
			for _, from := range p.Effects[i].callers(lost) {
				to[from] = append(to[from], p.Effects[i].On)
			}
		}
		rowOf := map[string]int{}
		for _, from := range sortedRefs(to) {
			services := slices.Compact(slices.SortedFunc(slices.Values(to[from]), snapshot.Ref.Compare))
			key := fmt.Sprint(services)
			if at, known := rowOf[key]; known {
				rows[at].From = append(rows[at].From, from)
				continue
			}
			rowOf[key] = len(rows)
			rows = append(rows, CallRow{Lost: lost, From: []snapshot.Ref{from}, To: services})
		}
	}
	return rows
}

// callers are those that lose calls to what the effect is on, or that gain them.
func (e *Effect) callers(lost bool) []snapshot.Ref {
	switch {
	case e.Kind == EffectAccess && e.Harm == lost:
		return e.Workloads
	case e.Kind == EffectReach && e.Harm == lost:
		return e.From
	}
	return nil
}

// verdict is the plan in a line: how much changes, and the worst that it does.
func (p *Planned) verdict() string {
	var parts []string
	if p.Unasked != "" {
		parts = append(parts, "without a dry run, as if the files replaced the objects ("+p.Unasked+")")
	}
	if n := len(p.Refused); n > 0 {
		parts = append(parts, fmt.Sprintf("the API server would refuse %d of %s", n, snapshot.Count(n+len(p.Changes), "object")))
	}
	if p.Empty() {
		if len(p.Refused) == 0 {
			parts = append(parts, "nothing would change")
		}
		return strings.Join(parts, "; ")
	}
	parts = append(parts, p.totals())
	harm := p.losses()
	opens := 0
	for i := range p.Effects {
		if p.Effects[i].Opens {
			opens++
		}
	}
	if opens > 0 {
		harm = append(harm, "callers are let in whom no policy names")
	}
	if n := errorsIn(p.NewIssues); n > 0 {
		harm = append(harm, snapshot.Count(n, "new error"))
	}
	if len(harm) == 0 {
		harm = append(harm, p.calm())
	}
	return strings.Join(append(parts, harm...), "; ")
}

func errorsIn(issues []snapshot.Issue) (errors int) {
	for i := range issues {
		if issues[i].Severity == snapshot.Error {
			errors++
		}
	}
	return errors
}

// totals says how much changes: "1 policy changes, 6 objects in 2 clusters".
func (p *Planned) totals() string {
	kinds := map[snapshot.Kind]bool{}
	changed := 0
	for _, c := range p.Changes {
		if c.Verb != Unchanged {
			changed++
			kinds[c.Ref.Kind] = true
		}
	}
	noun := "object"
	switch policies := kinds[snapshot.TrafficPolicy] || kinds[snapshot.AccessPolicy]; {
	case policies && len(kinds) == 1, policies && len(kinds) == 2 && kinds[snapshot.TrafficPolicy] && kinds[snapshot.AccessPolicy]:
		noun = "policy"
	case len(kinds) == 1:
		for kind := range kinds {
			noun = kind.String()
		}
	}
	objects, clusters, own := 0, 0, 0
	for i := range p.Clusters {
		if n := len(p.Clusters[i].Objects); p.Clusters[i].Cluster == "" {
			own = n
		} else {
			objects, clusters = objects+n, clusters+1
		}
	}
	text := fmt.Sprintf("%s %s, %s", snapshot.Count(changed, noun), verb(changed, "changes", "change"), snapshot.Count(objects, "object"))
	if clusters > 0 {
		text += " in " + snapshot.Count(clusters, "cluster")
	}
	if own > 0 {
		text += fmt.Sprintf(" and %d of the management plane", own)
	}
	return text
}

// losses are the calls that are lost, in a clause, and that other requests fail.
func (p *Planned) losses() (out []string) {
	from, to := map[snapshot.Ref]bool{}, map[snapshot.Ref]bool{}
	for _, row := range p.Calls() {
		if row.Lost {
			for _, ref := range row.From {
				from[ref] = true
			}
			for _, ref := range row.To {
				to[ref] = true
			}
		}
	}
	if len(from) > 0 {
		who := snapshot.Count(len(from), "caller")
		if refs := sortedRefs(from); len(refs) == 1 {
			who = refs[0].Name
			if refs[0].Kind == snapshot.Mesh {
				who = "mesh " + who
			}
		}
		what := snapshot.Count(len(to), "service")
		if refs := sortedRefs(to); len(refs) == 1 {
			what = refs[0].Name
		}
		out = append(out, who+" may no longer call "+what)
	}
	others := map[snapshot.Ref]bool{}
	for i := range p.Effects {
		if e := &p.Effects[i]; e.Harm && len(e.callers(true)) == 0 {
			others[e.On] = true
		}
	}
	if refs := sortedRefs(others); len(refs) > 0 {
		out = append(out, "requests may fail that did not: see "+refNames(refs))
	}
	return out
}

// calm says what a plan without harm does.
func (p *Planned) calm() string {
	switch {
	case len(p.Effects) == 0:
		return "traffic stays as it is"
	case slices.ContainsFunc(p.Calls(), func(r CallRow) bool { return !r.Lost }):
		return "no caller loses a service, and some gain one"
	}
	return "no caller loses a service"
}

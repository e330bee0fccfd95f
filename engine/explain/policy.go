package explain

import (
	"slices"
	"strconv"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Policy describes a TrafficPolicy or an AccessPolicy.
type Policy struct {
	Ref snapshot.Ref `json:"ref"`
	// Action is DENY for an AccessPolicy that denies; else empty.
	Action string `json:"action,omitempty"`
	// Enforcement is AUDIT for a policy that refuses nothing, and of which Audit says what it would refuse; else empty.
	Enforcement string `json:"enforcement,omitempty"`
	Audit       *Audit `json:"audit,omitempty"`
	// State is that of its status.
	State commonv1.ApprovalState `json:"state"`
	InForce
	// Created orders policies: of two that set the same field, the older wins.
	Created time.Time `json:"created,omitzero"`
	// Targets are the Destinations that it selects, those that refuse it first.
	Targets []PolicyTarget `json:"targets"`
	// AnySource: it has no source selector, so it applies to all callers.
	AnySource bool `json:"anySource,omitempty"`
	// Sources are the first of the workloads that it selects as callers, and
	// SourceCount says how many there are.
	Sources     []snapshot.Ref `json:"sources,omitempty"`
	SourceCount int            `json:"sourceCount"`
	// AllSources: these are all workloads that there are.
	AllSources bool `json:"allSources,omitempty"`
	// Seen is what proxies have counted lately of what it asks for; nil where nobody counts by nature, as for a folder.
	Seen   *Seen            `json:"seen,omitempty"`
	Issues []snapshot.Issue `json:"issues"`
}

// PolicyTarget is one Destination of a policy.
type PolicyTarget struct {
	Destination snapshot.Ref `json:"destination"`
	Cluster     string       `json:"cluster"`
	// State is ACCEPTED or INVALID.
	State string `json:"state"`
	// WouldBe is the state that follows now, if the stored status says otherwise.
	WouldBe string `json:"wouldBe,omitempty"`
	// Order is the place in the order of precedence, from 0; accepted
	// TrafficPolicies have one.
	Order *uint32 `json:"order,omitempty"`
	// LastGood: the present spec is invalid here, and the last accepted one is in force.
	LastGood bool `json:"lastGood,omitempty"`
	// Reduced: it is in force without targets that cannot be reached.
	Reduced bool `json:"reduced,omitempty"`
	// Sets are the fields, below spec, that take effect there, and Values what the policy does
	// there in words.
	Sets   []string `json:"sets,omitempty"`
	Values []string `json:"values,omitempty"`
	// Lost are the fields that an older policy sets there.
	Lost   []string         `json:"lost,omitempty"`
	Issues []snapshot.Issue `json:"issues,omitempty"`
}

func (x describer) policy(p *snapshot.PolicyPlan) *Policy {
	out := &Policy{
		Ref: p.Ref, Action: actionOf(p), Enforcement: enforcementOf(p), Audit: policyAudit(x.Index, p), State: x.stateOf(p.Ref), InForce: x.inForceOf(p.Ref), Targets: []PolicyTarget{}, AnySource: anySource(p),
		Sources: p.Workloads, SourceCount: p.WorkloadCount, AllSources: p.WorkloadCount > 1 && p.WorkloadCount == len(x.workloads), Issues: x.issues.of(p.Ref),
	}
	if p.Policy != nil {
		out.Created = p.Policy.GetCreationTimestamp().UTC()
	}
	for _, v := range p.Verdicts {
		out.Targets = append(out.Targets, x.policyTarget(p.Ref, v))
	}
	slices.SortStableFunc(out.Targets, func(a, b PolicyTarget) int { return int(worstLevel(b.Issues)) - int(worstLevel(a.Issues)) })
	out.Seen = seenPolicy(x.Index, p)
	return out
}

func (x describer) policyTarget(ref snapshot.Ref, v snapshot.Verdict) PolicyTarget {
	t := PolicyTarget{Destination: v.Destination, Cluster: x.clusterOf(v.Destination), Issues: v.Issues, Lost: lostFields(v.Issues)}
	if t.State, t.WouldBe = x.targetState(ref, &v); t.WouldBe != "" {
		t.Issues = x.issues.about(ref, v.Destination)
		return t
	}
	if v.Accepted && ref.Kind == snapshot.TrafficPolicy {
		order := v.Order
		t.Order = &order
	}
	d := x.destinations[v.Destination]
	if p := x.policies[ref]; p != nil && p.Audited {
		d = x.audited.destinations[v.Destination]
	}
	switch {
	case d == nil:
		return t
	case ref.Kind != snapshot.TrafficPolicy:
		t.Values = rulesOf(ref, d)
		t.LastGood = slices.ContainsFunc(d.AccessInForce(), func(r *snapshot.AccessRule) bool { return r.Origin.Ref == ref && r.LastGood })
		return t
	}
	t.Sets, t.Values = fieldsWon(d, x.unwritten.viewsOf(d))[ref], x.valuesWon(d)[ref]
	for _, applied := range d.Traffic {
		if snapshot.RefOf(snapshot.TrafficPolicy, applied.Policy) == ref {
			t.LastGood, t.Reduced = applied.LastGood, applied.Missing && snapshot.HasErrors(v.Issues)
		}
	}
	return t
}

// targetState is the state of a policy on a Destination: that of the stored
// status if a server writes them, else the one that follows. If the two differ,
// wouldBe is the latter.
func (x *Index) targetState(policy snapshot.Ref, v *snapshot.Verdict) (state, wouldBe string) {
	state = "INVALID"
	if v.Accepted {
		state = "ACCEPTED"
	}
	if s := x.stored[policy]; s != nil && !s.behind {
		if was, known := s.targets[v.Destination.Key()]; known && string(was.State) != state {
			return string(was.State), state
		}
	}
	return state, ""
}

// stateText is for tables.
func stateText(state, wouldBe string, lastGood, reduced bool) string {
	if wouldBe != "" {
		state += " (would be " + wouldBe + ")"
	}
	switch {
	case lastGood && reduced:
		state += " (last accepted spec in force, without missing targets)"
	case lastGood:
		state += " (last accepted spec in force)"
	case reduced:
		state += " (in force without missing targets)"
	}
	return state
}

// enforcementText is for people; empty for what is in force.
func enforcementText(enforcement string) string {
	if enforcement == "" {
		return ""
	}
	return enforcement + ": it refuses and allows nothing"
}

// lostFields are the fields that older policies set.
func lostFields(issues []snapshot.Issue) []string {
	var lost []string
	for _, issue := range issues {
		if issue.Code == snapshot.FieldConflict && issue.Field != "" && !slices.Contains(lost, issue.Field) {
			lost = append(lost, issue.Field)
		}
	}
	slices.Sort(lost)
	return lost
}

// Page implements Description.
func (p *Policy) Page() Page {
	ordered := p.Ref.Kind == snapshot.TrafficPolicy
	targets := Section{Title: "Targets", Header: []string{"DESTINATION", "CLUSTER", "STATE", "WHY NOT"}}
	if ordered {
		targets.Header = []string{"DESTINATION", "CLUSTER", "STATE", "ORDER", "SETS", "WHY NOT"}
	}
	answer := [][2]string{{"Action", p.Action}, {"Enforcement", enforcementText(p.Enforcement)}, {"State", string(p.State)}}
	for i, does := range p.does() {
		name := "Does"
		if p.Enforcement != "" {
			name = "Would do"
		}
		if i > 0 {
			name = " "
		}
		answer = append(answer, [2]string{name, does})
	}
	for i := range p.Targets {
		targets.Rows = append(targets.Rows, p.Targets[i].row(ordered))
		targets.Refs = append(targets.Refs, p.Targets[i].Destination)
	}
	if len(p.Targets) == 0 {
		targets = Section{Title: "Targets", Text: "None: no destination is selected, and it has no effect."}
	}
	return p.InForce.on(p.Seen.on(Page{
		Title: p.Ref.Kind.String() + " " + shortName(p.Ref),
		Sections: slices.Concat([]Section{
			facts("", append(answer, [2]string{"Created", timeText(p.Created)})...),
			targets, p.sourcesSection(),
		}, p.Audit.sections()),
		Issues: p.Issues,
	}, func() []Section {
		if ordered {
			return p.Seen.shiftSections()
		}
		return []Section{p.Seen.callSection("", true, len(p.Targets) > 1, true)}
	}))
}

func (p *Policy) sourcesSection() Section {
	s := Section{Title: "Callers that it selects"}
	switch {
	case p.AnySource:
		s.Text = "Any workload that can call the targets."
		return s
	case p.AllSources:
		s.Text = "All " + snapshot.Count(p.SourceCount, "workload") + "."
		return s
	case p.SourceCount == 0:
		s.Text = "None of the workloads that were discovered."
		return s
	}
	if more := p.SourceCount - len(p.Sources); more > 0 {
		s.Text = "The first " + strconv.Itoa(len(p.Sources)) + " of " + strconv.Itoa(p.SourceCount) + "."
	}
	s.Header = []string{"WORKLOAD"}
	for _, ref := range p.Sources {
		s.Rows = append(s.Rows, []string{ref.Name})
		s.Refs = append(s.Refs, ref)
	}
	return s
}

// row is a row of the targets; ordered ones have an order and fields that they set.
func (t *PolicyTarget) row(ordered bool) []string {
	order, state, why := "", stateText(t.State, t.WouldBe, t.LastGood, t.Reduced), ""
	if t.Order != nil {
		order = numbers([]uint32{*t.Order})
	}
	for _, issue := range t.Issues {
		if code := string(issue.Code); issue.Severity > snapshot.Info && !strings.Contains(why+", ", code+", ") {
			why += code + ", " // the issues of the page have the sentences
		}
	}
	why = strings.TrimSuffix(why, ", ")
	if !ordered {
		return []string{t.Destination.Name, t.Cluster, state, why}
	}
	return []string{t.Destination.Name, t.Cluster, state, order, strings.Join(t.Sets, ", "), why}
}

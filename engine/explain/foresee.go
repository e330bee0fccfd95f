package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Caution is a sentence for who makes an edit, without a period.
type Caution struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// CautionRunes is how long a Caution is where nothing but advice is left out: what kubectl shows of one (kubernetes.io: Dynamic
// Admission Control).
const CautionRunes = 120

// Foresee says what an edit breaks, opens and gets wrong: calls that are refused from then on, services that open, and new
// issues, worst first. What it does otherwise is for Plan. It compares only the services that the edit concerns, at most
// maxCompared of them. Translate is that of the Translator that made the State; now is when a new object is created, which
// decides its precedence. The edited object is changed as by Plan.
func Foresee(before *snapshot.State, translate func(*snapshot.Input) *snapshot.State, edit Edit, now time.Time) ([]Caution, error) {
	verb, input, err := edit.apply(before.Input, now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", edit.Ref, err)
	}
	if verb == Unchanged {
		return nil, nil
	}
	after := translate(input)
	f := foreseeing{edited: edit.Ref}
	f.effects(before, after)
	f.issues(without(after.Output.Issues, before.Output.Issues))
	slices.SortStableFunc(f.list, func(a, b Caution) int { return cmp.Compare(b.Level, a.Level) })
	return f.list, nil
}

// foreseeing collects cautions.
type foreseeing struct {
	edited snapshot.Ref
	list   []Caution
}

func (f *foreseeing) add(level Level, text string) {
	w := Caution{Level: level, Text: snapshot.Clean(text)}
	if !slices.Contains(f.list, w) {
		f.list = append(f.list, w)
	}
}

func (f *foreseeing) effects(before, after *snapshot.State) {
	changed := changedDestinations(before.Plan, after.Plan)
	if len(changed) == 0 && sameElsewhere(before.Plan, after.Plan) {
		return
	}
	compared := changed[:min(len(changed), maxCompared)]
	was, is := New(narrowed(before, compared)), New(narrowed(after, compared))
	for _, e := range Effects(was, is) {
		if e.Harm || e.Opens {
			f.add(e.Level(), e.warning(was, is))
		}
	}
	if len(changed) > len(compared) {
		f.add(Info, fmt.Sprintf("of %s that this may change, %d were looked at: meshctl plan looks at all", snapshot.Count(len(changed), "service"), len(compared)))
	}
}

// warning is an effect as who makes it would say it: "details-v1 in cluster-1 may no longer call ratings".
func (e *Effect) warning(before, after *Index) string {
	x := after
	if x.destinations[e.On] == nil && before.destinations[e.On] != nil {
		x = before
	}
	if e.Kind != EffectAccess || len(e.Workloads) == 0 {
		called, _, _ := strings.Cut(calledAs(x, e.On), ".")
		text := e.clause()
		if cluster := clusterOfEffect(x, e.On); called != "" && cluster != "" {
			return called + " in " + cluster + ": " + text
		}
		return cmp.Or(called, e.On.Name) + ": " + text
	}
	first := e.Workloads[0]
	place := x.clusterOfWorkload(first)
	who, _, _ := strings.Cut(cmp.Or(calledAs(x, first), first.Name), ".")
	to, _, _ := strings.Cut(cmp.Or(calledAs(x, e.On), e.On.Name), ".")
	if at := clusterOfEffect(x, e.On); at != "" && at != place {
		to += " in " + at
	}
	if place != "" {
		who += " in " + place
	}
	if more := len(e.Workloads) - 1; more > 0 {
		who += " and " + snapshot.Count(more, "other workload")
	}
	return who + " may no longer call " + to
}

// issues adds those that are new: on the edited object first, and each sentence once.
func (f *foreseeing) issues(list []snapshot.Issue) {
	rank := func(i snapshot.Issue) int {
		if i.Ref == f.edited {
			return 0
		}
		return 1
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b snapshot.Issue) int { return cmp.Compare(rank(a), rank(b)) })
	for _, issue := range list {
		level := Info
		switch issue.Severity {
		case snapshot.Info:
			continue
		case snapshot.Warning:
			level = Warning
		case snapshot.Error:
			level = Error
		}
		text := issue.Message
		if issue.Ref != f.edited && issue.Ref != (snapshot.Ref{}) {
			text = strings.TrimSpace(issue.Ref.String()) + ": " + text
		}
		f.add(level, advised(text, issue.Hint))
	}
}

// advised is a text with as much advice as there is room for: all of it, or its first sentence.
func advised(text, advice string) string {
	first := advice
	for _, end := range []string{"? ", ". ", "; "} {
		if at := strings.Index(first, end); at >= 0 {
			first = first[:at+1]
		}
	}
	for _, part := range []string{advice, strings.TrimRight(first, ".;")} {
		if with := text + "; " + part; part != "" && utf8.RuneCountInString(with) <= CautionRunes {
			return with
		}
	}
	return text
}

package tui

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// lowestLead is the least height of a page that has room for what leads the first one.
const lowestLead = 14

// lead is what stands above the list of the first page: what is wrong, worst first, each with the next step, or that all is
// well. It takes a third of the page at most; other pages and low ones have none.
func (p *listPage) lead(s *shared, width, height int) []string {
	g := s.tables[pageProblems]
	if p.id != pageFleet || height < lowestLead || g == nil || s.tally == nil || s.latest.Index == nil {
		return nil
	}
	now := time.Unix(s.now, 0)
	room := height/3 - 1 // the last line is empty
	var lines []string
	shown, wrong := 0, s.tally.Wrong()
	for i := range g.rows {
		row := &g.rows[i]
		problem, ok := row.Item.(*explain.Problem)
		if !ok || row.Level < explain.Warning || len(lines)+2 > room {
			break // worst first
		}
		if s.cluster != "" && len(row.Clusters) > 0 && row.Clusters[0] != s.cluster {
			continue
		}
		lines, shown = append(lines, leadLines(s.theme, problem, width, now)...), shown+1
	}
	switch {
	case wrong == 0:
		lines = wellLines(s, width, now)
	case shown == 0:
		return nil
	case shown < wrong:
		lines = append(lines, s.theme.faint.Render(fit(fmt.Sprintf("    %d more on page %d", wrong-shown, pageProblems+1), width)))
	}
	return append(lines, "")
}

// leadLines are a problem and its next step, each on a line.
func leadLines(t *Theme, p *explain.Problem, width int, now time.Time) []string {
	level := explain.LevelOf(p.Severity)
	text := snapshot.Clean(p.Message)
	if object := p.Object(); object != "" {
		text = snapshot.Clean(object) + ": " + text
	}
	age := ""
	if !p.Since.IsZero() {
		age = "  since " + duration.HumanDuration(max(now.Sub(p.Since), 0))
	}
	lines := []string{t.levels[level].Render(fit(fit(" "+sign(level)+"  "+text, min(width-textWidth(age), noteIndent+textWidth(text)))+age, width))}
	if p.Hint != "" {
		lines = append(lines, fit("  → "+snapshot.Clean(p.Hint), width))
	}
	return lines
}

// wellLines say that nothing is wrong, as far as is known, and what changed last.
func wellLines(s *shared, width int, now time.Time) []string {
	policies, inForce, clusters := 0, 0, 0
	if g := s.tables[pagePolicies]; g != nil {
		policies = len(g.rows)
		for i := range g.rows {
			if item, ok := g.rows[i].Item.(*explain.PolicyItem); ok && item.State == commonv1.ApprovalStateAccepted {
				inForce++
			}
		}
	}
	if g := s.tables[pageFleet]; g != nil {
		clusters = len(g.clusters())
	}
	there := fmt.Sprintf("%s in force in %s", snapshot.Count(policies, "policy"), snapshot.Count(clusters, "cluster"))
	if inForce < policies {
		there = fmt.Sprintf("%d of ", inForce) + there
	}
	text := "all is well: " + there
	switch not := s.latest.Index.NotRead(); {
	case not != "":
		text = "no error and no warning, as far as was read: " + there + "; not read: " + not
	case inForce < policies:
		text = "no error and no warning: " + there
	}
	lines := []string{fit("    "+snapshot.Clean(text), width)}
	if g := s.tables[pageChanges]; g != nil && len(g.rows) > 0 {
		if c, ok := g.rows[0].Item.(*snapshot.Change); ok {
			age := duration.HumanDuration(max(now.Sub(c.Time), 0))
			lines = append(lines, fit("    last change "+age+" ago: "+snapshot.Clean(c.Text()), width))
		}
	}
	return lines
}

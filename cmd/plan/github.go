package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// formatGitHub is for a step of a GitHub workflow.
const formatGitHub cmdutil.Format = "github"

// paintGitHub is a plan as workflow commands, which GitHub shows beside the lines of the files (docs.github.com: workflow commands
// for GitHub Actions): refusals and new issues, what does harm, and the verdict.
func paintGitHub(p *explain.Planned, manifests []offline.Manifest) string {
	var b strings.Builder
	at := places(manifests)
	for _, r := range p.Refused {
		command(&b, "error", at.of(r.Ref, ""), "refused by the API server", fmt.Sprintf("%s: %s", r.Ref, r.Reason))
	}
	for _, group := range alike(p.NewIssues) {
		issue := group[0]
		text := issue.Summary()
		if more := len(group) - 1; more > 0 {
			text += fmt.Sprintf("; the same on %d more", more)
		}
		if issue.Hint != "" {
			text += "\n→ " + issue.Hint
		}
		level := map[snapshot.Severity]string{snapshot.Error: "error", snapshot.Warning: "warning", snapshot.Info: "notice"}[issue.Severity]
		command(&b, level, at.ofIssue(&issue), string(issue.Code), text)
	}
	only := at.only(p)
	for i := range p.Effects {
		switch e := &p.Effects[i]; {
		case e.Harm:
			command(&b, "warning", only, "requests fail that did not before", e.Text())
		case e.Opens:
			command(&b, "warning", only, "callers are let in whom no policy names", e.Text())
		}
	}
	if p.Seen != nil && p.Seen.Requests > 0 {
		command(&b, "warning", only, "requests are sent that will fail", sentence(p.Seen.Text()))
	}
	command(&b, "notice", "", "meshctl plan", p.Verdict)
	return b.String()
}

// alike groups issues that differ in what they are on only: GitHub shows ten annotations of a step, and drops the others.
func alike(issues []snapshot.Issue) (groups [][]snapshot.Issue) {
	at := map[snapshot.Issue]int{}
	for _, issue := range issues {
		key := issue
		key.Target = snapshot.Ref{}
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], issue)
	}
	return groups
}

// command writes a workflow command. Where is its file and line, as properties; empty for none.
func command(b *strings.Builder, name, where, title, text string) {
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := "title=" + propertyEscaper.Replace(cmdutil.Clean(title))
	if where != "" {
		property = where + "," + property
	}
	fmt.Fprintf(b, "::%s %s::%s\n", name, property, escape.Replace(cmdutil.CleanLines(text)))
}

// propertyEscaper escapes the values of properties of workflow commands.
var propertyEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")

// places finds the lines of objects.
type places []offline.Manifest

// of is where a field of an object is, as properties; empty if the object is in no file.
func (p places) of(ref snapshot.Ref, field string) string {
	i := slices.IndexFunc(p, func(m offline.Manifest) bool { return m.Ref == ref })
	if i < 0 {
		return ""
	}
	file, line := p[i].At(field)
	if file == standardInput {
		return ""
	}
	return fmt.Sprintf("file=%s,line=%d", propertyEscaper.Replace(cmdutil.Clean(file)), line)
}

// ofIssue is where the field is that an issue is about, or else the object that causes it.
func (p places) ofIssue(issue *snapshot.Issue) string {
	field := ""
	if issue.Field != "" {
		field = "spec." + issue.Field
	}
	if where := p.of(issue.Ref, field); where != "" {
		return where
	}
	return p.of(issue.Cause, "")
}

// only is where the one object is that changes; empty if several do.
func (p places) only(planned *explain.Planned) string {
	where := ""
	for _, c := range planned.Changes {
		if c.Verb == explain.Unchanged {
			continue
		}
		if where != "" {
			return ""
		}
		where = p.of(c.Ref, "")
	}
	return where
}

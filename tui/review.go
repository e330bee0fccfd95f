package tui

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reviewPage asks whether to make a change: it shows the change, and what it would do.
type reviewPage struct {
	readerPage
	draft *Draft
	// review is nil until it is known.
	review *Review
	// ended says what became of the change; empty before it is decided.
	ended string
}

func newReview(draft *Draft) *reviewPage {
	verb := "Write "
	if draft.deletes() {
		verb = "Delete "
	}
	p := &reviewPage{draft: draft}
	p.readerPage = readerPage{name: strings.ToLower(strings.TrimSpace(verb)) + "?", heading: verb + draft.Ref.String() + "?"}
	p.setReview(nil)
	return p
}

// setReview shows what the change would do.
func (p *reviewPage) setReview(review *Review) {
	p.review = review
	p.content = func(width int) []line { return reviewLines(p.draft, review, width) }
	p.width = 0
}

// decisions are the keys of the page.
func (p *reviewPage) decisions() []string {
	yes, out := "y write", []string{}
	if p.draft.deletes() {
		yes = "y delete"
	}
	if p.ended == "" && p.review != nil && p.review.Refused == "" {
		out = append(out, yes)
	}
	if !p.draft.deletes() {
		out = append(out, "e edit again")
	}
	return append(out, "n leave it as it was", "/ search", "? help")
}

// disabled implements page.
func (p *reviewPage) disabled(v verb, s *shared) string {
	switch v {
	case verbEdit, verbDelete, verbYAML, verbWhy:
		return "decide first: " + strings.Join(p.decisions()[:2], ", ")
	}
	return p.readerPage.disabled(v, s)
}

// reviewLines lay out a change: why it cannot be made, what it does to traffic, which issues it
// brings and fixes, the change itself, and the objects that follow from it.
func reviewLines(draft *Draft, review *Review, width int) []line {
	var out []line
	title := func(text string) { out = append(out, line{}, line{text: text, style: styleTitle}) }
	say := func(before, text string, style lineStyle, level explain.Level, ref snapshot.Ref) {
		for i, part := range wrap(snapshot.Clean(text), width-textWidth(before)) {
			if i > 0 {
				before, ref = spaces(textWidth(before)), snapshot.Ref{}
			}
			out = append(out, line{text: before + part, style: style, level: level, ref: ref})
		}
	}
	switch {
	case review == nil:
		out = append(out, line{text: "Working out what it would do …"})
	case review.Refused != "":
		for part := range strings.Lines(review.Refused) {
			say("✗ ", strings.TrimSuffix(part, "\n"), styleLevel, explain.Error, snapshot.Ref{})
		}
	}
	if review != nil && review.Planned != nil {
		p := review.Planned
		out = append(out, line{text: "What it does to traffic", style: styleTitle})
		if len(p.Effects) == 0 {
			say("  ", "Nothing.", stylePlain, explain.OK, snapshot.Ref{})
		}
		for i := range p.Effects {
			e := &p.Effects[i]
			level := explain.OK
			if e.Harm {
				level = explain.Error
			}
			say("  "+e.Mark()+" ", e.Text(), styleLevel, level, e.On)
		}
		for _, list := range []struct {
			title  string
			issues []snapshot.Issue
		}{{"New issues", p.NewIssues}, {"Issues that this fixes", p.FixedIssues}} {
			if len(list.issues) > 0 {
				title(list.title)
			}
			for _, issue := range list.issues {
				out = append(out, issueLine(issue, width)...)
			}
		}
		for _, note := range p.Notes {
			title("Note")
			say("  ", note+".", stylePlain, explain.OK, snapshot.Ref{})
		}
	}
	title("The change")
	own := explain.ClusterComparison{Objects: []explain.ObjectComparison{{Ref: draft.Ref, Before: draft.Before, After: draft.After}}}
	out = append(out, diffLines(own.Text(), draft.deletes())...)
	if review == nil || review.Planned == nil {
		return out
	}
	for i := range review.Planned.Clusters {
		c := &review.Planned.Clusters[i]
		name := "cluster " + c.Cluster
		if c.Cluster == "" {
			name = "the management plane"
		}
		title(fmt.Sprintf("Objects in %s: %s", snapshot.Clean(name), c.Verbs()))
		for j := range c.Objects {
			one := explain.ClusterComparison{Objects: c.Objects[j : j+1]}
			out = append(out, diffLines(one.Text(), c.Objects[j].After == "")...)
		}
	}
	return out
}

// diffLines are the lines of a difference, or of an object that comes or goes.
func diffLines(text string, removed bool) []line {
	var out []line
	changed := strings.Contains(text, "\n@@")
	for part := range strings.Lines(text) {
		part = snapshot.Clean(strings.TrimSuffix(part, "\n"))
		l := line{text: "  " + part}
		switch {
		case strings.HasPrefix(part, "# "), strings.HasPrefix(part, "@@"):
			l.style = styleHeader
		case changed && strings.HasPrefix(part, "+"), !changed && !removed:
			l.style = styleAdded
		case changed && strings.HasPrefix(part, "-"), !changed && removed:
			l.style = styleRemoved
		}
		out = append(out, l)
	}
	return out
}

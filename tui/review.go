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
	// drafts are one edit, or the deletion of one object or several. Those that are carried out leave, and done says what became
	// of each.
	drafts []Draft
	done   []string
	// review is nil until it is known.
	review *Review
	// ended says what became of the change; empty before it is decided.
	ended string
}

func newReview(drafts []Draft) *reviewPage {
	p := &reviewPage{drafts: drafts}
	verb := "Write "
	if p.deletes() {
		verb = "Delete "
	}
	p.readerPage = readerPage{name: strings.ToLower(strings.TrimSpace(verb)) + "?", heading: verb + objectsText(drafts) + "?"}
	p.setReview(nil)
	return p
}

// deletes reports whether the change deletes objects.
func (p *reviewPage) deletes() bool { return p.drafts[0].deletes() }

// objectsText names the object of drafts, or counts them.
func objectsText(drafts []Draft) string {
	if len(drafts) == 1 {
		return drafts[0].Ref.String()
	}
	return snapshot.Count(len(drafts), "object")
}

// was is the verb for a number of things.
func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// setReview shows what the change would do.
func (p *reviewPage) setReview(review *Review) {
	p.review = review
	p.content = func(width int) []line { return reviewLines(p, width) }
	p.width = 0
}

// end takes the outcomes of the drafts, of which some deleted objects, and says in a sentence what became of them. Those that
// failed stay on the page, with the reasons.
func (p *reviewPage) end(outcomes []outcome, deleted int) (text string, failed bool) {
	var left []Draft
	var reasons []string
	for _, o := range outcomes {
		if o.err != nil {
			left, reasons = append(left, o.draft), append(reasons, o.err.Error())
		} else {
			p.done = append(p.done, o.text)
		}
	}
	kept := "; @ shows what it was"
	if deleted > 1 {
		kept = "; @ shows what they were"
	}
	switch {
	case len(left) == 0 && len(outcomes) == 1:
		text = p.done[0]
	case len(left) == 0:
		text = snapshot.Count(deleted, "object") + " were deleted"
	case len(outcomes) == 1:
		text = reasons[0]
	default:
		text = fmt.Sprintf("%d of %s %s deleted", deleted, snapshot.Count(len(outcomes), "object"), was(deleted))
	}
	if deleted > 0 {
		text += kept
	}
	text = snapshot.Clean(text)
	if len(left) == 0 {
		p.ended = text
		return text, false
	}
	if len(outcomes) > 1 {
		p.heading = fmt.Sprintf("%d of %s %s deleted", deleted, snapshot.Count(len(outcomes), "object"), was(deleted))
	}
	p.ended, p.drafts = "", left
	p.setReview(&Review{Refused: strings.Join(reasons, "\n")})
	p.window.to(0)
	return text, true
}

// cannot says what to do where the change is refused.
func (p *reviewPage) cannot() string {
	if p.deletes() {
		return "it cannot be deleted, for the reason above; " + p.leaves()
	}
	return "it cannot be written; e edits it again, n leaves it as it was"
}

// leaves is what n does.
func (p *reviewPage) leaves() string {
	if len(p.drafts) > 1 {
		return "n leaves them as they are"
	}
	return "n leaves it as it was"
}

// decisions are the keys of the page.
func (p *reviewPage) decisions() []string {
	yes, no, out := "y write", "n leave it as it was", []string{}
	if p.deletes() {
		yes = "y delete"
	}
	if len(p.drafts) > 1 {
		yes, no = fmt.Sprintf("y delete %d", len(p.drafts)), "n leave them as they are"
	}
	if p.ended == "" && p.review != nil && p.review.Refused == "" {
		out = append(out, yes)
	}
	if !p.deletes() {
		out = append(out, "e edit again")
	}
	return append(out, no, "/ search", "? help")
}

// disabled implements page.
func (p *reviewPage) disabled(v verb, s *shared) string {
	switch v {
	case verbEdit, verbDelete, verbYAML, verbWhy:
		return "decide first: " + strings.Join(p.decisions()[:2], ", ")
	}
	return p.readerPage.disabled(v, s)
}

// reviewLines lay out a change: why it cannot be made, what has been done of it, of which objects it is if there are several,
// what it does to traffic, which issues it brings and fixes, the change itself, and the objects that follow from it.
func reviewLines(p *reviewPage, width int) []line {
	review := p.review
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
	for _, text := range p.done {
		say("  ", text, stylePlain, explain.OK, snapshot.Ref{})
	}
	if len(p.drafts) > 1 {
		// The objects may fill the screen, so the worst stands above them.
		if review != nil && review.Planned != nil {
			say("", review.Planned.Verdict+".", stylePlain, explain.OK, snapshot.Ref{})
		}
		title(fmt.Sprintf("The %d objects", len(p.drafts)))
		for i := range p.drafts {
			say("  - ", p.drafts[i].Ref.String(), stylePlain, explain.OK, p.drafts[i].Ref)
		}
		out = append(out, line{})
	}
	if review != nil && review.Planned != nil {
		planned := review.Planned
		out = append(out, line{text: "What it does to traffic", style: styleTitle})
		if len(planned.Effects) == 0 {
			say("  ", "Nothing.", stylePlain, explain.OK, snapshot.Ref{})
		}
		for i := range planned.Effects {
			e := &planned.Effects[i]
			level := explain.OK
			if e.Harm {
				level = explain.Error
			}
			say("  "+e.Mark()+" ", e.Text(), styleLevel, level, e.On)
		}
		for _, list := range []struct {
			title  string
			issues []snapshot.Issue
		}{{"New issues", planned.NewIssues}, {"Issues that this fixes", planned.FixedIssues}} {
			if len(list.issues) > 0 {
				title(list.title)
			}
			for _, issue := range list.issues {
				out = append(out, issueLine(issue, width)...)
			}
		}
		for _, note := range planned.Notes {
			title("Note")
			say("  ", note+".", stylePlain, explain.OK, snapshot.Ref{})
		}
	}
	title("The change")
	for _, draft := range p.drafts {
		own := explain.ClusterComparison{Objects: []explain.ObjectComparison{{Ref: draft.Ref, Before: draft.Before, After: draft.After}}}
		out = append(out, diffLines(own.Text(), draft.deletes())...)
	}
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

package wizards

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// section is a part of the questions of a wizard. The sections are known before the first question is asked, as the
// number of questions is not: each answer decides what is asked next.
type section struct {
	name string
	ask  func(*Session) error
}

// Step is a section of a wizard, of which all are counted, also those that ask nothing because flags said it.
// The zero Step is that of a question that belongs to no wizard.
type Step struct {
	// Number of the section, from 1 to Total.
	Number, Total int
	Name          string
	// Within is the step of the wizard that this one is a part of; nil if it stands alone.
	Within *Step
}

// none reports whether the question belongs to no wizard.
func (s Step) none() bool { return s.Total == 0 }

// Line is "2 of 5 · Callers", in as many columns as there are. What it is a part of is left out first.
func (s Step) Line(columns int) string {
	if s.none() {
		return ""
	}
	line := fmt.Sprintf("%d of %d · %s", s.Number, s.Total, s.Name)
	if s.Within != nil {
		if whole := s.Within.Line(columns) + " › " + line; utf8.RuneCountInString(whole) <= columns {
			return whole
		}
	}
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:max(columns-1, 0)]) + "…"
	}
	return line
}

// Sentence is "Step 2 of 5: Callers.", to be read aloud.
func (s Step) Sentence() string {
	switch {
	case s.none():
		return ""
	case s.Within != nil:
		return fmt.Sprintf("Step %d of %d, %s; part %d of %d: %s.", s.Within.Number, s.Within.Total, s.Within.Name, s.Number, s.Total, s.Name)
	}
	return fmt.Sprintf("Step %d of %d: %s.", s.Number, s.Total, s.Name)
}

// stepOf is the step of a name in a list; zero if it is not there.
func stepOf(names []string, name string, within *Step) Step {
	i := slices.Index(names, name)
	if i < 0 {
		return Step{}
	}
	return Step{i + 1, len(names), name, within}
}

// Sections are the names of the parts of the questions about the kind, in their order.
func (f *Form) Sections() []string { return namesOf(f.sections) }

func namesOf(sections []section) []string {
	var out []string
	for _, one := range sections {
		out = append(out, one.name)
	}
	return out
}

// The sections beside those of a form.
const (
	nameSection   = "Name"
	reviewSection = "Review"
)

// Title says what the questions make.
func (s *Session) Title() string {
	if s.Edits != nil {
		return fmt.Sprintf("Edit %s %s/%s", s.Form.Kind, s.Namespace, s.Name)
	}
	return "New " + s.Form.Kind.String()
}

// sectionsOf a session are those of its form, the name if it has to be asked for, and what follows, if anything does.
func sectionsOf(s *Session, then func() error) []section {
	out := slices.Clone(s.Form.sections)
	naming := section{nameSection, (*Session).askName}
	switch {
	case s.Edits != nil:
	case s.Name == "":
		out = append(out, naming)
	case s.nameTaken(s.Name) != nil: // that is not said after all questions
		out = slices.Insert(out, 0, naming)
	}
	if then != nil {
		out = append(out, section{reviewSection, func(*Session) error { return then() }})
	}
	return out
}

// heading is the title of a wizard, which is said once, before anything else is.
type heading struct {
	title string
	said  bool
}

func (h *heading) say(p Prompter) {
	if h != nil && h.title != "" && !h.said {
		h.said = true
		p.Title(clean(h.title))
	}
}

// jump is the error that goes back to one of the questions that were answered.
type jump struct{ to int }

func (*jump) Error() string { return "back to an earlier question" }

// Change asks which of the answers before this step to change, and returns the error with which Run asks for it again.
// Later answers stay as far as they still fit.
func (h *History) Change() error {
	var options []Option
	for i := range h.asked {
		if a := &h.asked[i]; a.step != h.step {
			options = append(options, Option{Value: fmt.Sprint(i), Text: a.step.Name + " · " + a.text})
		}
	}
	choice, err := h.Select(Question{Text: "Which answer do you want to change?"}, options, "")
	if err != nil {
		return err
	}
	to := 0
	if _, err := fmt.Sscan(choice, &to); err != nil {
		return fmt.Errorf("answer %q: %w", choice, err)
	}
	return &jump{to}
}

// changeable reports whether a question of a step before this one was answered.
func (h *History) changeable() bool {
	return slices.ContainsFunc(h.asked, func(a asked) bool { return a.step != h.step })
}

// forget takes back the last answers, as far as they are to these questions.
func forget(s *Session, lines ...string) {
	h, ok := s.Prompter.(*History)
	for ok && len(h.asked) > 0 && slices.Contains(lines, h.asked[len(h.asked)-1].line) {
		h.asked = h.asked[:len(h.asked)-1]
	}
}

// goTo takes away the answer to a question, and keeps the later ones for when their questions come again.
func (h *History) goTo(i int) {
	h.kept = map[string][][]string{}
	for _, later := range h.asked[i+1:] {
		if later.step != h.step && !later.anew {
			h.kept[later.line] = append(h.kept[later.line], later.answers)
		}
	}
	for n := len(h.asked) - 1; n >= i; n-- {
		if h.before[h.asked[n].line] = h.asked[n].answers; h.asked[n].step == h.step {
			delete(h.before, h.asked[n].line) // to change an answer is not proposed again
		}
	}
	h.asked[i].restore()
	h.asked = h.asked[:i]
	h.silent = true
}

// takeKept is the answer that was kept for a question, if it still fits, and says so.
func (h *History) takeKept(q *Question, line string, way *way) ([]string, bool) {
	list := h.kept[line]
	if len(list) == 0 {
		return nil, false
	}
	answers := list[0]
	h.kept[line] = list[1:]
	if err := way.fits(answers); err != nil {
		h.Prompter.Say(clean(fmt.Sprintf("%s The answer before was %s: %v\n", firstSentence(q.Text), way.shown(answers), err)))
		return nil, false
	}
	h.Prompter.Say(clean(fmt.Sprintf("%s %s (as before)\n", firstSentence(q.Text), way.shown(answers))))
	return answers, true
}

// errNoOption is that an answer of before is not among the options any more.
var errNoOption = errors.New("that is no option any more")

// firstSentence is the question without what explains it.
func firstSentence(text string) string {
	if before, _, found := strings.Cut(text, "?"); found {
		return before + "?"
	}
	return text
}

// shownAs lists answers, of several the first ones.
func shownAs(answers []string) string {
	if text := joinFirst(answers); text != "" {
		return text
	}
	return "(empty)"
}

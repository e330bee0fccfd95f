package wizards

import (
	"errors"
	"slices"
)

// ErrBack means that the user wants to go back to the question before.
var ErrBack = errors.New("back to the question before")

// History is a Prompter with which the user can go back. What asks by it is run by Run, and does not
// ask for what was answered: to go back, the last answer is taken away, and all runs again.
type History struct {
	Prompter
	// Leave: to go back from the first question ends Run with ErrBack.
	Leave bool

	// keep returns what restores the answers that there are now; nil if none are stored.
	keep  func() func()
	asked []asked
	// before has the answers that were taken away, by question.
	before map[string][]string
	// kept has the answers to the questions after one that is changed, by question, in their order.
	kept map[string][][]string
	// silent until the next question: what is said on the way to it was said before.
	silent bool
	// step that the questions belong to.
	step Step
	// heading may be nil.
	heading *heading
}

// asked is a question that was answered.
type asked struct {
	line    string
	answers []string
	restore func()
	step    Step
	// text is the question with its answer.
	text string
	// anew as Question has it.
	anew bool
}

// way is how a question is asked.
type way struct {
	// ask has the answers of before as default; nil if there are none.
	ask func(before []string) ([]string, error)
	// fits says why answers of before cannot be given any more.
	fits func(answers []string) error
	// shown is how answers are shown.
	shown func(answers []string) string
}

// NewHistory goes back on a Prompter. Keep returns what restores the answers that there are at its
// call; it may be nil.
func NewHistory(p Prompter, keep func() (restore func())) *History {
	return &History{Prompter: p, keep: keep, before: map[string][]string{}}
}

// Run runs what asks until the user does not go back.
func (h *History) Run(ask func() error) error {
	for {
		err := ask()
		if to := (*jump)(nil); errors.As(err, &to) {
			h.goTo(to.to)
			continue
		}
		if !errors.Is(err, ErrBack) {
			return err
		}
		if len(h.asked) == 0 {
			if h.Leave {
				return err
			}
			h.Prompter.Say("This is the first question; ctrl-c cancels.\n")
		} else {
			last := h.asked[len(h.asked)-1]
			h.asked = h.asked[:len(h.asked)-1]
			h.before[last.line] = last.answers
			last.restore()
		}
		h.silent = true
	}
}

// ask asks a question, with the answer that was taken away, unless one was kept for it.
func (h *History) ask(q *Question, way *way) ([]string, error) {
	line := q.Line()
	restore := func() {}
	if h.keep != nil {
		restore = h.keep()
	}
	q.Back, q.Step = true, h.step
	var err error
	answers, kept := h.takeKept(q, line, way)
	if !kept {
		h.silent = false
		h.heading.say(h.Prompter)
		answers, err = way.ask(h.before[line])
	}
	now := asked{line, answers, restore, h.step, "", q.Anew}
	if err == nil {
		now.text = firstSentence(q.Text) + " " + way.shown(answers)
	}
	// A question that is asked until the answer is right is one question.
	again := len(h.asked) > 0 && h.asked[len(h.asked)-1].line == line
	switch {
	case errors.Is(err, ErrBack) && again:
		h.asked = h.asked[:len(h.asked)-1]
	case err == nil && again:
		now.restore = h.asked[len(h.asked)-1].restore
		h.asked[len(h.asked)-1] = now
	case err == nil:
		h.asked = append(h.asked, now)
	}
	return answers, err
}

// has reports whether a value is among options.
func has(options []Option, value string) bool {
	return slices.ContainsFunc(options, func(o Option) bool { return o.Value == value })
}

// Select is part of Prompter.
func (h *History) Select(q Question, options []Option, preset string) (string, error) {
	answers, err := h.ask(&q, &way{
		ask: func(before []string) ([]string, error) {
			if len(before) > 0 && has(options, before[0]) {
				preset = before[0]
			}
			answer, err := h.Prompter.Select(q, options, preset)
			return []string{answer}, err
		},
		fits: func(answers []string) error {
			if !has(options, answers[0]) {
				return errNoOption
			}
			return nil
		},
		shown: func(answers []string) string {
			i := slices.IndexFunc(options, func(o Option) bool { return o.Value == answers[0] })
			if i < 0 {
				return answers[0]
			}
			return options[i].Label()
		},
	})
	if err != nil {
		return "", err
	}
	return answers[0], nil
}

// MultiSelect is part of Prompter.
func (h *History) MultiSelect(q Question, options []Option, preset []string) ([]string, error) {
	return h.ask(&q, &way{
		ask: func(before []string) ([]string, error) {
			if before != nil {
				preset = before
			}
			answers, err := h.Prompter.MultiSelect(q, options, preset)
			return append([]string{}, answers...), err
		},
		fits: func(answers []string) error {
			if slices.ContainsFunc(answers, func(one string) bool { return !has(options, one) }) {
				return errNoOption
			}
			return nil
		},
		shown: shownAs,
	})
}

// nothing is typed where an empty line means the answer given before.
const nothing = "-"

// Input is part of Prompter.
func (h *History) Input(q Question, preset string, check func(string) error) (string, error) {
	answers, err := h.ask(&q, &way{
		ask: func(before []string) ([]string, error) {
			none := preset == "" && len(before) > 0 && before[0] != ""
			if len(before) > 0 {
				preset = before[0]
			}
			if none {
				q.Text += " (" + nothing + " for none)"
			}
			meant := func(text string) string {
				if none && text == nothing {
					return ""
				}
				return text
			}
			answer, err := h.Prompter.Input(q, preset, func(text string) error { return check(meant(text)) })
			return []string{meant(answer)}, err
		},
		fits: func(answers []string) error { return check(answers[0]) },
		shown: func(answers []string) string {
			return shownAs(slices.DeleteFunc(slices.Clone(answers), func(s string) bool { return s == "" }))
		},
	})
	if err != nil {
		return "", err
	}
	return answers[0], nil
}

// beforeSaying says the title and, to who has no step at each question, the step: what is said belongs to it, as the
// manifest belongs to the review.
func (h *History) beforeSaying() {
	h.heading.say(h.Prompter)
	if plain, ok := h.Prompter.(*Plain); ok {
		plain.sayStep(h.step)
	}
}

// Say is part of Prompter.
func (h *History) Say(text string) {
	if !h.silent {
		h.beforeSaying()
		h.Prompter.Say(text)
	}
}

// Show is part of Prompter.
func (h *History) Show(lines []Line) {
	if !h.silent {
		h.beforeSaying()
		h.Prompter.Show(lines)
	}
}

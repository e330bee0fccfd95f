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
	// silent until the next question: what is said on the way to it was said before.
	silent bool
}

// asked is a question that was answered.
type asked struct {
	line    string
	answers []string
	restore func()
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

// ask asks a question, with the answer that was taken away; nil if there is none.
func (h *History) ask(q *Question, ask func(before []string) ([]string, error)) error {
	h.silent = false
	line := q.Line()
	restore := func() {}
	if h.keep != nil {
		restore = h.keep()
	}
	q.Back = true
	answers, err := ask(h.before[line])
	// A question that is asked until the answer is right is one question.
	again := len(h.asked) > 0 && h.asked[len(h.asked)-1].line == line
	switch {
	case errors.Is(err, ErrBack) && again:
		h.asked = h.asked[:len(h.asked)-1]
	case err == nil && again:
		h.asked[len(h.asked)-1].answers = answers
	case err == nil:
		h.asked = append(h.asked, asked{line, answers, restore})
	}
	return err
}

// Select is part of Prompter.
func (h *History) Select(q Question, options []Option, preset string) (answer string, err error) {
	err = h.ask(&q, func(before []string) ([]string, error) {
		if len(before) > 0 && slices.ContainsFunc(options, func(o Option) bool { return o.Value == before[0] }) {
			preset = before[0]
		}
		answer, err = h.Prompter.Select(q, options, preset)
		return []string{answer}, err
	})
	return answer, err
}

// MultiSelect is part of Prompter.
func (h *History) MultiSelect(q Question, options []Option, preset []string) (answers []string, err error) {
	err = h.ask(&q, func(before []string) ([]string, error) {
		if before != nil {
			preset = before
		}
		answers, err = h.Prompter.MultiSelect(q, options, preset)
		return append([]string{}, answers...), err
	})
	return answers, err
}

// nothing is typed where an empty line means the answer given before.
const nothing = "-"

// Input is part of Prompter.
func (h *History) Input(q Question, preset string, check func(string) error) (answer string, err error) {
	err = h.ask(&q, func(before []string) ([]string, error) {
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
		answer, err = h.Prompter.Input(q, preset, func(text string) error { return check(meant(text)) })
		answer = meant(answer)
		return []string{answer}, err
	})
	return answer, err
}

// Say is part of Prompter.
func (h *History) Say(text string) {
	if !h.silent {
		h.Prompter.Say(text)
	}
}

// Show is part of Prompter.
func (h *History) Show(lines []Line) {
	if !h.silent {
		h.Prompter.Show(lines)
	}
}

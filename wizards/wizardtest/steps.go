package wizardtest

import (
	"fmt"

	"github.com/meshctl/meshctl/wizards"
)

// Steps checks what wizards say about where the user is.
type Steps struct {
	titles []string
	// last are the steps of the question before: of the wizard, and of the one that it is a part of.
	last [2]wizards.Step
	// begun: a title was said since. Back: the user left the question before for an earlier one.
	begun, back bool
}

// Titles are those that were said.
func (s *Steps) Titles() []string { return s.titles }

// Last is the step of the last question.
func (s *Steps) Last() wizards.Step { return s.last[0] }

// Title notes that a wizard begins.
func (s *Steps) Title(text string) {
	s.titles, s.begun = append(s.titles, text), true
}

// Back notes that the user goes back.
func (s *Steps) Back() { s.back = true }

// Asked says what is wrong with the step of a question: every wizard has a title, no step is after the last, the
// number of steps never changes, and none is before the one of the question before unless the user went back.
func (s *Steps) Asked(q wizards.Question) error {
	if len(s.titles) == 0 && q.Step.Total == 0 {
		return nil // it belongs to no wizard
	}
	now := [2]wizards.Step{}
	now[0] = q.Step
	if q.Step.Within != nil {
		now = [2]wizards.Step{q.Step, *q.Step.Within}
	}
	depth := func(steps [2]wizards.Step) int {
		if steps[1].Total > 0 {
			return 1
		}
		return 0
	}
	// The outer wizard comes first in its last step, whether it asks by itself or by another wizard.
	outer := func(steps [2]wizards.Step) wizards.Step { return steps[depth(steps)] }
	wrong := func(what string) error {
		return fmt.Errorf("%s: %s: %q after %q, of %q", q.Line(), what, q.Step.Sentence(), s.last[0].Sentence(), s.titles)
	}
	switch {
	case len(s.titles) == 0:
		return wrong("no title was said")
	case now[0].Total == 0 || now[0].Name == "":
		return wrong("it has no step")
	case now[0].Number < 1 || now[0].Number > now[0].Total:
		return wrong("its step is not one of all")
	}
	for _, pair := range [][2]wizards.Step{{outer(s.last), outer(now)}, {s.last[0], now[0]}} {
		was, is := pair[0], pair[1]
		switch {
		case was.Total == 0, s.begun && depth(now) == 0, is == now[0] && (s.begun || depth(s.last) != depth(now)):
			// another wizard
		case was.Total != is.Total:
			return wrong("the number of steps changed")
		case was.Number > is.Number && !s.back:
			return wrong("it goes back by itself")
		case was.Number == is.Number && was.Name != is.Name:
			return wrong("the step has two names")
		}
	}
	s.last, s.begun, s.back = now, false, false
	return nil
}

// Package wizardtest has a strict Prompter for tests: every question must be
// expected, in order, and every expectation must be met.
package wizardtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/meshctl/meshctl/wizards"
)

// Script has the answers of a user, in order.
type Script struct {
	t     testing.TB
	steps []step
	said  strings.Builder
	where Steps
}

type step struct {
	kind, question string
	answers        []string
	rejected       string
	err            error
}

// New returns a Script that fails the test if steps are left at its end.
func New(t testing.TB) *Script {
	t.Helper()
	s := &Script{t: t}
	t.Cleanup(func() {
		for _, left := range s.steps {
			if !t.Failed() {
				t.Errorf("not asked: %s %q", left.kind, left.question)
			}
		}
	})
	return s
}

func (s *Script) add(next step) *Script {
	s.steps = append(s.steps, next)
	return s
}

// Picks expects a Select whose line contains question, and picks the option of that value.
func (s *Script) Picks(question, value string) *Script {
	return s.add(step{kind: "select", question: question, answers: []string{value}})
}

// Presets expects a Select and takes its preset, which must be this one.
func (s *Script) Presets(question, value string) *Script {
	return s.add(step{kind: "preselected", question: question, answers: []string{value}})
}

// PicksAll expects a MultiSelect and picks options by their values.
func (s *Script) PicksAll(question string, values ...string) *Script {
	return s.add(step{kind: "multiselect", question: question, answers: values})
}

// PresetsAll expects a MultiSelect and takes its preset, which must be this one.
func (s *Script) PresetsAll(question string, values ...string) *Script {
	return s.add(step{kind: "multipreset", question: question, answers: values})
}

// Types expects an Input and types an answer that must be accepted.
func (s *Script) Types(question, answer string) *Script {
	return s.add(step{kind: "input", question: question, answers: []string{answer}})
}

// Rejects expects an Input and types an answer that must be rejected with an
// error that contains sentence. The next step is about the same question.
func (s *Script) Rejects(question, answer, sentence string) *Script {
	return s.add(step{kind: "input", question: question, answers: []string{answer}, rejected: sentence})
}

// Accepts expects an Input and takes its preset, which must be this one.
func (s *Script) Accepts(question, preset string) *Script {
	return s.add(step{kind: "preset", question: question, answers: []string{preset}})
}

// Edits expects the editor and returns a text.
func (s *Script) Edits(part, text string) *Script {
	return s.add(step{kind: "edit", question: part, answers: []string{text}})
}

// Says expects a text since the previous question.
func (s *Script) Says(part string) *Script { return s.add(step{kind: "say", question: part}) }

// Interrupts expects any question and presses ctrl-c.
func (s *Script) Interrupts(question string) *Script {
	return s.add(step{kind: "interrupt", question: question, err: wizards.ErrInterrupted})
}

// GoesBack expects any question and presses esc.
func (s *Script) GoesBack(question string) *Script {
	return s.add(step{kind: "back", question: question, err: wizards.ErrBack})
}

// next takes the step for a question.
func (s *Script) next(kinds []string, q wizards.Question) step {
	s.t.Helper()
	line := q.Line()
	for len(s.steps) > 0 && s.steps[0].kind == "say" {
		if !strings.Contains(s.said.String(), s.steps[0].question) {
			s.t.Fatalf("before %q: expected the text %q, got: %s", line, s.steps[0].question, s.said.String())
		}
		s.steps = s.steps[1:]
	}
	s.said.Reset()
	if err := s.where.Asked(q); err != nil {
		s.t.Fatal(err)
	}
	if len(s.steps) == 0 {
		s.t.Fatalf("unexpected question: %s", line)
	}
	now := s.steps[0]
	s.steps = s.steps[1:]
	if now.kind == "back" && !q.Back {
		s.t.Fatalf("no way back from %q", line)
	}
	if now.kind == "back" || strings.Contains(line, "Which answer do you want to change?") || slices.Equal(now.answers, []string{"other"}) {
		s.where.Back()
	}
	if !strings.Contains(line, now.question) || !slices.Contains(append(kinds, "interrupt", "back"), now.kind) {
		s.t.Fatalf("expected %s %q, got %s %q", now.kind, now.question, kinds[0], line)
	}
	return now
}

func values(options []wizards.Option) []string {
	var out []string
	for _, o := range options {
		out = append(out, o.Value)
	}
	return out
}

// Select is part of wizards.Prompter.
func (s *Script) Select(q wizards.Question, options []wizards.Option, preset string) (string, error) {
	s.t.Helper()
	now := s.next([]string{"select", "preselected"}, q)
	if now.err != nil {
		return "", now.err
	}
	if now.kind == "preselected" && now.answers[0] != preset {
		s.t.Fatalf("%s: preset is %q, not %q", q.Line(), preset, now.answers[0])
	}
	if !slices.Contains(values(options), now.answers[0]) {
		s.t.Fatalf("%s: %q is not among the options %q", q.Line(), now.answers[0], values(options))
	}
	return now.answers[0], nil
}

// MultiSelect is part of wizards.Prompter.
func (s *Script) MultiSelect(q wizards.Question, options []wizards.Option, preset []string) ([]string, error) {
	s.t.Helper()
	now := s.next([]string{"multiselect", "multipreset"}, q)
	if now.kind == "multipreset" && !slices.Equal(now.answers, preset) {
		s.t.Fatalf("%s: preset is %q, not %q", q.Line(), preset, now.answers)
	}
	for _, answer := range now.answers {
		if !slices.Contains(values(options), answer) {
			s.t.Fatalf("%s: %q is not among the options %q", q.Line(), answer, values(options))
		}
	}
	return now.answers, now.err
}

// Input is part of wizards.Prompter.
func (s *Script) Input(q wizards.Question, preset string, check func(string) error) (string, error) {
	s.t.Helper()
	for {
		now := s.next([]string{"input", "preset"}, q)
		if now.err != nil {
			return "", now.err
		}
		answer := now.answers[0]
		if now.kind == "preset" && answer != preset {
			s.t.Fatalf("%s: preset is %q, not %q", q.Line(), preset, answer)
		}
		err := check(answer)
		switch {
		case now.rejected == "" && err != nil:
			s.t.Fatalf("%s: %q was rejected: %v", q.Line(), answer, err)
		case now.rejected == "":
			return answer, nil
		case err == nil || !strings.Contains(err.Error(), now.rejected):
			s.t.Fatalf("%s: expected %q to be rejected with %q, got: %v", q.Line(), answer, now.rejected, err)
		}
	}
}

// Edit is part of wizards.Prompter.
func (s *Script) Edit(text string) (string, error) {
	s.t.Helper()
	now := s.next([]string{"edit"}, wizards.Question{Text: text, Step: s.where.last[0]})
	return now.answers[0], now.err
}

// Say is part of wizards.Prompter.
func (s *Script) Say(text string) { s.said.WriteString(text) }

// Show is part of wizards.Prompter.
func (s *Script) Show(lines []wizards.Line) { s.Say(wizards.Text(lines)) }

// Title is part of wizards.Prompter.
func (s *Script) Title(text string) {
	s.where.Title(text)
	s.Say(text + "\n")
}

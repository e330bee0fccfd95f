package wizards

import (
	"errors"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Prompter asks the user. Every method returns ErrInterrupted after ctrl-c, and
// ErrBack after esc if the question has Back.
type Prompter interface {
	// Select asks for one of the options and returns its Value.
	Select(q Question, options []Option, preset string) (string, error)
	// MultiSelect asks for any of the options and returns their Values, in the order of the options.
	MultiSelect(q Question, options []Option, preset []string) ([]string, error)
	// Input asks for a line until check returns nil.
	Input(q Question, preset string, check func(string) error) (string, error)
	// Edit opens a text in an editor and returns the edited text.
	Edit(text string) (string, error)
	// Say shows text between the questions.
	Say(text string)
	// Show is Say for lines that may be painted.
	Show(lines []Line)
	// Title says what the questions after it make, in one line.
	Title(text string)
}

// ErrInterrupted means that the user pressed ctrl-c.
var ErrInterrupted = errors.New("interrupted")

// Question is one line.
type Question struct {
	// Text ends in a question mark.
	Text string
	// Field is the field that the answer sets, such as spec.policy.requestTimeout; may be empty.
	Field string
	// Help is shown on request.
	Help string
	// Back: esc goes back to the question before.
	Back bool
	// Anew: it agrees to what was just shown, so that an answer of before does not stand for it.
	Anew bool
	// Step that it belongs to.
	Step Step
}

// Line is the question with its field.
func (q Question) Line() string {
	if q.Field == "" {
		return q.Text
	}
	return q.Text + " [" + q.Field + "]"
}

// Option is one of several answers.
type Option struct {
	// Value is returned; Text is shown, or Value if Text is empty.
	Value, Text string
}

// Label is the shown text of an option.
func (o Option) Label() string {
	text := o.Text
	if text == "" {
		text = o.Value
	}
	return clean(text)
}

// clean replaces what a terminal would interpret in a string from a cluster.
func clean(s string) string {
	out := []rune(s)
	for i, r := range out {
		if r != '\n' && snapshot.Unprintable(r) {
			out[i] = '?'
		}
	}
	return string(out)
}

package wizards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"
	"golang.org/x/term"
)

// Terminal asks on a terminal, with arrow keys and filters.
type Terminal struct {
	in  *keys
	out terminal.FileWriter
}

// sayErrorsOnly has survey show what is wrong with an answer without a preamble:
// the sentences are whole by themselves. It is a setting of the whole process.
var sayErrorsOnly = sync.OnceFunc(func() {
	survey.ErrorTemplate = "{{color .Icon.Format}}{{.Icon.Text}} {{.Error.Error}}{{color \"reset\"}}\n"
})

// NewTerminal asks on a terminal until ctx ends.
func NewTerminal(ctx context.Context, in terminal.FileReader, out terminal.FileWriter) *Terminal {
	sayErrorsOnly()
	return &Terminal{in: &keys{FileReader: in, ctx: ctx}, out: out}
}

func (t *Terminal) ask(p survey.Prompt, answer any, options ...survey.AskOpt) error {
	options = append(options, survey.WithStdio(t.in, t.out, t.out), survey.WithPageSize(t.page()))
	err := survey.AskOne(p, answer, options...)
	if errors.Is(err, terminal.InterruptErr) {
		return ErrInterrupted
	}
	return err
}

// The list of a question takes so many lines, if the terminal has room.
const mostLines, leastLines, otherLines = 12, 3, 4

func (t *Terminal) page() int {
	_, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || height <= 0 {
		return mostLines
	}
	return min(max(height-otherLines, leastLines), mostLines)
}

func labels(options []Option) []string {
	out := make([]string, 0, len(options))
	for _, o := range options {
		out = append(out, o.Label())
	}
	return out
}

// Select is part of Prompter.
func (t *Terminal) Select(q Question, options []Option, preset string) (string, error) {
	at := max(slices.IndexFunc(options, func(o Option) bool { return o.Value == preset }), 0)
	if len(options) == 0 {
		return "", fmt.Errorf("%s: there is nothing to choose from", q.Line())
	}
	err := t.ask(&survey.Select{Message: q.Line(), Options: labels(options), Default: at, Help: q.Help}, &at)
	if err != nil {
		return "", err
	}
	return options[at].Value, nil
}

// MultiSelect is part of Prompter.
func (t *Terminal) MultiSelect(q Question, options []Option, preset []string) ([]string, error) {
	var defaults, picked []int
	for i, o := range options {
		if slices.Contains(preset, o.Value) {
			defaults = append(defaults, i)
		}
	}
	if len(options) == 0 {
		return nil, nil
	}
	err := t.ask(&survey.MultiSelect{Message: q.Line(), Options: labels(options), Default: defaults, Help: q.Help}, &picked)
	if err != nil {
		return nil, err
	}
	slices.Sort(picked)
	var out []string
	for _, i := range picked {
		out = append(out, options[i].Value)
	}
	return out, nil
}

// Input is part of Prompter.
func (t *Terminal) Input(q Question, preset string, check func(string) error) (string, error) {
	var answer string
	validate := survey.WithValidator(func(given any) error {
		text, ok := given.(string)
		if !ok {
			return errors.New("a line of text is needed")
		}
		return check(text)
	})
	err := t.ask(&survey.Input{Message: q.Line(), Default: preset, Help: q.Help}, &answer, validate)
	return answer, err
}

// Edit is part of Prompter.
func (t *Terminal) Edit(text string) (string, error) { return edit(text, t.in.FileReader, t.out) }

// Say is part of Prompter.
func (t *Terminal) Say(text string) { _, _ = fmt.Fprint(t.out, text) }

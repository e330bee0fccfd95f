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
	in  *keyReader
	out terminal.FileWriter
}

// setErrorTemplate makes survey show an error without its preamble, because the
// messages are complete sentences. It is a setting of the whole process.
var setErrorTemplate = sync.OnceFunc(func() {
	survey.ErrorTemplate = "{{color .Icon.Format}}{{.Icon.Text}} {{.Error.Error}}{{color \"reset\"}}\n"
})

// NewTerminal asks on a terminal until ctx ends.
func NewTerminal(ctx context.Context, in terminal.FileReader, out terminal.FileWriter) *Terminal {
	setErrorTemplate()
	return &Terminal{in: &keyReader{FileReader: in, ctx: ctx}, out: out}
}

func (t *Terminal) ask(p survey.Prompt, answer any, options ...survey.AskOpt) error {
	options = append(options, survey.WithStdio(t.in, t.out, t.out), survey.WithPageSize(t.page()))
	err := survey.AskOne(p, answer, options...)
	if errors.Is(err, terminal.InterruptErr) {
		return ErrInterrupted
	}
	return err
}

// The number of options shown at a time, and the lines around them.
const maxLines, minLines, otherLines = 12, 3, 4

func (t *Terminal) page() int {
	_, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || height <= 0 {
		return maxLines
	}
	return min(max(height-otherLines, minLines), maxLines)
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
		return "", fmt.Errorf("%s: there are no options", q.Line())
	}
	err := t.ask(&survey.Select{Message: q.Line(), Options: labels(options), Default: at, Help: q.Help}, &at)
	if err != nil {
		return "", err
	}
	return options[at].Value, nil
}

// MultiSelect is part of Prompter.
func (t *Terminal) MultiSelect(q Question, options []Option, preset []string) ([]string, error) {
	var defaults, selected []int
	for i, o := range options {
		if slices.Contains(preset, o.Value) {
			defaults = append(defaults, i)
		}
	}
	if len(options) == 0 {
		return nil, nil
	}
	err := t.ask(&survey.MultiSelect{Message: q.Line(), Options: labels(options), Default: defaults, Help: q.Help}, &selected)
	if err != nil {
		return nil, err
	}
	slices.Sort(selected)
	var out []string
	for _, i := range selected {
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
			return errors.New("a line of text is required")
		}
		return check(text)
	})
	err := t.ask(&survey.Input{Message: q.Line(), Default: preset, Help: q.Help}, &answer, validate)
	return answer, err
}

// Edit is part of Prompter.
func (t *Terminal) Edit(text string) (string, error) { return runEditor(text, t.in.FileReader, t.out) }

// Say is part of Prompter.
func (t *Terminal) Say(text string) { _, _ = fmt.Fprint(t.out, text) }

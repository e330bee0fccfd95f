package wizards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/core"
	"github.com/AlecAivazis/survey/v2/terminal"
	"golang.org/x/term"

	"github.com/meshctl/meshctl/engine/explain"
)

// Terminal asks on a terminal, with arrow keys and filters.
type Terminal struct {
	in  *keyReader
	out terminal.FileWriter
}

// setTemplates makes survey show an error without its preamble, because the messages are complete sentences; until
// it is answered, the step of a question above it; and the keys and the field that an answer sets in dim lines: below
// a list, and above a line to type. The templates are settings of the whole process.
var setTemplates = sync.OnceFunc(func() {
	survey.ErrorTemplate = "{{color .Icon.Format}}{{.Icon.Text}} {{.Error.Error}}{{color \"reset\"}}\n"
	const footer = `{{color "black+h"}}{{` + footerField + `}}{{color "reset"}}{{"\n"}}`
	for _, template := range []*string{&survey.SelectQuestionTemplate, &survey.MultiSelectQuestionTemplate} {
		before, rest, _ := strings.Cut(*template, `{{- "  "}}{{- color "cyan"}}[`)
		_, rest, found := strings.Cut(rest, `]{{color "reset"}}`)
		end := strings.LastIndex(rest, "{{- end}}")
		if !found || end < 0 {
			continue // another version of the library: its own words will do
		}
		*template = before + rest[:end] +
			`{{- if not .PageEntries}}  no match for{{.FilterMessage}}{{"\n"}}{{end}}{{- ` + footer[2:] + rest[end:]
	}
	const step = `{{- if and (not .ShowAnswer) ` + stepField + `}}{{color "cyan"}}{{` + stepField + `}}{{color "reset"}}{{"\n"}}{{end}}`
	for _, template := range []*string{&survey.SelectQuestionTemplate, &survey.MultiSelectQuestionTemplate} {
		const question = `{{- if .ShowHelp }}`
		*template = strings.Replace(*template, question, step+question, 1) // after what it defines
	}
	survey.InputQuestionTemplate = step + `{{- if not .ShowAnswer}}` + footer + "{{end}}" + survey.InputQuestionTemplate
})

// footerField has the footer, in a template. It is there for the key that makes a prompt suggest
// answers, which none of these does.
const footerField = ".Config.SuggestInput"

// stepField has the step, in a template. It is an icon that no template of the library shows.
const stepField = ".Config.Icons.HelpInput.Text"

// NewTerminal asks on a terminal until ctx ends.
func NewTerminal(ctx context.Context, in terminal.FileReader, out terminal.FileWriter) *Terminal {
	setTemplates()
	return &Terminal{in: &keyReader{FileReader: in, ctx: ctx}, out: out}
}

// wentBack is shown as the answer to a question from which the user went back.
const wentBack = "(back)"

// ask asks by a prompt; back is wentBack as the prompt shows it.
func (t *Terminal) ask(q Question, p survey.Prompt, answer, back any, options ...survey.AskOpt) error {
	var config survey.PromptConfig
	configure := func(o *survey.AskOptions) error {
		o.PromptConfig.SuggestInput = t.footer(q, p)
		o.PromptConfig.Icons.HelpInput.Text = clean(q.Step.Line(t.columns() - 1))
		config = o.PromptConfig
		return nil
	}
	options = append(options, survey.WithStdio(t.in, t.out, t.out), survey.WithPageSize(t.page(q, p)), configure)
	t.in.back, t.in.escaped = q.Back, false
	err := survey.AskOne(p, answer, options...)
	switch {
	case errors.Is(err, terminal.InterruptErr) && t.in.escaped && !ended(t.in.ctx):
		if line, ok := p.(*survey.Input); ok {
			if err := line.NewCursor().Up(1); err != nil { // the library has begun a new line
				return fmt.Errorf("terminal: %w", err)
			}
		}
		if err := p.Cleanup(&config, back); err != nil {
			return err
		}
		return ErrBack
	case errors.Is(err, terminal.InterruptErr):
		return ErrInterrupted
	}
	return err
}

// The number of options shown at a time.
const maxOptions, minOptions = 12, 2

// beside are the lines that are neither the question nor its options: the keys, the cursor, and what a filter takes.
const beside = 3

// page is how many options there is room for.
func (t *Terminal) page(q Question, p survey.Prompt) int {
	_, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || height <= 0 {
		return maxOptions
	}
	const mark = 2 // "? ", and what is before an option
	room := height - beside - t.lines(mark, q.Text)
	for _, one := range []string{q.Step.Name, q.Field} {
		if one != "" {
			room--
		}
	}
	highest := 1
	switch list := p.(type) {
	case *survey.Select:
		for _, option := range list.Options {
			highest = max(highest, t.lines(mark, option))
		}
	case *survey.MultiSelect:
		for _, option := range list.Options {
			highest = max(highest, t.lines(mark+len(" [ ] "), option))
		}
	}
	return min(max(room/highest, minOptions), maxOptions)
}

// lines is how many lines a text takes after other columns.
func (t *Terminal) lines(columns int, text string) int {
	return 1 + (columns+utf8.RuneCountInString(text)-1)/t.columns()
}

// columns is the width of the terminal.
func (t *Terminal) columns() int {
	width, _, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 {
		return usualWidth
	}
	return width
}

// footer are the keys of a prompt, as many as fit, and the field that its answer sets.
func (t *Terminal) footer(q Question, p survey.Prompt) string {
	width := t.columns()
	var keys []string
	if q.Back {
		keys = append(keys, "esc: back")
	}
	switch p.(type) {
	case *survey.Select:
		keys = append(keys, "↑↓ enter", "type to filter", "ctrl-c: cancel")
	case *survey.MultiSelect:
		keys = append(keys, "space: select", "↑↓ enter", "type to filter", "→ all", "← none", "ctrl-c: cancel")
	default:
		keys = append(keys, "enter", "ctrl-c: cancel")
	}
	line := keys[0]
	for _, key := range keys[1:] {
		if longer := line + " · " + key; utf8.RuneCountInString(longer) < width {
			line = longer
		}
	}
	if field := clean(q.Field); field != "" {
		if runes := []rune(field); len(runes) >= width {
			field = string(runes[:width-2]) + "…"
		}
		line += "\n" + field
	}
	return line
}

// usualWidth is that of a terminal that does not say it, in columns.
const usualWidth = 80

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
	err := t.ask(q, &survey.Select{Message: q.Text, Options: labels(options), Default: at, Help: q.Help}, &at, core.OptionAnswer{Value: wentBack})
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
	err := t.ask(q, &survey.MultiSelect{Message: q.Text, Options: labels(options), Default: defaults, Help: q.Help}, &selected, []core.OptionAnswer{{Value: wentBack}})
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
	err := t.ask(q, &survey.Input{Message: q.Text, Default: preset, Help: q.Help}, &answer, wentBack, validate)
	return answer, err
}

// Edit is part of Prompter.
func (t *Terminal) Edit(text string) (string, error) { return runEditor(text, t.in.FileReader, t.out) }

// Say is part of Prompter.
func (t *Terminal) Say(text string) { _, _ = fmt.Fprint(t.out, text) }

// Title is part of Prompter.
func (t *Terminal) Title(text string) {
	painted, _, _ := core.RunTemplate(titleTemplate, text)
	t.Say("\n" + painted + "\n")
}

// titleTemplate paints a title, unless the environment forbids colours.
const titleTemplate = `{{color "default+hb"}}{{.}}{{color "reset"}}`

// lineTemplate paints a line, unless the environment forbids colours.
const lineTemplate = `{{color .Colour}}{{.Text}}{{color "reset"}}`

// Show is part of Prompter.
func (t *Terminal) Show(lines []Line) {
	var b strings.Builder
	for _, l := range lines {
		painted := l.Text
		if colour := map[explain.Level]string{explain.Error: "red", explain.Warning: "yellow"}[l.Level]; colour != "" {
			// It can fail only if the template is wrong.
			painted, _, _ = core.RunTemplate(lineTemplate, struct{ Colour, Text string }{colour, l.Text})
		}
		b.WriteString(painted + "\n")
	}
	t.Say(b.String())
}

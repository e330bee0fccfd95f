package wizards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Plain asks line by line, with numbered choices and without moving the
// cursor: for screen readers and simple terminals.
type Plain struct {
	ctx   context.Context
	in    io.Reader
	out   io.Writer
	lines chan line
	next  chan struct{}
	// said is the sentence on the step of the last question.
	said string
}

type line struct {
	text string
	err  error
}

// NewPlain reads answers from in and asks on out until ctx ends.
func NewPlain(ctx context.Context, in io.Reader, out io.Writer) *Plain {
	p := &Plain{ctx: ctx, in: in, out: out, lines: make(chan line), next: make(chan struct{})}
	go func() {
		reader := bufio.NewReader(in)
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.next:
			}
			text, err := reader.ReadString('\n')
			if errors.Is(err, io.EOF) && text != "" {
				err = nil
			}
			select {
			case <-ctx.Done():
				return
			case p.lines <- line{strings.TrimRight(text, "\r\n"), err}:
			}
		}
	}()
	return p
}

// escapeLine is what arrives for the keys esc and enter.
const escapeLine = "\x1b"

// hint says in brackets what an empty line means, and how to go back.
func hint(q Question, empty string) string {
	var parts []string
	if empty != "" {
		parts = append(parts, "empty for "+empty)
	}
	if q.Back {
		parts = append(parts, "esc and enter: back")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// read waits for a line, or for the end of the command.
func (p *Plain) read(q Question) (string, error) {
	text, err := p.line()
	if err == nil && q.Back && strings.TrimSpace(text) == escapeLine {
		return "", ErrBack
	}
	return text, err
}

// errAgain asks the question again.
var errAgain = errors.New("again")

// readNumbers is read of an answer in numbers, for which words can be typed, too.
func (p *Plain) readNumbers(q Question, options []Option) (string, error) {
	text, err := p.read(q)
	if err != nil {
		return "", err
	}
	switch word := strings.ToLower(strings.TrimSpace(text)); {
	case word == "?":
		p.list(q, options)
		return "", errAgain
	case word == "quit":
		return "", ErrInterrupted
	case word == "back" && q.Back:
		return "", ErrBack
	}
	return text, nil
}

// notANumber says what else can be typed.
func (p *Plain) notANumber(q Question, text string, n int) {
	words := "? for the list, or quit"
	if q.Back {
		words = "? for the list, back, or quit"
	}
	p.Say(fmt.Sprintf("%q is not a number from 1 to %d; type one, %s.\n", clean(text), n, words))
}

func (p *Plain) line() (string, error) {
	select {
	case <-p.ctx.Done():
		return "", ErrInterrupted
	case p.next <- struct{}{}:
	}
	select {
	case <-p.ctx.Done():
		return "", ErrInterrupted
	case l := <-p.lines:
		if l.err != nil {
			return "", fmt.Errorf("no more answers: %w", l.err)
		}
		return l.text, nil
	}
}

// Say is part of Prompter.
func (p *Plain) Say(text string) { _, _ = fmt.Fprint(p.out, text) }

// Show is part of Prompter.
func (p *Plain) Show(lines []Line) { p.Say(Text(lines)) }

// Title is part of Prompter.
func (p *Plain) Title(text string) {
	p.said = ""
	p.Say("\n" + text + "\n")
}

// sayStep says where the user is, once for each section.
func (p *Plain) sayStep(step Step) {
	if sentence := step.Sentence(); sentence != "" && sentence != p.said {
		p.said = sentence
		p.Say("\n" + sentence + "\n")
	}
}

func (p *Plain) list(q Question, options []Option) {
	p.Say(q.Line() + "\n")
	for i, o := range options {
		p.Say(fmt.Sprintf("  %d. %s\n", i+1, o.Label()))
	}
}

// Select is part of Prompter.
func (p *Plain) Select(q Question, options []Option, preset string) (string, error) {
	if len(options) == 0 {
		return "", fmt.Errorf("%s: there are no options", q.Line())
	}
	at := max(slices.IndexFunc(options, func(o Option) bool { return o.Value == preset }), 0)
	p.sayStep(q.Step)
	p.list(q, options)
	for {
		p.Say("Number" + hint(q, strconv.Itoa(at+1)) + ": ")
		text, err := p.readNumbers(q, options)
		switch {
		case errors.Is(err, errAgain):
			continue
		case err != nil:
			return "", err
		case text == "":
			return options[at].Value, nil
		}
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 1 && n <= len(options) {
			return options[n-1].Value, nil
		}
		p.notANumber(q, text, len(options))
	}
}

// MultiSelect is part of Prompter.
func (p *Plain) MultiSelect(q Question, options []Option, preset []string) ([]string, error) {
	if len(options) == 0 {
		return nil, nil
	}
	var numbers []string
	for i, o := range options {
		if slices.Contains(preset, o.Value) {
			numbers = append(numbers, strconv.Itoa(i+1))
		}
	}
	defaults, empty := strings.Join(numbers, ","), "none"
	if defaults != "" {
		empty = defaults + ", 0 for none"
	}
	p.sayStep(q.Step)
	p.list(q, options)
	for {
		p.Say("Numbers, separated by commas" + hint(q, empty) + ": ")
		text, err := p.readNumbers(q, options)
		switch {
		case errors.Is(err, errAgain):
			continue
		case err != nil:
			return nil, err
		}
		switch strings.TrimSpace(text) {
		case "":
			text = defaults
		case "0":
			text = ""
		}
		selected, bad := parseNumbers(text, len(options))
		if bad != "" {
			p.notANumber(q, bad, len(options))
			continue
		}
		var out []string
		for i := range options {
			if selected[i] {
				out = append(out, options[i].Value)
			}
		}
		return out, nil
	}
}

// parseNumbers reads "1, 3"; bad is the first part that is not the number of an
// option.
func parseNumbers(text string, n int) (selected map[int]bool, bad string) {
	selected = map[int]bool{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		i, err := strconv.Atoi(part)
		if err != nil || i < 1 || i > n {
			return nil, part
		}
		selected[i-1] = true
	}
	return selected, ""
}

// Input is part of Prompter.
func (p *Plain) Input(q Question, preset string, check func(string) error) (string, error) {
	p.sayStep(q.Step)
	for {
		p.Say(q.Line() + hint(q, clean(preset)) + ": ")
		text, err := p.read(q)
		if err != nil {
			return "", err
		}
		if text == "" {
			text = preset
		}
		err = check(text)
		if err == nil {
			return text, nil
		}
		p.Say(clean(err.Error()) + "\n")
	}
}

// Edit is part of Prompter.
func (p *Plain) Edit(text string) (string, error) { return runEditor(text, p.in, p.out) }

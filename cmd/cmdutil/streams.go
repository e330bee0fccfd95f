package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Streams are where a command reads and writes. Data goes to Out, words about
// the work go to Err.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// InTTY, OutTTY and ErrTTY are true where a person sits at the other end.
	InTTY, OutTTY, ErrTTY bool
	// Width is the number of columns of Out's terminal; 80 if unknown.
	Width int
	// ErrWidth is that of Err's terminal.
	ErrWidth int
	// Colour is true if Out may be painted in colour, and ErrColour if Err may.
	Colour, ErrColour bool
	// Style is how words for people look.
	Style Style
}

const defaultWidth = 80

// System returns the streams of the process.
func System() *Streams {
	s := &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Width:  widthOf(os.Stdout), ErrWidth: widthOf(os.Stderr),
	}
	s.Colour, s.ErrColour, s.Style = isColoured(os.Getenv, s.OutTTY), isColoured(os.Getenv, s.ErrTTY), styleOf(os.Getenv)
	if s.Style == Still {
		s.Out, s.Err = stillOutput{os.Stdout}, stillWords{os.Stderr}
	}
	return s
}

func widthOf(file *os.File) int {
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return defaultWidth
}

// Say writes a message to the error stream. Failing to do so is no error.
func Say(s *Streams, format string, args ...any) {
	_, _ = fmt.Fprintln(s.Err, Clean(fmt.Sprintf(format, args...)))
}

// SayLines is Say for a text of several lines.
func SayLines(s *Streams, text string) {
	for line := range strings.Lines(text) {
		Say(s, "%s", strings.TrimSuffix(line, "\n"))
	}
}

// TestStreams returns streams on buffers, as seen by a script: no terminal.
func TestStreams() (streams *Streams, in, out, errs *bytes.Buffer) {
	in, out, errs = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &Streams{In: in, Out: out, Err: errs, Width: defaultWidth, ErrWidth: defaultWidth}, in, out, errs
}

package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"os"

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
	// Colour is true if Out may be painted in colour.
	Colour bool
}

const defaultWidth = 80

// System returns the streams of the process.
func System() *Streams {
	s := &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Width:  defaultWidth,
	}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 {
		s.Width = width
	}
	// https://no-color.org: any non-empty value means no.
	s.Colour = s.OutTTY && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// Say writes a message to the error stream. Failing to do so is no error.
func Say(s *Streams, format string, args ...any) {
	_, _ = fmt.Fprintln(s.Err, Clean(fmt.Sprintf(format, args...)))
}

// TestStreams returns streams on buffers, as seen by a script: no terminal.
func TestStreams() (streams *Streams, in, out, errs *bytes.Buffer) {
	in, out, errs = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &Streams{In: in, Out: out, Err: errs, Width: defaultWidth}, in, out, errs
}

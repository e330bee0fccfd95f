//go:build unix

// Package terminaltest runs programs in a pseudo-terminal, types into it, and
// shows what a person would see there.
package terminaltest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/meshctl/meshctl/demo/waittest"
)

// look is the pause between two looks at what the program wrote.
const look = 5 * time.Millisecond

// The keys of a person.
const (
	Enter = "\r"
	Down  = "\x1b[B"
	Space = " "
	CtrlC = "\x03"
	Esc   = "\x1b"
)

// Terminal is a pseudo-terminal in which a program runs.
type Terminal struct {
	t      testing.TB
	master *os.File
	// slave stays open, so that its state can be read after the program ended.
	slave  *os.File
	cmd    *exec.Cmd
	screen vt10x.Terminal
	before *term.State
	ended  chan struct{}

	mu  sync.Mutex
	raw strings.Builder
	// from is where of raw the waits look from.
	from int
}

// Start runs a program in a terminal of that size with colours, until the test
// ends at the latest. What the command has in Env counts; what it has as input
// and output does not.
func Start(t testing.TB, cmd *exec.Cmd, cols, rows int) *Terminal {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}))
	x := &Terminal{t: t, master: master, slave: slave, cmd: cmd, ended: make(chan struct{})}
	// The screen answers programs that ask where the cursor is.
	x.screen = vt10x.New(vt10x.WithSize(cols, rows), vt10x.WithWriter(master))
	x.before, err = term.GetState(int(slave.Fd()))
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "CI=", "NO_COLOR=", "CLICOLOR_FORCE="), cmd.Env...)
	// The terminal is the one that controls the program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	go func() { _ = cmd.Wait(); close(x.ended) }()
	go x.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-x.ended
		_ = slave.Close()
		_ = master.Close()
	})
	return x
}

func (x *Terminal) read() {
	buffer := make([]byte, 1<<16)
	for {
		n, err := x.master.Read(buffer)
		if err != nil {
			return
		}
		_, _ = x.screen.Write(buffer[:n])
		x.mu.Lock()
		x.raw.Write(buffer[:n])
		x.mu.Unlock()
	}
}

// control is what moves the cursor or paints.
var control = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]|\x1b[78]`)

// written is all that the program has written since the last answer, without
// what moves the cursor or paints.
func (x *Terminal) written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return control.ReplaceAllString(x.raw.String()[x.from:], "")
}

// Answer waits until the program has written the question and takes single
// keys, and presses keys.
func (x *Terminal) Answer(question string, keys ...string) {
	x.t.Helper()
	x.asks(question)
	x.await("it to take single keys", func() bool {
		now, err := term.GetState(int(x.slave.Fd()))
		return err == nil && !assert.ObjectsAreEqual(x.before, now)
	})
	x.press(keys...)
}

// AnswerLine waits until the program has written the question, and types a line.
func (x *Terminal) AnswerLine(question, line string) {
	x.t.Helper()
	x.asks(question)
	x.press(line, "\n")
}

func (x *Terminal) asks(question string) {
	x.t.Helper()
	x.await("it to ask: "+question, func() bool { return strings.Contains(x.written(), question) })
}

func (x *Terminal) press(keys ...string) {
	x.t.Helper()
	x.mu.Lock()
	x.from = x.raw.Len()
	x.mu.Unlock()
	for _, key := range keys {
		x.Types(key)
	}
}

// Types types keys at once, whatever the program does.
func (x *Terminal) Types(keys string) {
	x.t.Helper()
	_, err := x.master.WriteString(keys)
	require.NoError(x.t, err)
}

// Sees waits until all texts are on the screen.
func (x *Terminal) Sees(texts ...string) {
	x.t.Helper()
	x.await("these on the screen: "+strings.Join(texts, ", "), func() bool {
		screen := x.screen.String()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// Misses waits until a text is not on the screen.
func (x *Terminal) Misses(text string) {
	x.t.Helper()
	x.await("this to leave the screen: "+text, func() bool { return !strings.Contains(x.screen.String(), text) })
}

// Wrote waits until the program has written all texts, wherever they are by now.
func (x *Terminal) Wrote(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.await("it to write: "+text, func() bool { return strings.Contains(x.Raw(), text) })
	}
}

func (x *Terminal) await(what string, is func() bool) {
	x.t.Helper()
	deadline := time.Now().Add(waittest.Limit())
	for !is() {
		if time.Now().After(deadline) {
			require.Fail(x.t, "waited in vain for "+what, "the screen:\n%s", x)
		}
		select {
		case <-x.ended:
			// What it wrote last may be on its way.
			time.Sleep(look)
			if !is() {
				require.Fail(x.t, fmt.Sprintf("the program ended (%d) before %s", x.cmd.ProcessState.ExitCode(), what), "the screen:\n%s", x)
			}
		case <-time.After(look):
		}
	}
}

// Resize changes the size of the terminal. The program learns it after the screen has it: what it draws for the new size would be wrapped.
func (x *Terminal) Resize(cols, rows uint16) {
	x.t.Helper()
	x.screen.Resize(int(cols), int(rows))
	require.NoError(x.t, pty.Setsize(x.master, &pty.Winsize{Cols: cols, Rows: rows}))
}

// String is the screen, without blanks at the ends.
func (x *Terminal) String() string {
	var lines []string
	for line := range strings.Lines(x.screen.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// Signal sends a signal to the program.
func (x *Terminal) Signal(signal os.Signal) {
	x.t.Helper()
	require.NoError(x.t, x.cmd.Process.Signal(signal))
}

// EndMark is what Ends writes when the program has ended: it comes after all that
// the program has written.
const EndMark = "\x1b]0;ended\x07"

// Ends waits for the program's end, and checks its exit code and that the
// terminal is as it was, with its cursor.
func (x *Terminal) Ends(code int) {
	x.t.Helper()
	assert.Equal(x.t, code, x.Code(), x.String())
}

// Code is Ends, and returns the exit code.
func (x *Terminal) Code() int {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(waittest.Limit()):
		require.Fail(x.t, "the program does not end", x.String())
	}
	_, err := x.slave.WriteString(EndMark)
	require.NoError(x.t, err)
	require.Eventually(x.t, func() bool { return strings.Contains(x.Raw(), EndMark) }, waittest.Limit(), look)
	assert.GreaterOrEqual(x.t, strings.LastIndex(x.Raw(), "\x1b[?25h"), strings.LastIndex(x.Raw(), "\x1b[?25l"), "the cursor shows")
	after, err := term.GetState(int(x.slave.Fd()))
	require.NoError(x.t, err)
	assert.Equal(x.t, x.before, after, "the state of the terminal")
	return x.cmd.ProcessState.ExitCode()
}

// Restored checks that a program, which has ended and took the whole screen, has
// given it back.
func (x *Terminal) Restored() {
	x.t.Helper()
	raw := x.Raw()
	off := func(on, off string) bool { return strings.LastIndex(raw, off) > strings.LastIndex(raw, on) }
	assert.True(x.t, off("\x1b[?1049h", "\x1b[?1049l"), "the alternate screen is left")
	assert.True(x.t, off("\x1b[?2004h", "\x1b[?2004l"), "bracketed paste is off")
}

// Raw is all that the program has written.
func (x *Terminal) Raw() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

//go:build unix

// Package terminaltest runs programs in a pseudo-terminal and shows what a
// person would see there.
package terminaltest

import (
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
)

// patience bounds every wait.
const patience = 60 * time.Second

// The keys of a person.
const (
	Enter = "\r"
	Down  = "\x1b[B"
	Space = " "
	CtrlC = "\x03"
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

// Start runs a program in a terminal of that size, until the test ends at the latest.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	go func() { _ = cmd.Wait(); close(x.ended) }()
	go x.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
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
	x.awaits(question)
	require.Eventually(x.t, func() bool {
		now, err := term.GetState(int(x.slave.Fd()))
		return err == nil && !assert.ObjectsAreEqual(x.before, now)
	}, patience, time.Millisecond, "%s", x)
	x.press(keys...)
}

// AnswerLine waits until the program has written the question, and types a line.
func (x *Terminal) AnswerLine(question, line string) {
	x.t.Helper()
	x.awaits(question)
	x.press(line, "\n")
}

func (x *Terminal) awaits(question string) {
	x.t.Helper()
	require.EventuallyWithT(x.t, func(c *assert.CollectT) {
		assert.Contains(c, x.written(), question)
	}, patience, 10*time.Millisecond, "%s", x)
}

func (x *Terminal) press(keys ...string) {
	x.t.Helper()
	x.mu.Lock()
	x.from = x.raw.Len()
	x.mu.Unlock()
	for _, key := range keys {
		_, err := x.master.WriteString(key)
		require.NoError(x.t, err)
	}
}

// Sees waits until a text is on the screen.
func (x *Terminal) Sees(text string) {
	x.t.Helper()
	require.EventuallyWithT(x.t, func(c *assert.CollectT) {
		assert.Contains(c, x.screen.String(), text)
	}, patience, 10*time.Millisecond)
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

// Ends waits for the program's end, and checks its exit code and that the
// terminal is as it was, with its cursor.
func (x *Terminal) Ends(code int) {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(patience):
		require.Fail(x.t, "the program does not end", x.String())
	}
	// What is written now comes after all that the program has written.
	const last = "\x1b]0;ended\x07"
	_, err := x.slave.WriteString(last)
	require.NoError(x.t, err)
	require.Eventually(x.t, func() bool { return strings.Contains(x.Raw(), last) }, patience, 10*time.Millisecond)
	assert.GreaterOrEqual(x.t, strings.LastIndex(x.Raw(), "\x1b[?25h"), strings.LastIndex(x.Raw(), "\x1b[?25l"), "the cursor shows")
	assert.Equal(x.t, code, x.cmd.ProcessState.ExitCode(), x.String())
	after, err := term.GetState(int(x.slave.Fd()))
	require.NoError(x.t, err)
	assert.Equal(x.t, x.before, after, "the state of the terminal")
}

// Raw is all that the program has written.
func (x *Terminal) Raw() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

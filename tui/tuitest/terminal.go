//go:build unix

// Package tuitest runs a program in a pseudo-terminal, types into it, and looks
// at the screen that it paints.
package tuitest

import (
	"fmt"
	"os"
	"os/exec"
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

// patience bounds every wait: nothing here takes longer unless it is broken.
const patience = 60 * time.Second

// look is the pause between two looks at the screen.
const look = 5 * time.Millisecond

// Terminal is a pseudo-terminal in which a program runs, and a screen that
// shows what it writes.
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
}

// Start runs a program on a terminal of 100x30 with colours. What the command
// has in Env counts; what it has as input and output does not.
func Start(t testing.TB, cmd *exec.Cmd) *Terminal {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Cols: 100, Rows: 30}))
	x := &Terminal{t: t, master: master, slave: slave, cmd: cmd, screen: vt10x.New(vt10x.WithSize(100, 30)), ended: make(chan struct{})}
	x.before, err = term.GetState(int(slave.Fd()))
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "CI=", "NO_COLOR="), cmd.Env...)
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
		x.mu.Lock()
		x.raw.Write(buffer[:n])
		x.mu.Unlock()
		_, _ = x.screen.Write(buffer[:n])
	}
}

// Screen is what is on it now.
func (x *Terminal) Screen() string { return x.screen.String() }

// Raw is all that the program wrote so far.
func (x *Terminal) Raw() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// Sees waits until all texts are on the screen.
func (x *Terminal) Sees(texts ...string) {
	x.t.Helper()
	x.await("these on the screen: "+strings.Join(texts, ", "), func() bool {
		screen := x.Screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// Wrote waits until the program has written all texts, wherever they are by now.
func (x *Terminal) Wrote(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.await("the program to write: "+text, func() bool { return strings.Contains(x.Raw(), text) })
	}
}

// Misses waits until a text is not on the screen.
func (x *Terminal) Misses(text string) {
	x.t.Helper()
	x.await("this to leave the screen: "+text, func() bool { return !strings.Contains(x.Screen(), text) })
}

func (x *Terminal) await(what string, is func() bool) {
	x.t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			require.Fail(x.t, "waited in vain for "+what, "the screen:\n%s", x.Screen())
		}
		select {
		case <-x.ended:
			// What it wrote last may be on its way.
			time.Sleep(look)
			if !is() {
				require.Fail(x.t, fmt.Sprintf("the program ended (%d) before %s", x.cmd.ProcessState.ExitCode(), what), "the screen:\n%s", x.Screen())
			}
		case <-time.After(look):
		}
	}
}

// Types types keys.
func (x *Terminal) Types(keys string) {
	x.t.Helper()
	_, err := x.master.WriteString(keys)
	require.NoError(x.t, err)
}

// Signal sends the program a signal.
func (x *Terminal) Signal(signal os.Signal) {
	x.t.Helper()
	require.NoError(x.t, x.cmd.Process.Signal(signal))
}

// Resize changes the size of the terminal.
func (x *Terminal) Resize(cols, rows uint16) {
	x.t.Helper()
	require.NoError(x.t, pty.Setsize(x.master, &pty.Winsize{Cols: cols, Rows: rows}))
	x.screen.Resize(int(cols), int(rows))
}

// Ends waits for the program's end and checks its exit code.
func (x *Terminal) Ends(code int) {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(patience):
		require.Fail(x.t, "the program does not end", x.Screen())
	}
	assert.Equal(x.t, code, x.cmd.ProcessState.ExitCode(), x.Screen())
}

// Restored checks that the terminal is as it was before the program, which has
// ended and took the whole screen: not raw, cursor on, on its own screen.
func (x *Terminal) Restored() {
	x.t.Helper()
	after, err := term.GetState(int(x.slave.Fd()))
	require.NoError(x.t, err)
	assert.Equal(x.t, x.before, after, "the state of the terminal")
	last := func(on, off string) func() bool {
		return func() bool { raw := x.Raw(); return strings.LastIndex(raw, off) > strings.LastIndex(raw, on) }
	}
	x.await("the alternate screen to be left", last("\x1b[?1049h", "\x1b[?1049l"))
	x.await("the cursor to show", last("\x1b[?25l", "\x1b[?25h"))
	x.await("bracketed paste to be off", last("\x1b[?2004h", "\x1b[?2004l"))
}

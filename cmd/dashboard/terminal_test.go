package dashboard

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// terminal is a pseudo-terminal in which the real program runs, and a screen
// that shows what it writes.
type terminal struct {
	t      *testing.T
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

// startTerminal runs the program with arguments; mode is how TestMain takes it.
func startTerminal(t *testing.T, mode string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Cols: 100, Rows: 30}))
	x := &terminal{t: t, master: master, slave: slave, screen: vt10x.New(vt10x.WithSize(100, 30)), ended: make(chan struct{})}
	x.before, err = term.GetState(int(slave.Fd()))
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	x.cmd = exec.Command(self, args...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.Env = append(os.Environ(), programMode+"="+mode, "TERM=xterm-256color", "CI=", "NO_COLOR=")
	x.cmd.SysProcAttr = session()
	require.NoError(t, x.cmd.Start())
	go func() { _ = x.cmd.Wait(); close(x.ended) }()
	go x.read()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		<-x.ended
		_ = slave.Close()
		_ = master.Close()
	})
	return x
}

func (x *terminal) read() {
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

// sees waits until all texts are on the screen.
func (x *terminal) sees(texts ...string) {
	x.t.Helper()
	require.EventuallyWithT(x.t, func(c *assert.CollectT) {
		for _, text := range texts {
			assert.Contains(c, x.screen.String(), text)
		}
	}, 20*time.Second, 20*time.Millisecond)
}

// misses waits until a text is not on the screen.
func (x *terminal) misses(text string) {
	x.t.Helper()
	require.EventuallyWithT(x.t, func(c *assert.CollectT) { assert.NotContains(c, x.screen.String(), text) }, 20*time.Second, 20*time.Millisecond)
}

func (x *terminal) types(keys string) {
	x.t.Helper()
	_, err := x.master.WriteString(keys)
	require.NoError(x.t, err)
}

func (x *terminal) resize(cols, rows uint16) {
	x.t.Helper()
	require.NoError(x.t, pty.Setsize(x.master, &pty.Winsize{Cols: cols, Rows: rows}))
	x.screen.Resize(int(cols), int(rows))
}

// ends waits for the program's end and checks its exit code, and that the
// terminal is as it was: not raw, cursor on, on its own screen.
func (x *terminal) ends(code int) {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(20 * time.Second):
		require.Fail(x.t, "the program does not end", x.screen.String())
	}
	assert.Equal(x.t, code, x.cmd.ProcessState.ExitCode(), x.screen.String())
	after, err := term.GetState(int(x.slave.Fd()))
	require.NoError(x.t, err)
	assert.Equal(x.t, x.before, after, "the state of the terminal")
	x.mu.Lock()
	assert.NotContains(x.t, x.raw.String(), "\x1b]11;?", "nobody asks the terminal for its colour; see tui/quiet")
	x.mu.Unlock()
	assert.EventuallyWithT(x.t, func(c *assert.CollectT) {
		x.mu.Lock()
		defer x.mu.Unlock()
		raw := x.raw.String()
		assert.Greater(c, strings.LastIndex(raw, "\x1b[?1049l"), strings.LastIndex(raw, "\x1b[?1049h"), "the alternate screen is left")
		assert.Greater(c, strings.LastIndex(raw, "\x1b[?25h"), strings.LastIndex(raw, "\x1b[?25l"), "the cursor shows")
		assert.Greater(c, strings.LastIndex(raw, "\x1b[?2004l"), strings.LastIndex(raw, "\x1b[?2004h"), "bracketed paste is off")
	}, 5*time.Second, 10*time.Millisecond)
}

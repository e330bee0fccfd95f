package proc

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// watchdog reads orders from its input. When the input ends without `release`,
// the one who gave the orders is dead, and the watched groups follow it.
const watchdog = `
watched=
while read -r order pid; do
	case $order in
	watch) watched="$watched $pid" ;;
	forget)
		rest=
		for one in $watched; do [ "$one" = "$pid" ] || rest="$rest $one"; done
		watched=$rest ;;
	release) exit 0 ;;
	esac
done
for one in $watched; do kill -s KILL -- "-$one"; done
`

// Guard ends processes when the command that started them ends without having
// released them: by a crash, or by a signal that cannot be caught. It is a
// small shell at the other end of a pipe, because only another process can
// act then, and because a parent-death signal cannot be taken back once the
// processes are meant to stay. A nil Guard watches nothing.
type Guard struct {
	mu    sync.Mutex
	input io.WriteCloser
	done  chan struct{}
}

// NewGuard starts a guard that watches nothing yet.
func NewGuard() (*Guard, error) {
	command := exec.Command("/bin/sh", "-c", watchdog)
	if err := ownSession(command); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("guard: starting /bin/sh: %w", err)
	}
	g := &Guard{input: input, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		_ = command.Wait()
	}()
	return g, nil
}

// Release lets the watched processes live on and ends the guard. It may be
// called again.
func (g *Guard) Release() error {
	defer g.Close()
	return g.order("release", 0)
}

// Close ends the guard; processes that were not released end with it.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	if g.input != nil {
		_ = g.input.Close()
		g.input = nil
	}
	g.mu.Unlock()
	<-g.done
}

// Forget stops watching a process that is gone, so that its number, when it
// is given to another process, means nothing here.
func (g *Guard) Forget(p Process) error { return g.order("forget", p.PID) }

func (g *Guard) watch(pid int) error { return g.order("watch", pid) }

func (g *Guard) order(word string, pid int) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.input == nil {
		return nil
	}
	if _, err := fmt.Fprintf(g.input, "%s %d\n", word, pid); err != nil {
		return fmt.Errorf("guard: %s %d: %w", word, pid, err)
	}
	return nil
}

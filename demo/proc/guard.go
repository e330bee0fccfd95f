package proc

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// watchdog reads commands from its input. If the input ends without `release`, the
// caller is dead: the watchdog kills the watched process groups and removes the
// folder. It retries, because a killed process may write there for a moment.
const watchdog = `
watched=
folder=
while read -r order subject; do
	case $order in
	watch) watched="$watched $subject" ;;
	forget)
		rest=
		for one in $watched; do [ "$one" = "$subject" ] || rest="$rest $one"; done
		watched=$rest ;;
	remove) folder=$subject ;;
	release) exit 0 ;;
	esac
done
for one in $watched; do kill -s KILL -- "-$one"; done
if [ -n "$folder" ]; then
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rm -rf -- "$folder" && exit 0
		sleep 1
	done
fi
`

// Guard kills processes if the command that started them exits without releasing
// them: by a crash, or by a signal that cannot be caught. It is a small shell at
// the other end of a pipe, because only another process can act then, and because
// a parent-death signal cannot be cancelled when the processes are to stay. A nil
// Guard watches nothing.
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

// Release stops the guard; the watched processes keep running. It may be called
// several times.
func (g *Guard) Release() error {
	defer g.Close()
	return g.order("release", "")
}

// Close stops the guard, which kills the processes that were not released.
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

// Forget stops watching a process that exited, because another process may get
// its PID.
func (g *Guard) Forget(p Process) error { return g.order("forget", p.PID) }

// Remove makes the guard remove a folder after it has killed the processes that
// work there. A guard removes one folder.
func (g *Guard) Remove(folder string) error { return g.order("remove", folder) }

// Watch also kills a process that was started without the guard, unless Forget is
// called before.
func (g *Guard) Watch(pid int) error { return g.watch(pid) }

func (g *Guard) watch(pid int) error { return g.order("watch", pid) }

func (g *Guard) order(word string, subject any) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.input == nil {
		return nil
	}
	if _, err := fmt.Fprintln(g.input, word, subject); err != nil {
		return fmt.Errorf("guard: %s %v: %w", word, subject, err)
	}
	return nil
}

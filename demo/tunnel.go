package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/proc"
)

// relayState is how the agent of the last cluster dials the management plane.
type relayState struct {
	// Hub is where meshctl serve takes agents, and Address where the agent dials: a tunnel between both, which can be cut and slowed.
	Hub     string       `json:"hub"`
	Address string       `json:"address"`
	Tunnel  proc.Process `json:"tunnel,omitzero"`
	// Inside: the agent runs in the network of its cluster, with the proxies, and not on this machine.
	Inside bool `json:"inside,omitempty"`
}

// RelayFault is what is wrong with the way from the agent to the management plane; zero if nothing is.
type RelayFault struct {
	// Cut: no connection gets through.
	Cut bool `json:"cut,omitempty"`
	// Rate is how many bytes pass a second in each direction; 0 for any number.
	Rate int `json:"rate,omitempty"`
}

// faultFile has the RelayFault of a demo.
const faultFile = "relay-fault.json"

// faultInterval is how often the tunnel looks for another fault.
const faultInterval = 200 * time.Millisecond

// BreakRelay changes what is wrong with the way from the agent to the management plane. Changed: it was not so before.
func BreakRelay(opts Options, fault RelayFault) (changed bool, err error) {
	opts, s, err := running(opts)
	if err != nil {
		return false, err
	}
	if s.Relay == nil {
		return false, fmt.Errorf("demo: %w", ErrNoRelay)
	}
	before, err := readFault(opts.Dir)
	if err != nil || before == fault {
		return false, err
	}
	return true, files.WriteState(filepath.Join(opts.Dir, faultFile), fault)
}

// ErrNoRelay is returned where there is nothing between an agent and the management plane that can be broken.
var ErrNoRelay = errors.New("it has no relay that can be broken, as only a demo of --runtime local with --relay has; `meshctl demo down` and `meshctl demo up --relay` start it so")

func readFault(dir string) (f RelayFault, err error) {
	if err = files.ReadState(filepath.Join(dir, faultFile), &f); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	return f, err
}

// Tunnel passes the connections of the agent on to the management plane, as far as the fault of the demo lets it, until ctx ends.
func Tunnel(ctx context.Context, opts Options) error {
	opts, err := opts.complete()
	if err != nil {
		return err
	}
	s, err := existing(opts)
	if err != nil {
		return err
	}
	if s.Relay == nil {
		return fmt.Errorf("demo: %w", ErrNoRelay)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Relay.Address)
	if err != nil {
		return fmt.Errorf("demo: the tunnel of the relay: %w", err)
	}
	t := &tunnel{hub: s.Relay.Hub, limit: rate.NewLimiter(rate.Inf, chunk), open: map[net.Conn]bool{}}
	context.AfterFunc(ctx, func() { _ = listener.Close(); t.close() })
	go t.follow(ctx, opts.Dir)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err == nil {
			go t.pass(ctx, conn)
		}
	}
}

// chunk is how many bytes are passed on at a time.
const chunk = 4096

// tunnel passes connections on.
type tunnel struct {
	hub   string
	limit *rate.Limiter

	mu    sync.Mutex
	fault RelayFault
	open  map[net.Conn]bool
}

// follow obeys the fault of a demo as it changes.
func (t *tunnel) follow(ctx context.Context, dir string) {
	ticker := time.NewTicker(faultInterval)
	defer ticker.Stop()
	for {
		if fault, err := readFault(dir); err == nil {
			t.obey(fault)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (t *tunnel) obey(fault RelayFault) {
	t.mu.Lock()
	changed := t.fault != fault
	t.fault = fault
	t.mu.Unlock()
	if !changed {
		return
	}
	t.limit.SetLimit(rate.Inf)
	if fault.Rate > 0 {
		t.limit.SetLimit(rate.Limit(fault.Rate))
	}
	if fault.Cut {
		t.close()
	}
}

func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn := range t.open {
		_ = conn.Close()
	}
}

// pass passes one connection on.
func (t *tunnel) pass(ctx context.Context, from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", t.hub)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	t.mu.Lock()
	cut := t.fault.Cut
	t.open[from], t.open[to] = true, true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, from)
		delete(t.open, to)
	}()
	if cut {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { t.copy(ctx, to, from) })
	group.Go(func() { t.copy(ctx, from, to) })
	group.Wait()
}

// copy passes bytes on until one side ends, and ends the other.
func (t *tunnel) copy(ctx context.Context, to, from net.Conn) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if waitErr := t.limit.WaitN(ctx, n); waitErr != nil {
				return
			}
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

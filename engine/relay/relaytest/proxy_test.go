package relaytest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is between an agent and the hub, and ends connections at any byte.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	open  map[net.Conn]bool
	limit int
	// blocked: no connection is let through.
	blocked bool
	// swallow: what comes is read and not passed on. slow, if set, is how many bytes pass a second in one direction. idle, if set, is
	// after what time without a byte a connection ends.
	swallow bool
	slow    int
	idle    time.Duration
	// passed counts bytes in both directions, accepted connections, and cuts those that were cut.
	passed, accepted, cuts int
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, target: target, open: map[net.Conn]bool{}, limit: -1}
	t.Cleanup(func() { _ = listener.Close(); p.cut() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(from)
		}
	}()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) serve(from net.Conn) {
	p.mu.Lock()
	blocked := p.blocked
	p.mu.Unlock()
	to, err := net.Dial("tcp", p.target)
	if err != nil || blocked {
		if err == nil {
			_ = to.Close()
		}
		_ = from.Close()
		return
	}
	p.mu.Lock()
	p.open[from], p.open[to] = true, true
	p.accepted++
	p.mu.Unlock()
	var group sync.WaitGroup
	group.Go(func() { p.pass(from, to) })
	group.Go(func() { p.pass(to, from) })
	group.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, from)
	delete(p.open, to)
}

func (p *proxy) pass(from, to net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 4096)
	for {
		p.mu.Lock()
		idle := p.idle
		p.mu.Unlock()
		if idle > 0 {
			_ = from.SetReadDeadline(time.Now().Add(idle))
		}
		n, err := from.Read(buf)
		p.mu.Lock()
		swallow, slow := p.swallow, p.slow
		p.mu.Unlock()
		if swallow && err == nil {
			continue
		}
		if slow > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(slow))
		}
		n = p.allow(n)
		if _, writeErr := to.Write(buf[:max(n, 0)]); writeErr != nil || err != nil || n < 0 {
			return
		}
	}
}

// allow is how many of n bytes may pass; -1 once none may.
func (p *proxy) allow(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += n
	if p.limit < 0 {
		return n
	}
	if n < p.limit {
		p.limit -= n
		return n
	}
	n, p.limit = p.limit, -1
	p.close()
	return n
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

func (p *proxy) close() {
	p.cuts += len(p.open) / 2
	for conn := range p.open {
		_ = conn.Close()
	}
}

// block lets no connection through; or any again.
func (p *proxy) block(blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = blocked
	if blocked {
		p.close()
	}
}

// cutAfter ends all connections once after a number of bytes.
func (p *proxy) cutAfter(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = bytes
}

// set changes how connections are passed on.
func (p *proxy) set(f func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// connections is how many were accepted.
func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// ended is how many connections were cut.
func (p *proxy) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// whole ends no connection any more.
func (p *proxy) whole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = -1
}

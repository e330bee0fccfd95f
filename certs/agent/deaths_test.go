package agent

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// plan says when processes die: the nth process of a part, at which of its writes (negative: never), and whether the write
// is still made and only its answer is lost.
type plan func(part string, nth int) (write int, late bool)

// lives is a plan in which nobody dies.
func lives(string, int) (int, bool) { return -1, false }

// dies is a plan in which the first process of a part dies at a write, and nobody else.
func dies(part string, write int, late bool) plan {
	return func(p string, nth int) (int, bool) {
		if p == part && nth == 0 {
			return write, late
		}
		return -1, false
	}
}

// always is a plan in which each process of the parts that begin with a prefix dies after so many writes that succeed, one
// right before the next write, and the one after it right after that. With 0, each write is died at before and after it.
func always(prefix string, writes int) plan {
	return func(part string, nth int) (int, bool) {
		if !strings.HasPrefix(part, prefix) {
			return -1, false
		}
		return writes, nth%2 == 1
	}
}

// process is a part of the story that may die at a write. None of its later requests is sent.
type process struct {
	part string
	late bool
	// wrote is called after each write that was made; it may be nil.
	wrote func(write string)

	mu sync.Mutex
	// left is how many writes it makes before it dies; negative if it does not.
	left   int
	writes []string
	fatal  string
}

func (p *process) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &mortal{base, p} })
	return config
}

func (p *process) dead() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fatal
}

func (p *process) written() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.writes)
}

type mortal struct {
	base http.RoundTripper
	p    *process
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	p, write := m.p, r.Method+" "+r.URL.Path
	if r.Method == http.MethodGet {
		if p.dead() != "" {
			return nil, errKilled
		}
		return m.base.RoundTrip(r)
	}
	// One write after the other: after the one at which it dies there is none.
	p.mu.Lock()
	defer p.mu.Unlock()
	dying := p.fatal == "" && p.left == 0
	if p.fatal != "" || dying && !p.late {
		if dying {
			p.fatal = fmt.Sprintf("%s before %s", p.part, write)
		}
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errKilled
	}
	p.left--
	response, err := m.base.RoundTrip(r)
	if err != nil {
		return response, err
	}
	p.writes = append(p.writes, write)
	if p.wrote != nil {
		p.wrote(write)
	}
	if dying {
		p.fatal = fmt.Sprintf("%s after %s", p.part, write)
		_ = response.Body.Close()
		return nil, errKilled
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (m *mortal) WrappedRoundTripper() http.RoundTripper { return m.base }

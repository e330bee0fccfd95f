package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/meshctl/meshctl/engine/traffic"
)

// Bounds of one sender.
const (
	// maxConnections is how many connections one address may have: a proxy has one for each of its threads, or more if it has many logs.
	maxConnections = 128
	// maxNumbers is how many streams of numbers one pod may have: that of its proxy, and the one that is being replaced.
	maxNumbers = 2
	// maxLogs is how many streams of logs one pod may have: its proxy has one for each of its threads and kinds of log.
	maxLogs = 64
	// opensEvery is the time between two connections or streams, of which maxOpens may come at once.
	opensEvery = time.Second
	maxOpens   = 256
	// bytesPerSecond are those of messages, and maxBytes may come at once. A message counts as minBytes at least.
	bytesPerSecond = 4 << 20
	maxBytes       = 2 * maxMessage
	minBytes       = 4 << 10
	// maxSenders is from how many senders on those are forgotten that have nothing open.
	maxSenders = 2 * maxProxies
)

// kind is what a stream is of.
type kind string

// The kinds.
const (
	ofNumbers kind = "numbers"
	ofLogs    kind = "access logs"
)

// sender is what is known of one address: what it has open, and how much it may send. A pod has one address.
type sender struct {
	connections int
	streams     map[kind]int
	opens       *rate.Limiter
	bytes       *rate.Limiter
	// unended are the bytes of messages that have begun and not ended, on all its connections.
	unended atomic.Int64

	mu sync.Mutex // guards what follows
	// last is the stream of numbers that began last; nil before the first.
	last *numbers
}

// sender is that of an address, under the lock.
func (p *Push) sender(at netip.Addr) *sender {
	of := p.senders[at]
	if of == nil {
		if len(p.senders) >= maxSenders {
			p.tidy()
		}
		of = &sender{streams: map[kind]int{}, opens: rate.NewLimiter(rate.Every(opensEvery), maxOpens), bytes: rate.NewLimiter(bytesPerSecond, maxBytes)}
		p.senders[at] = of
	}
	return of
}

// tidy forgets senders that have nothing open, under the lock. One that has just sent much is kept.
func (p *Push) tidy() {
	for at, of := range p.senders {
		if of.connections == 0 && of.opens.Tokens() >= maxOpens-1 {
			delete(p.senders, at)
		}
	}
}

// enter notes another stream of an address.
func (p *Push) enter(at netip.Addr, of kind) (*sender, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, most := p.sender(at), maxNumbers
	if of == ofLogs {
		most = maxLogs
	}
	switch {
	case !from.opens.Allow():
		return nil, fmt.Errorf("%s: it begins streams too often", at)
	case from.streams[of] >= most:
		return nil, fmt.Errorf("%s: it has %d streams of %s already", at, most, of)
	}
	from.streams[of]++
	return from, nil
}

func (p *Push) leave(from *sender, of kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from.streams[of]--
}

// may says whether a message of so many bytes is taken. What is not is read all the same: a proxy keeps what is not read in its memory.
func (s *sender) may(size int) bool { return s.bytes.AllowN(time.Now(), max(size, minBytes)) }

// begin is the stream of numbers of a pod from now on. What an older one has said counts before, and nothing that it says later: it may be of a
// process that has ended, and its numbers would be taken for more of those of this one.
func (s *sender) begin(local *Local, pod *traffic.LocalPod, pause time.Duration, counts bool) *numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := &numbers{local: local, pod: pod.Proxy, pause: pause, book: traffic.NewPushed(pod.Stats, counts), ended: make(chan struct{})}
	if s.last != nil {
		passed := s.last.end()
		if s.last.pod == pod.Proxy {
			now.passed = passed
		}
	}
	s.last = now
	return now
}

// limited closes connections beyond what one address may have, before anything is read or decrypted.
type limited struct {
	net.Listener
	push *Push
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from := l.push.connect(conn.RemoteAddr()); from != nil {
			return &counted{Conn: conn, from: from, close: sync.OnceFunc(func() { l.push.disconnect(from) })}, nil
		}
		_ = conn.Close()
	}
}

// connect notes another connection; nil if it is one too many.
func (p *Push) connect(from net.Addr) *sender {
	at, ok := addressOf(from)
	if !ok {
		p.local.refuse(errors.New("a connection that is none of IP"))
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.sender(at)
	if of.connections >= maxConnections || !of.opens.Allow() {
		p.local.refuse(fmt.Errorf("%s: it has too many connections, or begins them too often", at))
		return nil
	}
	of.connections++
	return of
}

func (p *Push) disconnect(from *sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from.connections--
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	from  *sender
	close func()
	// header is that of the current record of TLS, of which headed bytes came; left is what is left of the record.
	header       [recordHeader]byte
	headed, left int
}

// recordHeader is how many bytes are before each record of TLS: its type, its version, and its length in two bytes (RFC 8446, section 5.1).
const recordHeader = 5

// Read implements net.Conn. It ends where a record does: what TLS has of the next one makes its buffer grow to two of the largest records, and it
// never shrinks.
func (c *counted) Read(into []byte) (int, error) {
	most := c.left
	if c.headed < recordHeader {
		most = recordHeader - c.headed
	}
	n, err := c.Conn.Read(into[:min(len(into), most)])
	if c.headed < recordHeader {
		c.headed += copy(c.header[c.headed:], into[:n])
		c.left = int(binary.BigEndian.Uint16(c.header[3:]))
	} else {
		c.left -= n
	}
	if c.headed == recordHeader && c.left == 0 {
		c.headed = 0
	}
	return n, err
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.close()
	return c.Conn.Close()
}

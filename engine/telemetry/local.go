package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// maxQueued bounds the targets of all readings that wait to be sent.
const maxQueued = 50_000

// Sent is what an agent says of one proxy of its cluster.
type Sent struct {
	Proxy traffic.Proxy
	// Age is how long ago the proxy was read.
	Age time.Duration
	// Parts are what it said; nil if nothing.
	Parts *traffic.Parts
	// Reason says why there is nothing, and Detail what else is known of that, for people.
	Reason traffic.Reason
	Detail string
}

// LocalOptions configure a Local. All but Mesh are required.
type LocalOptions struct {
	// Cluster is the cluster as it is known now.
	Cluster func() *snapshot.Cluster
	// Dialects say which containers are proxies that count.
	Dialects []*snapshot.Dialect
	// Mesh is the certificate of this process in the mesh, by which proxies know it, with the roots of theirs as ClientCAs. It is asked for
	// where a proxy can be read by mutual TLS. Nil if it has none: all are read without, then.
	Mesh func(ctx context.Context) (*tls.Config, error)

	// every is the time between two readings of a proxy; the default if zero. get replaces what asks pods, in tests.
	every time.Duration
	get   func(ctx context.Context, address netip.AddrPort, secure *tls.Config, path string, limit int64) ([]byte, error)
}

// Local reads the proxies of the cluster that it runs in, while somebody wants it, at the addresses of their pods. Each reading waits to be
// sent until there is another one of the same proxy. Of a proxy that is not sent, only the last reading is kept.
type Local struct {
	// Logs are what proxies log, which comes in with traffic.Push.
	Logs *Logs

	options LocalOptions
	signal  chan struct{}
	wake    chan struct{}

	mu sync.Mutex // guards what follows
	// wanted is how readings are wanted: traffic.Agent, traffic.Push or traffic.Off.
	wanted traffic.Door
	// before is how they were wanted last.
	before traffic.Door
	// changed is closed when that changes.
	changed chan struct{}
	// since is since when that is so, and heard when a proxy sent something by itself last.
	since time.Time
	heard map[traffic.Proxy]time.Time
	// waiting are what was not sent yet, in the order of queue, and size is of how many targets they are.
	waiting map[traffic.Proxy]*kept
	queue   []traffic.Proxy
	size    int
	dropped uint64
	// refused is how many connections and streams of proxies were refused, and refusal why the last one was.
	refused uint64
	refusal string
	// counts are the proxies that have said that they count.
	counts map[traffic.Proxy]bool
}

// kept is what waits to be sent.
type kept struct {
	Sent
	at   time.Time
	size int
}

// NewLocal prepares a Local. It does no I/O.
func NewLocal(o LocalOptions) *Local {
	o.every = cmp.Or(o.every, traffic.Point)
	if o.get == nil {
		o.get = kube.GetFromAddress
	}
	signal := make(chan struct{}, 1)
	return &Local{
		Logs:    newLogs(o.Cluster, signal),
		options: o, signal: signal, wake: make(chan struct{}, 1), waiting: map[traffic.Proxy]*kept{}, counts: map[traffic.Proxy]bool{},
		wanted: traffic.Off, changed: make(chan struct{}), heard: map[traffic.Proxy]time.Time{},
	}
}

// Signal is signalled when Next may return something.
func (l *Local) Signal() <-chan struct{} { return l.signal }

// Want says how readings are wanted: traffic.Agent has them made here, traffic.Push has the proxies send them. None are made otherwise.
func (l *Local) Want(door traffic.Door) {
	if door != traffic.Agent && door != traffic.Push {
		door = traffic.Off
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted == door {
		return
	}
	l.wanted, l.since = door, time.Now()
	close(l.changed)
	l.changed = make(chan struct{})
	if door == traffic.Off {
		return
	}
	if l.before != door { // what came in otherwise is not to be mistaken for this
		l.waiting, l.queue, l.size = map[traffic.Proxy]*kept{}, nil, 0
	}
	l.before = door
	poke(l.wake)
}

// Lost is what was not taken or sent.
func (l *Local) Lost() Lost {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Lost{Dropped: l.dropped, Refused: l.refused, Refusal: l.refusal}
}

// refuse notes a connection or stream of a proxy that is refused.
func (l *Local) refuse(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	l.refusal = clip(snapshot.Clean(why.Error()))
}

// Dropped is how many readings were not sent, as another one of the same proxy came before, or there were too many.
func (l *Local) Dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Next is what is to be sent next; false if there is nothing. It does not wait.
func (l *Local) Next() (*Sent, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil, false
	}
	k := l.waiting[l.queue[0]]
	delete(l.waiting, l.queue[0])
	l.queue = l.queue[1:]
	l.size -= k.size
	k.Age = max(time.Since(k.at), 0)
	return &k.Sent, true
}

// Run reads proxies until ctx ends.
func (l *Local) Run(ctx context.Context) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		if door := l.door(); door != traffic.Off {
			// While the cluster cannot be read, the address of a pod may have become that of another one.
			if c := l.options.Cluster(); c != nil && !c.Frozen() {
				if door == traffic.Push {
					l.awaits(began, c)
				} else {
					l.round(ctx, c)
				}
			}
			tick.Reset(max(l.options.every-time.Since(began), time.Second))
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			tick.Reset(0)
		}
	}
}

// Wanted is how readings are wanted now, and is closed when that changes.
func (l *Local) Wanted() (door traffic.Door, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted, l.changed
}

func (l *Local) door() traffic.Door {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted
}

// round reads each proxy once.
func (l *Local) round(ctx context.Context, c *snapshot.Cluster) {
	pods := traffic.LocalPods(c, l.options.Dialects)
	l.forget(pods)
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	defer group.Wait()
	for i := range pods {
		pod := &pods[i]
		switch {
		case i >= maxProxies:
			l.put(&kept{Sent: Sent{Proxy: pod.Proxy, Reason: traffic.TooMany, Detail: fmt.Sprintf("%d of %d are read", maxProxies, len(pods))}})
			continue
		case pod.Why != "":
			l.put(&kept{Sent: Sent{Proxy: pod.Proxy, Reason: traffic.Failed, Detail: clip(fmt.Sprintf("pod %s/%s: %s", pod.Proxy.Namespace, pod.Proxy.Pod, pod.Why))}})
			continue
		}
		group.Go(func() {
			if !sleep(ctx, offset(pod.Proxy, l.options.every)) {
				return
			}
			places <- struct{}{}
			defer func() { <-places }()
			l.proxy(ctx, pod)
		})
	}
}

// forget drops what is known of pods that are gone.
func (l *Local) forget(pods []traffic.LocalPod) {
	there := map[traffic.Proxy]bool{}
	for i := range pods {
		there[pods[i].Proxy] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.counts {
		if !there[p] {
			delete(l.counts, p)
		}
	}
	for p := range l.heard {
		if !there[p] {
			delete(l.heard, p)
		}
	}
}

// proxy reads one proxy. Whatever answers at the address of a pod is that pod, and where the pod has a port for mutual TLS, it has to prove it.
func (l *Local) proxy(ctx context.Context, pod *traffic.LocalPod) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	reading, at, err := l.read(ctx, pod)
	out := &kept{Sent: Sent{Proxy: pod.Proxy}, at: at}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return
	case err != nil:
		out.Reason, out.Detail = traffic.ReasonOf(err), clip(fmt.Sprintf("pod %s/%s: %s", pod.Proxy.Namespace, pod.Proxy.Pod, kube.Text(err)))
	default:
		out.Parts, out.size = reading.Parts(at), reading.Size()
	}
	l.put(out)
}

// read reads one proxy, and says when it answered. The error says what may be in the way.
func (l *Local) read(ctx context.Context, pod *traffic.LocalPod) (*traffic.Reading, time.Time, error) {
	port, err := l.portOf(ctx, pod)
	if err != nil {
		return nil, time.Now(), err
	}
	l.mu.Lock()
	counts := l.counts[pod.Proxy]
	l.mu.Unlock()
	reading, at, err := readPages(pod.Stats, counts, func(path string) ([]byte, error) {
		return l.options.get(ctx, netip.AddrPortFrom(pod.Address, port.number), port.secure, path, maxPage)
	})
	if err != nil {
		return nil, at, port.explain(ctx, err)
	}
	return reading, at, nil
}

// put has something wait to be sent, in the place of what was said of the same proxy before.
func (l *Local) put(k *kept) {
	if k.at.IsZero() {
		k.at = time.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.Parts != nil && k.Parts.Counts {
		l.counts[k.Proxy] = true
	}
	before := l.waiting[k.Proxy]
	if before != nil {
		l.dropped++
		l.size -= before.size
		delete(l.waiting, k.Proxy)
	}
	if l.size+k.size > maxQueued || before == nil && len(l.queue) >= 2*maxProxies {
		l.dropped++
		l.queue = slices.DeleteFunc(l.queue, func(p traffic.Proxy) bool { return p == k.Proxy })
		return
	}
	l.waiting[k.Proxy] = k
	l.size += k.size
	if before == nil {
		l.queue = append(l.queue, k.Proxy)
	}
	poke(l.signal)
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package telemetry

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/meshctl/meshctl/engine/accesslog"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// logFrame is how many entries are sent at once: fewer bytes than gRPC takes, however large they are.
const logFrame = 16

// LogRecord is an AccessLogRecord as an agent is told of it.
type LogRecord struct {
	// Name is NAME.NAMESPACE, and NAME.NAMESPACE.CLUSTER for one of a registered cluster.
	Name string
	Spec *observabilityv1.AccessLogRecordSpec
}

// SentLogs is what an agent says of the log of one proxy.
type SentLogs struct {
	Proxy traffic.Proxy
	// Open: the proxy sends its log now.
	Open bool
	// Entries are requests that a record wants, the oldest first.
	Entries []*accesslog.Entry
	// Dropped is how many entries were dropped since the agent started.
	Dropped uint64
}

// Logs are the access logs of the cluster that an agent runs in: of what proxies send, it keeps what AccessLogRecords want, in memory,
// until that is sent on. Nothing is kept while no record wants it.
type Logs struct {
	cluster func() *snapshot.Cluster
	signal  chan<- struct{}

	mu      sync.Mutex // guards what follows
	told    []LogRecord
	records []*accesslog.Record
	// streams are how many each pod has, and changed the pods of which that is to be said.
	streams map[traffic.Proxy]int
	changed map[traffic.Proxy]bool
	// ring has the entries, by keyOf their proxy.
	ring *accesslog.Ring
	// unread are messages that were not read, each with an entry at least.
	unread uint64
}

func newLogs(cluster func() *snapshot.Cluster, signal chan<- struct{}) *Logs {
	return &Logs{
		cluster: cluster, signal: signal, streams: map[traffic.Proxy]int{}, changed: map[traffic.Proxy]bool{},
		ring: accesslog.NewRing(accesslog.PerKey, accesslog.MaxBytes),
	}
}

// Begin has all be said again that somebody new has to know.
func (l *Logs) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for proxy := range l.streams {
		l.changed[proxy] = true
	}
	poke(l.signal)
}

// Want says what is kept. A record that cannot be used is left out: who tells of it has checked it.
func (l *Logs) Want(records []LogRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(records) > accesslog.MaxRecords {
		records = records[:accesslog.MaxRecords]
	}
	same := slices.EqualFunc(l.told, records, func(a, b LogRecord) bool { return reflect.DeepEqual(a, b) })
	if same {
		return
	}
	l.told, l.records = records, nil
	for _, told := range records {
		if r, err := accesslog.NewRecord(told.Name, told.Spec); err == nil {
			l.records = append(l.records, r)
		}
	}
	if len(l.records) == 0 { // what nobody wants any more is not kept
		l.ring.Forget(func(string) bool { return false })
	}
}

// Next is what is to be sent next; false if there is nothing. It does not wait.
func (l *Logs) Next() (*SentLogs, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for proxy := range l.changed {
		delete(l.changed, proxy)
		return &SentLogs{Proxy: proxy, Open: l.streams[proxy] > 0, Dropped: l.dropped()}, true
	}
	key, entries := l.ring.Take(logFrame)
	if len(entries) == 0 {
		return nil, false
	}
	proxy := proxyAt(key)
	return &SentLogs{Proxy: proxy, Open: l.streams[proxy] > 0, Entries: entries, Dropped: l.dropped()}, true
}

// enter notes another stream of a pod.
func (l *Logs) enter(proxy traffic.Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[proxy]++; l.streams[proxy] == 1 {
		l.changed[proxy] = true
		poke(l.signal)
	}
}

func (l *Logs) leave(proxy traffic.Proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[proxy]--; l.streams[proxy] <= 0 {
		delete(l.streams, proxy)
		l.changed[proxy] = true
		poke(l.signal)
	}
}

// take keeps the requests of a pod that a record wants.
func (l *Logs) take(pod *traffic.LocalPod, labels map[string]string, requests []accesslog.HTTP) {
	l.mu.Lock()
	records := l.records
	l.mu.Unlock()
	records = slices.DeleteFunc(slices.Clone(records), func(r *accesslog.Record) bool { return !r.Selects(pod.Proxy.Namespace, labels) })
	if len(records) == 0 {
		return
	}
	var entries []*accesslog.Entry
	for i := range requests {
		if names, wanted := accesslog.Select(records, &requests[i]); wanted {
			entries = append(entries, &accesslog.Entry{Pod: pod.Proxy.Pod, Records: names, HTTP: requests[i]})
		}
	}
	if len(entries) == 0 {
		return
	}
	key := keyOf(pod.Proxy)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.ring.Add(key, e)
	}
	poke(l.signal)
}

// lost notes a message that was not read.
func (l *Logs) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread++
}

// dropped is how many entries were dropped, under the lock.
func (l *Logs) dropped() uint64 { return l.ring.Dropped() + l.unread }

// keyOf is a proxy of this cluster as a text, and proxyAt the one of a text.
func keyOf(p traffic.Proxy) string { return fmt.Sprintf("%s/%s/%d", p.Namespace, p.Pod, p.Created) }

func proxyAt(key string) (p traffic.Proxy) {
	parts := strings.SplitN(key, "/", 3) // names have no slash
	if len(parts) == 3 {
		p.Namespace, p.Pod = parts[0], parts[1]
		p.Created, _ = strconv.ParseInt(parts[2], 10, 64)
	}
	return p
}

// labelsOf are the labels of a pod of this cluster.
func (l *Logs) labelsOf(proxy traffic.Proxy) map[string]string {
	c := l.cluster()
	if c == nil {
		return nil
	}
	for _, pod := range c.Pods {
		if pod.Namespace == proxy.Namespace && pod.Name == proxy.Pod {
			return pod.Labels
		}
	}
	return nil
}

// logs takes the log of one proxy until the stream ends. It always reads.
func (p *Push) logs(in grpc.ServerStream, from *sender, pod *traffic.LocalPod) error {
	logs, labels := p.local.Logs, map[string]string(nil)
	for entered := false; ; {
		var text []byte
		if err := in.RecvMsg(&text); err != nil {
			return err
		}
		if !from.may(len(text)) {
			logs.lost()
			continue
		}
		message, err := accesslog.Read(text)
		if err != nil {
			return fmt.Errorf("access log: %w", err)
		}
		if !entered {
			if err := itself(pod, message.Node); err != nil {
				return p.refuse(ofLogs, codes.PermissionDenied, err)
			}
			logs.enter(pod.Proxy)
			defer logs.leave(pod.Proxy)
			entered, labels = true, logs.labelsOf(pod.Proxy)
		}
		logs.take(pod, labels, message.HTTP)
	}
}

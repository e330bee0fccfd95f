package telemetry

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// LogsPath is that of the page with access logs, beside the metrics.
const LogsPath = "/accesslogs"

// Bounds of what agents say of access logs, as each is believed of its own cluster only.
const (
	// maxLogRate is how many entries of a cluster are taken each second.
	maxLogRate = 1000
	// maxTenantRate is how many of these are of one namespace that only records of the cluster itself want, and maxTenantsRate those of all
	// its namespaces: who logs everything takes no place from what the management cluster wants, nor all from others.
	maxTenantRate, maxTenantsRate = 100, maxLogRate / 2
	// lingers is how long a proxy whose stream has ended counts as one that logs: it connects again with its next request.
	lingers = 10 * time.Minute
	// learns is how long nothing is said of proxies that do not log since this process leads: their agents have to come in first.
	learns = time.Minute
)

// logbook are the access logs since this process leads.
type logbook struct {
	since time.Time
	// tell sets the Workloads that log in the Input; nil if nobody wants to know.
	tell func(*snapshot.Logging)

	mu   sync.Mutex // guards what follows
	ring *accesslog.Ring
	// seen is what is known of the streams of proxies, and agents what of the agents.
	seen   map[traffic.Proxy]seenLog
	agents map[string]*fromLogs
	// hub are the names of the AccessLogRecords of the management cluster in a translation.
	hub map[string]bool
	of  *snapshot.State
}

// seenLog is a proxy whose stream was seen; it ended at a time, if it is not open.
type seenLog struct {
	open  bool
	ended time.Time
}

// fromLogs is what is known of the logs of one agent.
type fromLogs struct {
	fromAgent
	// second is the one in which taken entries were taken.
	second time.Time
	taken  int
	// tenants are how many of these only records of the cluster itself want, and ofNamespace those of each namespace, with what was rejected.
	tenants     int
	ofNamespace map[string]int
}

// next counts an entry that is sent in a second, and reports whether it is taken.
func (a *fromLogs) next(now time.Time, namespace string, tenant bool) bool {
	if second := now.Truncate(time.Second); a.second != second {
		a.second, a.taken, a.tenants, a.ofNamespace = second, 0, 0, map[string]int{}
	}
	if tenant {
		if a.ofNamespace[namespace]++; a.ofNamespace[namespace] > maxTenantRate || a.tenants == maxTenantsRate || a.taken == maxLogRate {
			return false
		}
		a.tenants++
	}
	a.taken++
	return a.taken <= maxLogRate
}

func newLogbook(since time.Time, tell func(*snapshot.Logging)) *logbook {
	return &logbook{
		since: since, tell: tell, ring: accesslog.NewRing(accesslog.PerKey, accesslog.MaxBytes),
		seen: map[traffic.Proxy]seenLog{}, agents: map[string]*fromLogs{},
	}
}

// Records are the AccessLogRecords of which the agent of a cluster has to know; none where it takes no logs.
func (t *Telemetry) Records(cluster string) []LogRecord {
	now := t.current.Load()
	if now == nil || t.Wanted(cluster) != traffic.Push {
		return nil
	}
	return now.logs.recordsOf(time.Now(), cluster, now.State())
}

// TakeLogs takes what the agent of a cluster says of the log of one proxy. Whatever it says, it is about a pod of its own cluster.
func (t *Telemetry) TakeLogs(cluster, incarnation string, s *SentLogs) {
	now := t.current.Load()
	if now == nil {
		return
	}
	s.Proxy.Cluster = cluster
	now.mu.Lock()
	pod, who := now.pods[s.Proxy], known{names: now.names, peers: now.peers}
	now.mu.Unlock()
	who.hub = now.logs.recordsOfHub(now.State())
	now.logs.take(time.Now(), incarnation, s, pod, who)
}

// podsNow are the pods of the last round. A round makes another map of them.
func (t *term) podsNow() map[traffic.Proxy]*traffic.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pods
}

// plansOf are the verdicts on the AccessLogRecords of a translation, which may be nil.
func plansOf(state *snapshot.State) []*snapshot.AccessLogPlan {
	if state == nil {
		return nil
	}
	return state.AccessLogs
}

// recordsOf are the records of which the agent of a cluster has to know: not those whose time is over.
func (b *logbook) recordsOf(now time.Time, cluster string, state *snapshot.State) (out []LogRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range plansOf(state) {
		if snapshot.LogEnded(p.Record, now) {
			continue
		}
		if spec := accesslog.ForCluster(p, cluster); spec != nil {
			out = append(out, LogRecord{Name: p.Ref.Identity(), Spec: spec})
		}
	}
	return out
}

// lost calls a function with how many logged requests of each cluster were dropped by its agent, and not taken here.
func (b *logbook) lost(each func(cluster string, dropped, rejected uint64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for cluster, a := range b.agents {
		each(cluster, a.lost, a.rejected)
	}
}

// take takes what is said of the proxy of a pod, which is nil if it is not known.
func (b *logbook) take(now time.Time, incarnation string, s *SentLogs, pod *traffic.Pod, who known) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.agents[s.Proxy.Cluster]
	if a == nil {
		a = &fromLogs{}
		b.agents[s.Proxy.Cluster] = a
	}
	if a.incarnation != incarnation || s.Dropped < a.said.Dropped {
		a.said.Dropped = 0
	}
	a.lost += s.Dropped - a.said.Dropped
	a.incarnation, a.said.Dropped = incarnation, s.Dropped
	if pod == nil || pod.Door != traffic.Push {
		a.rejected += uint64(len(s.Entries))
		return
	}
	switch before, was := b.seen[s.Proxy]; {
	case s.Open:
		b.seen[s.Proxy] = seenLog{open: true}
	case was && before.open:
		b.seen[s.Proxy] = seenLog{ended: now}
	}
	for _, e := range s.Entries {
		if !a.next(now, s.Proxy.Namespace, who.isTenants(e)) {
			a.rejected++
			continue
		}
		b.ring.Add(place(e, s.Proxy, pod, who), e)
	}
}

// place says in an entry of a pod whose it is and who called whom, and is the key of its workload. All else in the entry is what the agent
// says: it is cleaned and redacted again, and what it says of other places is left out.
func place(e *accesslog.Entry, proxy traffic.Proxy, pod *traffic.Pod, who known) string {
	e.HTTP.Redact()
	for i, name := range e.Records {
		e.Records[i] = clip(snapshot.Clean(name))
	}
	e.Records = e.Records[:min(len(e.Records), accesslog.MaxRecords)]
	k := pod.Workload.Spec.Kubernetes // pods that are read are of Kubernetes
	e.WorkloadRef = commonv1.ClusterObjectRef{Name: k.Controller.Name, Namespace: k.Controller.Namespace, ClusterName: k.Controller.ClusterName}
	e.Pod, e.From, e.To = proxy.Pod, "", ""
	self := fullName(k.Controller)
	target, side := pod.Stats.Cluster(e.HTTP.Common.UpstreamCluster)
	switch side {
	case snapshot.Serves:
		e.From, e.To = identity(e.HTTP.Common.PeerIdentity), self
	case snapshot.Calls:
		e.From, e.To = self, who.called(pod.Workload, target)
	case snapshot.NotCounted:
	}
	return self
}

func fullName(ref commonv1.ClusterObjectRef) string {
	return ref.Name + "." + ref.Namespace + "." + ref.ClusterName
}

// identity names the ServiceAccount of a caller, as NAME.NAMESPACE; empty if it has none. Which cluster it is of, it does not say.
func identity(uri string) string {
	parts := strings.Split(uri, "/")
	if len(parts) < 4 || parts[len(parts)-4] != "ns" || parts[len(parts)-2] != "sa" {
		return ""
	}
	return parts[len(parts)-1] + "." + parts[len(parts)-3]
}

// recordsOfHub are the names of the AccessLogRecords of the management cluster in a translation.
func (b *logbook) recordsOfHub(state *snapshot.State) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of != state || b.hub == nil {
		b.of, b.hub = state, map[string]bool{}
		for _, p := range plansOf(state) {
			if p.Ref.Cluster == "" {
				b.hub[p.Ref.Identity()] = true
			}
		}
	}
	return b.hub
}

// known is what the hosts that workloads call stand for, and what that is called; and which records are of the management cluster.
type known struct {
	names *traffic.Names
	peers traffic.Peers
	hub   map[string]bool
}

// isTenants reports whether only records of the cluster itself want an entry, as its agent says. One that no record wants is nobody's.
func (k known) isTenants(e *accesslog.Entry) bool {
	return !slices.ContainsFunc(e.Records, func(name string) bool { return k.hub[name] })
}

// called names what was called: the destination, or the host if it is none.
func (k known) called(workload *discoveryv1.Workload, target snapshot.ProxyTarget) string {
	if k.names == nil {
		return ""
	}
	key := k.names.Key(workload, traffic.Target{ProxyTarget: target})
	if key.To == (snapshot.Ref{}) {
		return clip(snapshot.Clean(target.Host))
	}
	to := k.peers.Of(key.To)
	return strings.Join(slices.DeleteFunc([]string{to.Name, to.Namespace, to.Cluster}, func(s string) bool { return s == "" }), ".")
}

// logging are the Workloads that log, under the lock. What is not there any more is forgotten.
func (b *logbook) logging(now time.Time, pods map[traffic.Proxy]*traffic.Pod) *snapshot.Logging {
	out := &snapshot.Logging{}
	for proxy, seen := range b.seen {
		pod := pods[proxy]
		if pod == nil || !seen.open && now.Sub(seen.ended) > lingers {
			delete(b.seen, proxy)
			continue
		}
		out.Workloads = append(out.Workloads, snapshot.RefOf(snapshot.Workload, pod.Workload))
	}
	slices.SortFunc(out.Workloads, snapshot.Ref.Compare)
	out.Workloads = slices.Compact(out.Workloads)
	return out
}

// report says what it knows of proxies, once it knows enough.
func (b *logbook) report(now time.Time, pods map[traffic.Proxy]*traffic.Pod, leads time.Duration) {
	if b.tell == nil || now.Sub(b.since) < leads {
		return
	}
	b.mu.Lock()
	logging := b.logging(now, pods)
	b.mu.Unlock()
	b.tell(logging)
}

// answer answers a query.
func (b *logbook) answer(q *accesslog.Query, state *snapshot.State) *accesslog.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := &accesslog.Report{Since: b.since.UTC(), Clusters: []accesslog.ClusterReport{}}
	out.Records, out.MoreRecords = accesslog.ReportsOf(plansOf(state))
	b.ring.Answer(q, out)
	for name, a := range b.agents {
		c := accesslog.ClusterReport{Cluster: name, Dropped: a.lost, Rejected: a.rejected}
		for proxy, seen := range b.seen {
			if proxy.Cluster == name && seen.open {
				c.Proxies++
			}
		}
		out.Clusters = append(out.Clusters, c)
	}
	slices.SortFunc(out.Clusters, func(a, b accesslog.ClusterReport) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// LogsPage answers with the access logs of a Telemetry, as JSON. Parameters are those of accesslog.ParseQuery.
//
// It answers only what comes from this host: who may forward a port to the pod of serve may read what is forwarded, which is a right
// that the API server checks. The metrics beside it are for whoever reaches them, and a log of requests must not be.
type LogsPage struct{ Of *Telemetry }

// ServeHTTP implements http.Handler.
func (p LogsPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isHere(r.RemoteAddr) {
		refuse(w, http.StatusForbidden, "access logs are shown only to who may forward a port to meshctl serve; run: meshctl accesslogs")
		return
	}
	query, err := accesslog.ParseQuery(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	now := p.Of.current.Load()
	if now == nil {
		refuse(w, http.StatusServiceUnavailable, "this instance of meshctl serve does not lead, and has no access logs; ask the one that does")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(now.logs.answer(&query, now.State())) // an error means that the client is gone
}

// isHere reports whether a request was sent from this host, as what a port is forwarded for is. A sidecar of Istio passes on what
// comes from elsewhere from 127.0.0.6 (InboundPassthroughBindIpv4 in istio.io/istio/pilot/pkg/networking/util), so one address counts.
func isHere(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	address := from.Addr().Unmap()
	return address == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || address == netip.IPv6Loopback()
}

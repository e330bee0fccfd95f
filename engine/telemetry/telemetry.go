package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Path is that of the page with a report, beside the metrics.
const Path = "/traffic"

// MinWindow is the shortest window of a report: a shorter one may have no reading of a proxy in it.
const MinWindow = 30 * time.Second

// Telemetry has what the proxies count, while this process leads. The zero value is ready.
type Telemetry struct{ current atomic.Pointer[term] }

// Options are what a Telemetry works with while this process leads.
type Options struct {
	// State is the latest translation; nil before the first.
	State func() *snapshot.State
	// Clusters are the connections to the registered clusters whose API server is dialled, by name.
	Clusters func() map[string]*rest.Config
	// Secret are the contents of a Secret in the namespace of the management plane; it is needed for a Prometheus that names one.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	// Logging sets which proxies send their access log, for the next translation; nil if nobody wants to know.
	Logging func(*snapshot.Logging)
	Metrics prometheus.Registerer
	Log     *slog.Logger

	// learns replaces the constant, in tests.
	learns time.Duration
	// every is the time between two readings of a proxy; the default if zero.
	every time.Duration
	// get, allowed and account replace what asks API servers, in tests of what follows from their answers.
	get     func(ctx context.Context, config *rest.Config, namespace, pod string, port uint32, path string, limit int64) ([]byte, error)
	allowed func(ctx context.Context, config *rest.Config) (bool, error)
	account func(ctx context.Context, config *rest.Config) string
}

// term is what is known since this process leads.
type term struct {
	Options
	reads *prometheus.CounterVec
	// lost counts readings of agents that did not arrive, or were not taken.
	lost *prometheus.CounterVec
	// refused counts connections and streams of proxies that agents refused.
	refused *prometheus.CounterVec
	logs    *logbook

	mu     sync.Mutex // guards what follows
	book   *traffic.Book
	ring   *traffic.Ring
	status map[traffic.Proxy]traffic.Status
	// names and peers are those of state, since named.
	names *traffic.Names
	peers traffic.Peers
	state *snapshot.State
	named time.Time
	// rights are when and whether proxies of a cluster may be read.
	rights map[string]right
	// entrances are how the numbers of clusters come in, and changed is since when.
	entrances map[string]traffic.Entrance
	changed   map[string]time.Time
	// pods are those of state.
	pods map[traffic.Proxy]*traffic.Pod
	// versions has since when policies are in force as they are.
	versions traffic.Versions
	// agents are what is known of the agents, by their clusters.
	agents map[string]*fromAgent
	// answers are what is said of the Prometheus of a cluster.
	answers map[string]string
}

// Run reads proxies until ctx ends. What was counted before is forgotten: nobody knows what happened since.
func (t *Telemetry) Run(ctx context.Context, o Options) error {
	now := newTerm(o, time.Now())
	if err := now.register(o.Metrics); err != nil {
		return fmt.Errorf("telemetry: registering metrics: %w", err)
	}
	t.current.Store(now)
	defer t.current.Store(nil)
	now.run(ctx)
	if o.Logging != nil {
		o.Logging(nil) // another instance knows, or nobody
	}
	return nil
}

// ServeHTTP answers with a report, as JSON. Parameters are the fields of traffic.Query.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, err := parseQuery(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	now := time.Now()
	var report *traffic.Report
	if t.with(w, now, func(c *traffic.Context, ring *traffic.Ring) { report = ring.Report(now, c, query) }) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) // an error means that the client is gone
	}
}

// with calls a function with what is known now, and answers a request itself where nothing is.
func (t *Telemetry) with(w http.ResponseWriter, at time.Time, do func(*traffic.Context, *traffic.Ring)) bool {
	now := t.current.Load()
	if now == nil || !now.with(at, do) {
		t.away(w)
		return false
	}
	return true
}

// away answers a request where nothing is known.
func (t *Telemetry) away(w http.ResponseWriter) {
	if t.current.Load() == nil {
		refuse(w, http.StatusServiceUnavailable, "this instance of meshctl serve does not lead, and counts nothing; ask the one that does")
		return
	}
	refuse(w, http.StatusServiceUnavailable, "meshctl serve has not translated yet; try again")
}

// refuse answers a request with why it has no other answer.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.Error(w, text, code)
}

// Parameters are a query as those of the page.
func Parameters(q traffic.Query) url.Values {
	out := url.Values{"by": {string(q.By)}, "window": {q.Window.String()}}
	for name, value := range map[string]string{"from": q.From, "to": q.To, "cluster": q.Cluster, "namespace": q.Namespace, "sort": q.Sort} {
		if value != "" {
			out.Set(name, value)
		}
	}
	return out
}

func parseQuery(v url.Values) (traffic.Query, error) {
	q := traffic.Query{
		By: traffic.By(v.Get("by")), Window: traffic.Kept, From: v.Get("from"), To: v.Get("to"),
		Cluster: v.Get("cluster"), Namespace: v.Get("namespace"), Sort: v.Get("sort"),
	}
	if text := v.Get("window"); text != "" {
		window, err := time.ParseDuration(text)
		if err != nil || window < MinWindow || window > traffic.Kept {
			return q, fmt.Errorf("window %q: want a duration from %s to %s", text, MinWindow, traffic.Kept)
		}
		q.Window = window
	}
	switch q.By {
	case "":
		q.By = traffic.ByDestination
	case traffic.ByDestination, traffic.ByWorkload, traffic.ByEdge, traffic.ByAll:
	default:
		return q, fmt.Errorf("by %q: want %s, %s, %s or %s", q.By, traffic.ByDestination, traffic.ByWorkload, traffic.ByEdge, traffic.ByAll)
	}
	if q.Sort != "" && !slices.Contains(traffic.Sorts, q.Sort) {
		return q, fmt.Errorf("sort %q: want one of %s", q.Sort, strings.Join(traffic.Sorts, ", "))
	}
	return q, nil
}

// with calls a function with what is known at a time, under the lock; false before the first translation.
func (t *term) with(at time.Time, do func(*traffic.Context, *traffic.Ring)) bool {
	state := t.State()
	if state == nil {
		return false
	}
	survey := traffic.Look(state)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &traffic.Context{State: state, Survey: survey, Status: t.status, Fresh: at.Add(-3 * t.every), Sent: at.Add(-3*t.every - silent)}
	c.Clusters = t.clusters(c)
	t.versions.Note(state, at)
	c.Versions = t.versions
	do(c, t.ring)
	return true
}

// clusters are how the numbers of all clusters come in, by name, under the lock.
func (t *term) clusters(c *traffic.Context) []traffic.ClusterReport {
	byName := map[string]*traffic.ClusterReport{}
	for name, at := range c.Survey.Entrances {
		r := &traffic.ClusterReport{Cluster: name, Door: at.Door, Detail: at.Closed}
		if at.Closed != "" {
			r.Reason = traffic.Closed
		}
		if a := t.agents[name]; a != nil && ofAgent(at.Door) {
			r.Dropped, r.Rejected = a.lost, a.rejected
			if r.Refused = a.refused; r.Refused > 0 {
				r.Refusal = a.said.Refusal
			}
		}
		if at.Door == traffic.Prometheus && r.Detail == "" {
			r.Detail = t.answers[name]
		}
		byName[name] = r
	}
	t.logs.lost(func(cluster string, dropped, rejected uint64) {
		if r := byName[cluster]; r != nil {
			r.LogsDropped, r.LogsRejected = dropped, rejected
		}
	})
	for i := range c.Survey.Pods {
		pod := &c.Survey.Pods[i]
		r := byName[pod.Proxy.Cluster]
		r.Proxies++
		switch status := t.status[pod.Proxy]; {
		case c.IsRead(pod, status):
			r.Read++
		case status.Reason != "" && r.Reason == "":
			r.Reason, r.Detail = status.Reason, cmp.Or(r.Detail, status.Detail)
		}
	}
	out := make([]traffic.ClusterReport, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Paths of the REST API of Gloo Mesh 1.x (docs.solo.io/gloo-mesh: Observability, Metrics API and Access Logs API), which are asked by POST.
const (
	NodesPath   = "/v0/observability/metrics/node"
	EdgesPath   = "/v0/observability/metrics/edge"
	EntriesPath = "/v0/observability/logs"
)

// Bounds of questions.
const (
	maxQuestion = 1 << 20
	// defaultWindow is that of a question that names none.
	defaultWindow = 5 * time.Minute
	// latest is how many entries of the logs are the answer to a question that does not watch.
	latest = 10
	// watches is how long logs are watched, and looks how often: whoever may ask is asked anew then.
	watches = 10 * time.Minute
	looks   = time.Second
)

// REST are the handlers of the REST API, by path. They do not look at who asks: serve them behind something that does.
func (t *Telemetry) REST() map[string]http.Handler {
	return map[string]http.Handler{
		NodesPath:   http.HandlerFunc(t.nodes),
		EdgesPath:   http.HandlerFunc(t.edges),
		EntriesPath: http.HandlerFunc(t.entries),
	}
}

// nodeSelector selects workloads by one of its fields; all if both are missing.
type nodeSelector struct {
	Selector *commonv1.WorkloadSelector `json:"workloadSelector,omitempty"`
	Ref      *commonv1.ClusterObjectRef `json:"workloadRef,omitempty"`
}

func (s *nodeSelector) selects(w *discoveryv1.KubernetesWorkload) bool {
	if s.Ref != nil && *s.Ref != w.Controller {
		return false
	}
	return s.Selector == nil || inventory.MatchesWorkload([]commonv1.WorkloadSelector{*s.Selector}, w)
}

// when are the fields of a question that say at which times.
type when struct {
	Time         *time.Time `json:"time,omitempty"`
	Window, Step length
}

// length is a duration as protobuf writes it in JSON ("300s"), or as Go does ("5m").
type length time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (l *length) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New(`a duration has to be a string such as "300s"`)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`duration %q: want a number and its unit, such as "300s"`, snapshot.Clean(text))
	}
	*l = length(d)
	return nil
}

// samples says which samples are asked for; an error, why they cannot be had.
func (q *when) samples(now time.Time) (traffic.Samples, error) {
	s := traffic.Samples{End: now, Window: defaultWindow, Step: time.Duration(q.Step)}
	if q.Window != 0 {
		s.Window = time.Duration(q.Window)
	}
	if q.Time != nil {
		s.End = *q.Time
	}
	switch oldest := now.Add(-traffic.Kept); {
	case s.Window < traffic.Point || s.Window > traffic.Kept:
		return s, fmt.Errorf("window: %s; want %s to %s", s.Window, traffic.Point, traffic.Kept)
	case s.Step != 0 && (s.Step < traffic.Point || s.Step > s.Window || s.Step%traffic.Point != 0):
		return s, fmt.Errorf("step: %s; want a multiple of %s, at most the window of %s", s.Step, traffic.Point, s.Window)
	case s.End.After(now):
		return s, fmt.Errorf("time: %s is in the future", s.End.Format(time.RFC3339))
	case s.End.Add(-s.Window).Before(oldest.Add(-traffic.Point)):
		return s, fmt.Errorf("time: numbers are kept for %s; ask for a time and window after %s", traffic.Kept, oldest.Format(time.RFC3339))
	}
	return s, nil
}

type nodesQuestion struct {
	Nodes []nodeSelector `json:"nodeSelectors"`
	when
}

type edgesQuestion struct {
	Edges []edgeSelector `json:"edgeSelectors"`
	when
}

// edgeSelector selects by who calls and what answers; all by a side that is missing.
type edgeSelector struct {
	Source *nodeSelector `json:"source,omitempty"`
	Target *nodeSelector `json:"target,omitempty"`
}

func (s *edgeSelector) selects(source, target *discoveryv1.KubernetesWorkload) bool {
	return (s.Source == nil || s.Source.selects(source)) && (s.Target == nil || s.Target.selects(target))
}

func (t *Telemetry) nodes(w http.ResponseWriter, r *http.Request) {
	var q nodesQuestion
	t.series(w, r, &q, &q.when, func(c *traffic.Context, ring *traffic.Ring, s traffic.Samples) any {
		return map[string]any{"nodeMetrics": ring.SeriesOfNodes(c, s, func(w *discoveryv1.KubernetesWorkload) bool {
			return anyOf(q.Nodes, func(n *nodeSelector) bool { return n.selects(w) })
		})}
	})
}

func (t *Telemetry) edges(w http.ResponseWriter, r *http.Request) {
	var q edgesQuestion
	t.series(w, r, &q, &q.when, func(c *traffic.Context, ring *traffic.Ring, s traffic.Samples) any {
		return map[string]any{"edgeMetrics": ring.SeriesOfEdges(c, s, func(source, target *discoveryv1.KubernetesWorkload) bool {
			return anyOf(q.Edges, func(e *edgeSelector) bool { return e.selects(source, target) })
		})}
	})
}

// anyOf reports whether any selector selects; without selectors, all are wanted.
func anyOf[S any](selectors []S, selects func(*S) bool) bool {
	for i := range selectors {
		if selects(&selectors[i]) {
			return true
		}
	}
	return len(selectors) == 0
}

// series answers a question about numbers.
func (t *Telemetry) series(w http.ResponseWriter, r *http.Request, question any, q *when, answer func(*traffic.Context, *traffic.Ring, traffic.Samples) any) {
	if err := readQuestion(w, r, question); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	at := time.Now()
	samples, err := q.samples(at)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	var out any
	if t.with(w, at, func(c *traffic.Context, ring *traffic.Ring) { out = answer(c, ring, samples) }) {
		_ = encoder(w, r).Encode(out) // an error means that the client is gone
	}
}

// readQuestion reads the question of a request. An empty body asks for everything.
func readQuestion(w http.ResponseWriter, r *http.Request, question any) error {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion))
	d.DisallowUnknownFields()
	if err := d.Decode(question); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the question is no JSON of this path: %w", err)
	}
	return nil
}

// encoder writes answers, indented if the request wants them pretty.
func encoder(w http.ResponseWriter, r *http.Request) *json.Encoder {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	if r.URL.Query().Has("pretty") {
		e.SetIndent("", "  ")
	}
	return e
}

type entriesQuestion struct {
	Workloads []commonv1.WorkloadSelector `json:"workloadSelectors"`
}

// entryAnswer is one entry of the logs in an answer.
type entryAnswer struct {
	Result *accesslog.Entry `json:"result"`
	// LeftOut is how many came before it, since the one before in the answer, that are not in the answer: there were too many, of all workloads.
	LeftOut uint64 `json:"leftOut,omitempty"`
}

// entries answers with the last entries of the access logs, and with those that come for a while if the request watches.
func (t *Telemetry) entries(w http.ResponseWriter, r *http.Request) {
	var q entriesQuestion
	if err := readQuestion(w, r, &q); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	now := t.current.Load()
	if now == nil || now.State() == nil {
		t.away(w)
		return
	}
	out, flush := encoder(w, r), http.NewResponseController(w)
	query, of := accesslog.Query{Limit: latest}, selected{selectors: q.Workloads}
	timer := time.NewTicker(looks)
	defer timer.Stop()
	end := time.After(watches)
	// left is how many came since the last one that was sent, and are not sent: the first answer is the latest ones, and leaves out none.
	for left, first := uint64(0), true; ; first = false {
		state := now.State()
		query.Only = of.in(state)
		report := now.logs.answer(&query, state)
		if !first {
			left += uint64(report.More) + report.Missed
		}
		for i := range report.Entries {
			if out.Encode(entryAnswer{&report.Entries[i], left}) != nil {
				return // the client is gone
			}
			left = 0
		}
		if watch := r.URL.Query().Get("watch"); watch != "1" && watch != "true" || flush.Flush() != nil {
			return
		}
		query.After, query.Limit = report.Next, accesslog.MaxShown
		select {
		case <-r.Context().Done():
			return
		case <-end:
			return
		case <-timer.C:
		}
		if t.current.Load() != now {
			return // it leads no more
		}
	}
}

// selected are the workloads of a translation that are selected.
type selected struct {
	selectors []commonv1.WorkloadSelector
	state     *snapshot.State
	workloads map[commonv1.ClusterObjectRef]bool
}

// in tells the entries that they logged; nil if all workloads are selected, also those that are gone.
func (s *selected) in(state *snapshot.State) func(*accesslog.Entry) bool {
	if len(s.selectors) == 0 {
		return nil
	}
	if state != s.state {
		s.state, s.workloads = state, map[commonv1.ClusterObjectRef]bool{}
		for _, w := range state.Plan.Workloads {
			if k := w.Spec.Kubernetes; k != nil && inventory.MatchesWorkload(s.selectors, k) {
				s.workloads[k.Controller] = true
			}
		}
	}
	return func(e *accesslog.Entry) bool { return s.workloads[e.WorkloadRef] }
}

package telemetry

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// maxSeries bounds the time series of edges. Beyond it, edges lose their subset, and then their source.
const maxSeries = 100_000

// collector has the numbers of the edges. They begin at 0 when this process begins to lead, and an edge of which nothing came for 15
// minutes ends; Prometheus takes both for the restart of a counter.
type collector struct {
	term                                           *term
	requests, failures, retries, sent, received    *prometheus.Desc
	duration, edges, folded, proxies, merged, lack *prometheus.Desc
	logs                                           *prometheus.Desc
}

// series are the labels of an edge, as edgeLabels.
type series [9]string

// edgeLabels ascend, as those of metrics do. Before the ones of the source, of which sourceLabel is the first, come reason and response_class.
var edgeLabels = []string{
	"destination_cluster", "destination_namespace", "destination_port", "destination_service", "destination_subset", "door",
	"source_cluster", "source_namespace", "source_workload",
}

const sourceLabel = 6

func (t *term) register(r prometheus.Registerer) error {
	t.reads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "meshctl", Name: "telemetry_reads_total", Help: "Readings of proxies, by cluster and result: ok, or the reason why there was none.",
	}, []string{"cluster", "result"})
	t.lost = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "meshctl", Name: "telemetry_lost_total", Help: "Readings of agents that were dropped on the way, or not taken, by reason. The next reading of a proxy has what a lost one had.",
	}, []string{"cluster", "reason"})
	t.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "meshctl", Name: "telemetry_refused_total", Help: "Connections and streams of proxies that agents refused, by cluster.",
	}, []string{"cluster"})
	for _, c := range []prometheus.Collector{t.reads, t.lost, t.refused} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("meshctl_"+name, help, labels, nil)
	}
	with := func(label string) []string { return append(edgeLabels[:len(edgeLabels):len(edgeLabels)], label) }
	if err := r.Register(newShifts(t)); err != nil {
		return err
	}
	return r.Register(&collector{
		term:     t,
		requests: desc("requests_total", "Requests that workloads sent, by the class of their last answer; none had no answer.", with("response_class")...),
		failures: desc("request_failures_total", "Failures of requests and connections, by reason.", with("reason")...),
		retries:  desc("request_retries_total", "Attempts after the first one.", edgeLabels...),
		sent:     desc("tcp_sent_bytes_total", "Bytes that workloads sent.", edgeLabels...),
		received: desc("tcp_received_bytes_total", "Bytes that workloads received.", edgeLabels...),
		duration: desc("request_duration_milliseconds", "Time until the answer, as callers see it.", "source_cluster", "destination_cluster", "destination_namespace", "destination_service", "door"),
		edges:    desc("telemetry_edges", "Edges between workloads and destinations of the last 15 minutes."),
		folded:   desc("telemetry_others_total", "Edges that became one with those of other callers of the same destination, as there were too many."),
		proxies:  desc("telemetry_proxies", "Proxies by cluster and by what became of their last reading: ok, or the reason why there was none.", "cluster", "result"),
		merged:   desc("telemetry_merged", "What edges have lost so that there are not too many time series: 0 nothing, 1 their subset, 2 their source, too."),
		logs:     desc("access_logs_lost_total", "Logged requests that agents dropped, or that were not taken of them, by cluster and reason.", "cluster", "reason"),
		lack:     desc("telemetry_since_timestamp_seconds", "Since when this process counts."),
	})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.requests, c.failures, c.retries, c.sent, c.received, c.duration, c.edges, c.folded, c.proxies, c.merged, c.lack, c.logs} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	t := c.term
	t.logs.lost(func(cluster string, dropped, rejected uint64) {
		out <- prometheus.MustNewConstMetric(c.logs, prometheus.CounterValue, float64(dropped), cluster, lostOnTheWay)
		out <- prometheus.MustNewConstMetric(c.logs, prometheus.CounterValue, float64(rejected), cluster, lostUnknown)
	})
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	type result struct{ cluster, result string }
	results := map[result]int{}
	var byEdge map[series]*traffic.Values
	var level int
	// Who takes the metrics is not waited for under the lock.
	t.mu.Lock()
	edges, since, folded := t.ring.Edges(), t.ring.Since(), t.ring.Folded()
	for proxy, status := range t.status {
		is := "ok"
		if status.Reason != "" {
			is = string(status.Reason)
		}
		results[result{proxy.Cluster, is}]++
	}
	if t.state != nil {
		byEdge, level = t.series()
	}
	t.mu.Unlock()
	gauge(c.edges, float64(edges))
	gauge(c.lack, float64(since.Unix()))
	out <- prometheus.MustNewConstMetric(c.folded, prometheus.CounterValue, float64(folded))
	for r, n := range results {
		gauge(c.proxies, float64(n), r.cluster, r.result)
	}
	if byEdge == nil {
		return
	}
	gauge(c.merged, float64(level))
	c.collectEdges(out, byEdge)
	c.collectDurations(out, byEdge)
}

// series adds up the edges by their labels, with as many of those as there may be series, under the lock.
func (t *term) series() (byEdge map[series]*traffic.Values, level int) {
	for level = 0; ; level++ {
		byEdge, n := map[series]*traffic.Values{}, 0
		t.ring.Totals(func(key traffic.Key, v *traffic.Values) {
			if key.Serves() {
				return
			}
			at := t.labels(key, level)
			if byEdge[at] == nil {
				byEdge[at] = &traffic.Values{}
			}
			byEdge[at].Add(v)
		})
		for _, v := range byEdge {
			for m := range snapshot.Latency {
				if v.Of(m) > 0 {
					n++
				}
			}
		}
		if n <= maxSeries || level == 2 {
			return byEdge, level
		}
	}
}

func (t *term) labels(key traffic.Key, level int) (out series) {
	to := t.peers.Of(key.To)
	out[0], out[1], out[3] = to.Cluster, to.Namespace, to.Name
	if key.Port != 0 {
		out[2] = strconv.FormatUint(uint64(key.Port), 10)
	}
	if level < 1 {
		out[4] = key.Subset
	}
	out[5] = string(key.Door)
	if level < 2 {
		from := t.peers.Of(key.From)
		out[6], out[7], out[8] = from.Cluster, from.Namespace, from.Name
	}
	return out
}

// collectEdges makes the metrics of edges, ascending by their labels but for reasons: that all are sorted costs little then.
func (c *collector) collectEdges(out chan<- prometheus.Metric, byEdge map[series]*traffic.Values) {
	edges := slices.SortedFunc(maps.Keys(byEdge), func(a, b series) int { return slices.Compare(a[:], b[:]) })
	made := labels{}
	for len(edges) > 0 {
		n := 1 // of the same destination
		for n < len(edges) && slices.Equal(edges[n][:sourceLabel], edges[0][:sourceLabel]) {
			n++
		}
		all := make([][]*dto.LabelPair, n)
		for i := range all {
			all[i] = made.of(edges[i][:])
		}
		for m := range snapshot.Latency {
			for i, labels := range all {
				number := byEdge[edges[i]].Of(m)
				d := c.retries
				switch {
				case number == 0:
					continue
				case m.Requests():
					d, labels = c.requests, made.with(labels, "response_class", m.String())
				case m.Failure():
					d, labels = c.failures, made.with(labels, "reason", m.String())
				case m == snapshot.Retried:
				case m == snapshot.SentBytes:
					d = c.sent
				case m == snapshot.ReceivedBytes:
					d = c.received
				default:
					continue
				}
				out <- &counter{d, labels, float64(number)}
			}
		}
		edges = edges[n:]
	}
}

// collectDurations adds up the latencies by destination and the cluster of the callers. Proxies do not say their sum in a form that adds
// up exactly; it is left at 0.
func (c *collector) collectDurations(out chan<- prometheus.Metric, byEdge map[series]*traffic.Values) {
	byDestination := map[[5]string]*traffic.Values{}
	for at, v := range byEdge {
		key := [5]string{at[6], at[0], at[1], at[3], at[5]}
		if byDestination[key] == nil {
			byDestination[key] = &traffic.Values{}
		}
		byDestination[key].Add(v)
	}
	for at, v := range byDestination {
		below, upTo := uint64(0), map[float64]uint64{}
		for i, n := range v.Latency() {
			if below += n; i < len(traffic.Bounds) {
				upTo[traffic.Bounds[i]] = below
			}
		}
		if below > 0 {
			out <- prometheus.MustNewConstHistogram(c.duration, below, 0, upTo, at[:]...)
		}
	}
}

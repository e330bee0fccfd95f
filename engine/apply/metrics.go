package apply

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the sink. Clusters are labelled by registration name, the
// management cluster by an empty one.
type metrics struct {
	changes   *prometheus.CounterVec
	requests  *prometheus.HistogramVec
	conflicts *prometheus.CounterVec
	errors    *prometheus.CounterVec
	outages   *prometheus.GaugeVec
	queue     *prometheus.GaugeVec
	failures  *prometheus.GaugeVec
	writable  *prometheus.GaugeVec
}

// newMetrics makes the metrics, and registers them if there is a registerer.
func newMetrics(r prometheus.Registerer) *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "meshctl", Subsystem: "apply", Name: name, Help: help}
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), []string{"cluster"})
	}
	m := &metrics{
		changes: prometheus.NewCounterVec(prometheus.CounterOpts(opts("changes_total",
			"Objects created, configured, deleted, given a status, or newly failed.")), []string{"cluster", "kind", "result"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "meshctl", Subsystem: "apply", Name: "write_seconds",
			Help:    "Time from sending a write to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
		}, []string{"cluster", "verb"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts(opts("conflicts_total",
			"Writes that failed because the object had changed in the meantime; the object is checked again.")), []string{"cluster"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts(opts("errors_total",
			"Writes that failed, by the HTTP status code, or timeout, or connection.")), []string{"cluster", "reason"}),
		outages:  gauge("held_back", "Kinds of objects, by namespace, whose last write failed because of the server; after several, one object is tried at a time."),
		queue:    gauge("queue_depth", "Objects that wait to be checked or are being written."),
		failures: gauge("failures", "Objects that cannot be written at present."),
		writable: gauge("writable", "1 if the cluster is connected, answers, and is not frozen."),
	}
	if r != nil {
		r.MustRegister(m.changes, m.requests, m.conflicts, m.errors, m.outages, m.queue, m.failures, m.writable)
	}
	return m
}

// forget removes the series of a cluster that was removed.
func (m *metrics) forget(cluster string) {
	labels := prometheus.Labels{"cluster": cluster}
	m.changes.DeletePartialMatch(labels)
	m.requests.DeletePartialMatch(labels)
	m.conflicts.DeletePartialMatch(labels)
	m.errors.DeletePartialMatch(labels)
	m.outages.DeletePartialMatch(labels)
	m.queue.DeletePartialMatch(labels)
	m.failures.DeletePartialMatch(labels)
	m.writable.DeletePartialMatch(labels)
}

var verbNames = [...]string{writeObject: "apply", writeStatus: "status", deleteObject: "delete"}

// observe notes one request.
func (m *metrics) observe(cluster string, s step, r response) {
	m.requests.WithLabelValues(cluster, verbNames[s.verb]).Observe(r.took.Seconds())
	switch r.class {
	case fine:
	case conflict:
		m.conflicts.WithLabelValues(cluster).Inc()
	default:
		m.errors.WithLabelValues(cluster, reason(r.err)).Inc()
	}
}

// measure updates the gauges.
func (r *reports) measure(queued int, writable bool, outages int) {
	failures, able := len(r.objects), 0.0
	if r.has(ofConnection) {
		failures++
	}
	if writable {
		able = 1
	}
	r.gauges.queue.Set(float64(queued))
	r.gauges.failures.Set(float64(failures))
	r.gauges.writable.Set(able)
	r.gauges.outages.Set(float64(outages))
}

// gauges are a cluster's own, found once.
type gauges struct{ queue, failures, writable, outages prometheus.Gauge }

func (m *metrics) gauges(cluster string) gauges {
	return gauges{
		queue:    m.queue.WithLabelValues(cluster),
		failures: m.failures.WithLabelValues(cluster),
		writable: m.writable.WithLabelValues(cluster),
		outages:  m.outages.WithLabelValues(cluster),
	}
}

// warnings logs the warnings of an API server, which client-go would print to stderr.
type warnings struct {
	log     *slog.Logger
	cluster string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.log.Debug("warning of the API server", "cluster", w.cluster, "warning", text)
}

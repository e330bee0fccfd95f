package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// metrics are those of the loop. Those that follow from the latest state are
// computed on each scrape: see stateCollector.
type metrics struct {
	translate prometheus.Histogram
	edits     prometheus.Histogram
	parts     *prometheus.CounterVec
	panics    prometheus.Counter
}

func newMetrics(r prometheus.Registerer, version string) *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "meshctl", Name: name, Help: help}
	}
	m := &metrics{
		translate: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "meshctl", Name: "translate_seconds",
			Help:    "Time that one translation takes.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		edits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "meshctl", Name: "edit_seconds",
			Help:    "Time from receiving a change until everything that follows from it is written.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60},
		}),
		parts: prometheus.NewCounterVec(prometheus.CounterOpts(opts("parts_total",
			"Parts of the output that were computed, or reused because nothing behind them had changed.")), []string{"result"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts(opts("translate_failures_total",
			"Translations that failed because of a bug; what was written before stays in effect."))),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "meshctl", Name: "build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	r.MustRegister(m.translate, m.edits, m.parts, m.panics, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(took time.Duration, c counts) {
	m.translate.Observe(took.Seconds())
	m.parts.WithLabelValues("computed").Add(float64(c.computed))
	m.parts.WithLabelValues("reused").Add(float64(c.parts - c.computed))
}

// stateCollector computes on each scrape what is in the latest state, and the state
// of credentials and of the leader election.
type stateCollector struct {
	// state is the latest; nil before the first translation.
	state func() *snapshot.State
	// credentials are those of the registered clusters.
	credentials func() []cluster.CredentialStatus
	// freshness is that of the clusters that were read.
	freshness func() []watch.Freshness
	leading   func() bool

	objects, issues, clusters, inputs, expiry, renewals, age, silences, collected, leader *prometheus.Desc
}

func newStateCollector(
	state func() *snapshot.State, credentials func() []cluster.CredentialStatus, freshness func() []watch.Freshness, leading func() bool,
) *stateCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("meshctl_"+name, help, labels, nil)
	}
	return &stateCollector{
		state: state, credentials: credentials, freshness: freshness, leading: leading,
		objects:  desc("objects", "Objects that meshctl wants in a cluster; the management cluster has an empty name.", "cluster", "kind"),
		issues:   desc("issues", "Issues that were found.", "severity", "code"),
		clusters: desc("cluster_sync", "1 for the current state of a cluster: synced, stale or unsynced.", "cluster", "state"),
		inputs:   desc("services", "Services that are known in a cluster.", "cluster"),
		expiry:   desc("credential_expiry_timestamp_seconds", "When the credential of a cluster expires.", "cluster"),
		renewals: desc("credential_renewal_failures", "How many renewals of the credential of a cluster failed since the last that did not.", "cluster"),
		age: desc("cluster_age_seconds", "How old what is known of a cluster may be: the time since its API server last sent something about the kind of which it "+
			"has sent nothing for longest. More than 150 s is unusual; from 300 s the cluster is frozen. The management cluster has an empty name.", "cluster"),
		silences:  desc("silent_watches_total", "Watches that were ended because they delivered neither events nor bookmarks for 150 s.", "cluster"),
		collected: desc("collected_changes_total", "Changes of pods and EndpointSlices that counted together with an earlier one: they are collected for 100 ms.", "cluster"),
		leader:    desc("leader", "1 if this process is the leader."),
	}
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.objects, c.issues, c.clusters, c.inputs, c.expiry, c.renewals, c.age, c.silences, c.collected, c.leader} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.leader, boolValue(c.leading()))
	for _, credential := range c.credentials() {
		if !credential.Expires.IsZero() {
			gauge(c.expiry, float64(credential.Expires.Unix()), credential.Cluster)
			gauge(c.renewals, float64(credential.Failures), credential.Cluster)
		}
	}
	for _, f := range c.freshness() {
		gauge(c.age, f.Age.Seconds(), f.Cluster)
		out <- prometheus.MustNewConstMetric(c.silences, prometheus.CounterValue, float64(f.Silences), f.Cluster)
		out <- prometheus.MustNewConstMetric(c.collected, prometheus.CounterValue, float64(f.Collected), f.Cluster)
	}
	state := c.state()
	if state == nil {
		return
	}
	type objectKey struct{ cluster, kind string }
	objects := map[objectKey]int{}
	for o := range state.Output.Objects {
		objects[objectKey{o.Ref.Cluster, o.Ref.Kind.String()}]++
	}
	for key, count := range objects {
		gauge(c.objects, float64(count), key.cluster, key.kind)
	}
	type issueKey struct {
		severity snapshot.Severity
		code     snapshot.Code
	}
	issues := map[issueKey]int{}
	for _, issue := range state.Output.Issues {
		issues[issueKey{issue.Severity, issue.Code}]++
	}
	for key, count := range issues {
		gauge(c.issues, float64(count), key.severity.String(), string(key.code))
	}
	for _, in := range state.Input.Clusters {
		gauge(c.inputs, float64(len(in.Services)), in.Name)
		for _, s := range []snapshot.Sync{snapshot.Unsynced, snapshot.Stale, snapshot.Synced} {
			gauge(c.clusters, boolValue(in.Sync == s), in.Name, s.String())
		}
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

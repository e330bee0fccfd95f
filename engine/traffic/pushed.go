package traffic

import (
	"math"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Metric is a statistic that a proxy sent by itself (envoyproxy.io: metrics service).
type Metric struct {
	// Name is that of Envoy's statistic: whole, or without what Labels say, if there are any.
	Name   string
	Labels map[string]string
	// Value is that of a counter or a gauge, since the proxy started.
	Value float64
	// Buckets are those of a histogram: requests of the last interval by the upper end of their latency in milliseconds, each with those
	// below it; nil for other kinds. Count is all of them.
	Buckets map[float64]uint64
	Count   uint64
}

// Pushed puts together what one process of a proxy sends by itself. It is not ready: use NewPushed.
//
// A proxy sends all statistics that it has used at one time, in one message or in several. Counters are since it started; histograms are
// those of the last interval, and so are added up here. A message that was lost loses latencies, not requests.
type Pushed struct {
	names *snapshot.ProxyStats
	now   *Reading
	// at is the time of now, by the clock of the proxy. last is what was said before, with the histograms since the first message: what a proxy
	// leaves out has not changed.
	at   int64
	last *Reading
}

// NewPushed begins with the first message of a stream. counts: the proxy says that it counts requests. It sends none of what it has not
// used, so that before its first request, its numbers do not tell.
func NewPushed(names *snapshot.ProxyStats, counts bool) *Pushed {
	last := newReading()
	last.counts = counts
	return &Pushed{names: names, last: last}
}

func newReading() *Reading {
	return &Reading{Uptime: -1, clusters: map[Target]*Values{}, owned: map[Target]*Values{}}
}

// Take takes a message that a proxy sent of a time, in milliseconds by its own clock. It returns what the proxy said before, if that is complete by
// this: nil if the message is more of the same.
func (p *Pushed) Take(at int64, metrics []Metric) *Reading {
	var before *Reading
	if p.now != nil && at != p.at {
		before = p.Complete()
	}
	if p.now == nil {
		p.now, p.at = newReading(), at
	}
	for i := range metrics {
		p.take(&metrics[i])
	}
	return before
}

// Complete is what the proxy said at the time of the last message; nil if there was none since. All messages of that time have to be there.
func (p *Pushed) Complete() *Reading {
	out := p.now
	if out == nil {
		return nil
	}
	p.now = nil
	for _, of := range []struct{ now, before map[Target]*Values }{{out.clusters, p.last.clusters}, {out.owned, p.last.owned}} {
		for target, v := range of.before {
			out.at(of.now, target).keep(v)
		}
	}
	out.both.keep(&p.last.both)
	out.counts, out.own = out.counts || p.last.counts, out.own || p.last.own
	if out.Uptime < 0 && p.last.Uptime >= 0 {
		out.Uptime = p.last.Uptime
	}
	p.last = out
	return out
}

// keep takes over each counter that there is none of, as it has not changed, and adds the latencies of before: those of now are of an interval.
func (v *Values) keep(before *Values) {
	for i, n := range before {
		if i >= counters {
			v[i] += n
		} else if v[i] == 0 {
			v[i] = n
		}
	}
}

func (p *Pushed) take(m *Metric) {
	s, ok := m.sample()
	if !ok {
		return
	}
	if math.IsNaN(s.value) || s.value < 0 || s.value > maxCount || len(s.labels) > maxLabels || !s.printed() {
		p.now.Refused++
		return
	}
	if m.Buckets == nil {
		if !strings.HasSuffix(s.name, bucketOf) { // a part of a histogram is of an interval, and comes with all others
			p.now.take(&s, p.names)
		}
		return
	}
	if m.Count == 0 {
		return
	}
	interval := newReading()
	s.name += bucketOf
	s.labels = append(s.labels, labelOf{"le", ""})
	le := &s.labels[len(s.labels)-1].value
	for i := range buckets {
		n, bound := m.Count, "+Inf"
		if i < len(Bounds) {
			bound = strconv.FormatFloat(Bounds[i], 'g', -1, 64)
			n = m.Buckets[Bounds[i]]
		}
		if n > maxCount {
			p.now.Refused++
			return
		}
		*le, s.value = bound, float64(n)
		interval.take(&s, p.names)
	}
	p.now.counts, p.now.own = p.now.counts || interval.counts, p.now.own || interval.own
	for _, of := range []struct{ from, to map[Target]*Values }{{interval.clusters, p.now.clusters}, {interval.owned, p.now.owned}} {
		for target, v := range of.from {
			v.separate()
			p.now.at(of.to, target).Add(v)
		}
	}
}

// bucketOf is how the names of the parts of histograms end.
const bucketOf = "_bucket"

func (s *sample) printed() bool {
	for _, l := range s.labels {
		if len(l.name) > maxText || !printed(l.value) {
			return false
		}
	}
	return true
}

// labelled is what Envoy writes before the names of statistics of extensions; its pages leave it out.
const labelled = "istiocustom."

// sample is the metric as a proxy's page has it; false if it is none that is read.
func (m *Metric) sample() (s sample, ok bool) {
	s.value = m.Value
	if len(m.Name) > 2*maxText || len(m.Labels) > maxLabels {
		return s, false
	}
	if len(m.Labels) > 0 {
		name, own := strings.CutPrefix(m.Name, labelled)
		if s.name = plain(name); !own && !strings.HasPrefix(name, "istio_") {
			s.name = "envoy_" + s.name
		}
		for label, value := range m.Labels {
			s.labels = append(s.labels, labelOf{plain(label), value})
		}
		return s, true
	}
	if m.Name == "server.uptime" {
		s.name = uptime
		return s, true
	}
	if rest, is := strings.CutPrefix(m.Name, "cluster."); is {
		return s, s.ofCluster(rest)
	}
	if rest, is := strings.CutPrefix(m.Name, "http."); is {
		return s, s.ofHTTP(rest)
	}
	return s, false
}

// ofCluster takes a name apart: the cluster's ends with a semicolon (see the dialect of the mesh), as all others may have dots.
func (s *sample) ofCluster(text string) bool {
	cluster, stat, ok := strings.Cut(text, ";.")
	if !ok {
		return false
	}
	s.labels = append(s.labels, labelOf{"cluster_name", text[:len(cluster)+1]})
	if code, is := strings.CutPrefix(stat, "upstream_rq_"); is && len(code) == 3 && code[0] >= '1' && code[0] <= '5' {
		stat = "upstream_rq"
		label := "response_code"
		if code[1:] == "xx" {
			label = "response_code_class"
		}
		s.labels = append(s.labels, labelOf{label, code})
	}
	s.name = ofClusters + plain(stat)
	return true
}

// httpStats are what listeners count, by the ends of names.
var httpStats = map[string]string{
	".no_cluster": "no_cluster", ".no_route": "no_route", ".rbac.allowed": "rbac_allowed", ".rbac.denied": "rbac_denied",
	".shadow_allowed": "rbac_shadow_allowed", ".shadow_denied": "rbac_shadow_denied",
}

// dryRun is how what is only observed begins, behind the name of a listener (pilot/pkg/security/authz/model).
const dryRun = "istio_dry_run_"

// ofHTTP takes a name apart, which begins with that of the listener.
func (s *sample) ofHTTP(text string) bool {
	for end, name := range httpStats {
		rest, is := strings.CutSuffix(text, end)
		prefix, of, _ := strings.Cut(rest, ".rbac.")
		if of != "" && !strings.HasPrefix(of, dryRun) {
			continue // what is asked of an external authorizer
		}
		if is && prefix != "" && prefix != "admin" && prefix != "agent" && prefix != "stats" {
			s.name, s.labels = ofHTTP+name, append(s.labels, labelOf{"http_conn_manager_prefix", prefix})
			return true
		}
	}
	return false
}

var underscored = strings.NewReplacer(".", "_", "-", "_")

// plain is a name as Prometheus' pages have it.
func plain(name string) string { return underscored.Replace(name) }

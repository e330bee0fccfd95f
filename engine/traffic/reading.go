package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// MaxTargets bounds the targets of one proxy. Those beyond count as one that is not known.
const MaxTargets = 2000

// Target is what one proxy's numbers are about: what its pod calls, or the requests that the pod gets.
type Target struct {
	// Serves: of requests that the pod gets. The other fields are zero then.
	Serves bool
	snapshot.ProxyTarget
}

// Reading is what a proxy said at one time, since it started.
type Reading struct {
	// Uptime is how long the proxy has been running, in whole seconds; negative if it does not say.
	Uptime time.Duration
	// Started is when the proxy started, by the clock of somebody else who read it; zero if this process did, or it is not known. Readings
	// take different times to get here then, so that only this tells one process of a proxy from the next.
	Started time.Time
	// Unordered: the reading may be older than the one before, as several servers may have answered.
	Unordered bool
	// Refused is how many lines were not understood, and Overflow whether there were more targets than may be.
	Refused  int
	Overflow bool
	// counts: the proxy counts requests, whether or not there were any. own: it does so by itself, beside its clusters.
	counts, own bool
	// clusters are the numbers of the proxy's clusters, and owned those of its own. both are in neither: they have no target, and are of
	// the requests that the pod gets or sends.
	clusters, owned map[Target]*Values
	both            Values
	// lacks is a label that numbers of the proxy need, and do not have.
	lacks string
}

// Counts: the proxy counts requests, whether or not there were any.
func (r *Reading) Counts() bool { return r.counts }

// errAltered is of a proxy whose numbers do not say what they are of.
var errAltered = errors.New("a Telemetry of the mesh has removed it")

// Err is why the numbers say nothing, though they were read; nil if they do.
func (r *Reading) Err() error {
	if r.lacks == "" {
		return nil
	}
	return fmt.Errorf("its metrics have no label %s: %w; without it nobody knows what was called, or what failed", r.lacks, errAltered)
}

// ReasonOf is why a proxy whose reading failed has no numbers.
func ReasonOf(err error) Reason {
	if errors.Is(err, errAltered) {
		return Altered
	}
	return Failed
}

// Beside takes from another page of the same proxy what that says about whether the proxy counts.
func (r *Reading) Beside(unused *Reading) {
	r.counts, r.own = r.counts || unused.counts, r.own || unused.own
}

// families are the names of Envoy's statistics of clusters, without what comes before (envoyproxy.io: Cluster manager, Statistics), that
// are counters.
var families = map[string]snapshot.Measure{
	"upstream_rq_retry": snapshot.Retried, "upstream_rq_timeout": snapshot.TimedOut, "upstream_rq_per_try_timeout": snapshot.TimedOut,
	"upstream_rq_rx_reset": snapshot.ResetByPeer, "upstream_cx_destroy_remote_with_active_rq": snapshot.ResetByPeer, "upstream_rq_pending_overflow": snapshot.Overflowed,
	"upstream_cx_connect_fail": snapshot.NotConnected, "upstream_cx_none_healthy": snapshot.NoneHealthy,
	"ssl_connection_error": snapshot.TLSFailed, "ssl_fail_verify_error": snapshot.TLSFailed, "ssl_fail_verify_san": snapshot.TLSFailed,
	"ssl_handshake": snapshot.Handshakes, "upstream_cx_total": snapshot.Connected, "upstream_cx_tx_bytes_total": snapshot.SentBytes, "upstream_cx_rx_bytes_total": snapshot.ReceivedBytes,
}

const (
	ofClusters = "envoy_cluster_"
	ofHTTP     = "envoy_http_"
	uptime     = "envoy_server_uptime"
)

// Read reads the page of a proxy. An error says that it is no such page, or that it says nothing; see ReasonOf.
func Read(text []byte, names *snapshot.ProxyStats) (*Reading, error) {
	r := &Reading{Uptime: -1, clusters: map[Target]*Values{}, owned: map[Target]*Values{}}
	r.Refused = samples(text, func(name []byte) bool {
		return bytes.HasPrefix(name, []byte(ofClusters)) || bytes.HasPrefix(name, []byte(ofHTTP)) || string(name) == uptime || names.Own != nil
	}, func(s *sample) { r.take(s, names) })
	if r.Uptime < 0 && !r.counts && r.both == (Values{}) && len(bytes.TrimSpace(text)) > 0 && !bytes.HasPrefix(text, []byte("#")) {
		return nil, errors.New("want statistics in Prometheus' text format; check that the port of the pod is that of its proxy")
	}
	for _, of := range []map[Target]*Values{r.clusters, r.owned} {
		for _, v := range of {
			v.separate()
		}
	}
	return r, r.Err()
}

func (r *Reading) take(s *sample, names *snapshot.ProxyStats) {
	if family, ok := strings.CutPrefix(s.name, ofClusters); ok {
		r.takeCluster(family, s, names)
		return
	}
	if family, ok := strings.CutPrefix(s.name, ofHTTP); ok {
		r.takeHTTP(family, s)
		return
	}
	if s.name == uptime {
		r.Uptime = time.Duration(min(s.value, 1<<32)) * time.Second
		return
	}
	of := names.Own(s.name, s.label)
	if !of.Known {
		return
	}
	r.own, r.counts = true, true
	if of.Lacks != "" {
		r.lacks = max(r.lacks, of.Lacks) // one, whatever their order
		return
	}
	if of.Side == snapshot.NotCounted {
		return
	}
	v := r.at(r.owned, Target{Serves: of.Side == snapshot.Serves, ProxyTarget: of.Target})
	if of.Measure == snapshot.Latency {
		v.addLatency(s)
		return
	}
	v[of.Measure] += uint64(s.value)
	if of.Forbidden {
		v[snapshot.Forbidden] += uint64(s.value)
	}
	if of.Failed {
		v[of.Failure] += uint64(s.value)
	}
}

// takeCluster reads a statistic of a cluster. Envoy names tags envoy_cluster_name and envoy_response_code_class ("2") by itself, and
// configurations cluster_name and response_code_class ("2xx").
func (r *Reading) takeCluster(family string, s *sample, names *snapshot.ProxyStats) {
	target, side := names.Cluster(first(s, "cluster_name", "envoy_cluster_name"))
	if side == snapshot.NotCounted {
		return
	}
	r.counts = true
	of, known := families[family]
	switch {
	case known:
	case family == "upstream_rq_time_bucket":
		of = snapshot.Latency
	case family == "upstream_rq", family == "upstream_rq_xx":
		class := first(s, "response_code_class", "envoy_response_code_class")
		if class == "" && first(s, "response_code", "envoy_response_code") == "403" {
			of = snapshot.Forbidden
			break
		}
		if class == "" || class[0] < '1' || class[0] > '5' {
			return // by another code, which repeats it
		}
		of = snapshot.Answered1xx + snapshot.Measure(class[0]-'1')
	default:
		return
	}
	if s.value == 0 {
		return
	}
	v := r.at(r.clusters, Target{Serves: side == snapshot.Serves, ProxyTarget: target})
	if of == snapshot.Latency {
		v.addLatency(s)
		return
	}
	v[of] += uint64(s.value)
}

// takeHTTP reads what the listeners of a proxy count.
func (r *Reading) takeHTTP(family string, s *sample) {
	n := uint64(s.value)
	if first(s, "http_conn_manager_prefix", "envoy_http_conn_manager_prefix") == "" {
		return // of the proxy's own listeners
	}
	switch result, shadow := s.label("authz_enforce_result"), s.label("authz_dry_run_result"); {
	case family == "no_cluster":
		r.both[snapshot.NoCluster] += n
	case family == "no_route":
		r.both[snapshot.NoRoute] += n
	case family == "rbac" && result == "allowed", family == "rbac_allowed":
		r.both[snapshot.LetIn] += n
	case family == "rbac" && result == "denied", family == "rbac_denied":
		r.both[snapshot.Refused] += n
	case family == "rbac" && shadow == "denied", family == "rbac_shadow_denied":
		r.both[snapshot.ShadowRefused] += n
	case family == "rbac" && shadow == "allowed", family == "rbac_shadow_allowed":
		r.both[snapshot.ShadowLetIn] += n
	}
}

func first(s *sample, names ...string) string {
	for _, name := range names {
		if value := s.label(name); value != "" {
			return value
		}
	}
	return ""
}

// at is where the numbers of a target are.
func (r *Reading) at(of map[Target]*Values, t Target) *Values {
	v := of[t]
	if v == nil && len(of) >= MaxTargets {
		t, r.Overflow = Target{}, true
		v = of[t]
	}
	if v == nil {
		v = &Values{}
		of[t] = v
	}
	return v
}

// addLatency adds a line of a histogram, whose buckets have those below them, too. See separate.
func (v *Values) addLatency(s *sample) {
	le, err := strconv.ParseFloat(s.label("le"), 64)
	if err != nil {
		return
	}
	// Of bounds that lie between two of ours, the last one has them all.
	if i := bucket(le); exact(le) {
		v[counters+i] += uint64(s.value)
	}
}

// exact: an upper end is one of ours, or none.
func exact(le float64) bool {
	i := bucket(le)
	return i == len(Bounds) && le > 1e300 || i < len(Bounds) && Bounds[i] == le
}

// separate takes from each bucket those below it. A proxy with other bounds leaves some of ours at 0: theirs are in the next.
func (v *Values) separate() {
	below := uint64(0)
	for i := counters; i < len(v); i++ {
		n := v[i]
		v[i] = n - min(below, n)
		below = max(below, n)
	}
}

// chosen are the numbers by target: the proxy's own, or those of its clusters, never both. What has no target is with the requests that
// the pod gets.
func (r *Reading) chosen(own bool) map[Target]*Values {
	of := r.clusters
	if own {
		of = r.owned
	}
	if r.both == (Values{}) {
		return of
	}
	out := maps.Clone(of)
	sum := r.both
	if served := of[Target{Serves: true}]; served != nil {
		sum.Add(served)
	}
	out[Target{Serves: true}] = &sum
	return out
}

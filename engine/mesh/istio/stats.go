package istio

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// statsRead are the statistics that are read, by their names before tags are taken out of them. See
// https://www.envoyproxy.io/docs/envoy/latest/configuration/upstream/cluster_manager/cluster_stats and
// https://istio.io/latest/docs/reference/config/metrics/. The semicolon is part of the names of clusters in Istio's proxies
// (pilot/pkg/networking/util, DelimitedStatsPrefix), and keeps internal. and external., which repeat them, out.
const statsRead = `^cluster\.(outbound|inbound|PassthroughCluster|BlackHoleCluster).*;\.(upstream_rq_([1-5]xx|403|time|timeout|per_try_timeout|rx_reset|pending_overflow|retry)|` +
	`upstream_cx_(total|connect_fail|none_healthy|destroy_remote_with_active_rq|rx_bytes_total|tx_bytes_total)|ssl\.(handshake|connection_error|fail_verify_error|fail_verify_san))$` +
	`|^http\..*\.(no_cluster|no_route|rbac\..*)$|^server\.uptime$|istio_(build|requests_total|request_duration_milliseconds|tcp_)`

// statsUnused are some that a proxy has for each cluster with TLS before its first request.
const statsUnused = `^cluster\.outbound.*;\.ssl\.connection_error$|istio_build`

// proxyStats are those at the port on which Istio's proxies serve Envoy's alone (istio.io: Ports used by Istio).
var proxyStats = &snapshot.ProxyStats{
	Port:    15090,
	Path:    "stats/prometheus?usedonly&filter=" + url.QueryEscape(statsRead),
	Unused:  "stats/prometheus?filter=" + url.QueryEscape(statsUnused),
	Cluster: statsCluster, Own: ownCount, Node: statsNode, Counts: statsKept, Uncounted: uncounted,
	Secure: secureStats, SecureHint: "AuthorizationPolicies and PeerAuthentications hold for this port, too, unless the annotation traffic.sidecar.istio.io/excludeInboundPorts of the pod names it",
}

// secureStatsEnv names the port of the listener that passes requests with a certificate of the mesh on to the one above (Istio 1.31,
// pilot/cmd/pilot-agent/options; envoy_bootstrap.json).
const secureStatsEnv = "ENVOY_SECURE_METRICS_PORT"

// secureStats implements ProxyStats.Secure.
func secureStats(pod *corev1.Pod) (port uint16) {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, e := range list[i].Env {
				if e.Name != secureStatsEnv || !isProxy(&list[i]) || e.ValueFrom != nil {
					continue
				}
				n, err := strconv.ParseUint(e.Value, 10, 16) // the proxy takes another text for none, too
				if err != nil {
					n = 0
				}
				port = uint16(n)
			}
		}
	}
	return port
}

// statsCluster leaves out the clusters by which gateways pass connections on (outbound_.): who calls counts them.
func statsCluster(name string) (snapshot.ProxyTarget, snapshot.CountSide) {
	name = strings.TrimSuffix(name, ";")
	switch {
	case strings.HasPrefix(name, "inbound|"):
		return snapshot.ProxyTarget{}, snapshot.Serves
	case name == "PassthroughCluster", name == "BlackHoleCluster":
		return snapshot.ProxyTarget{}, snapshot.Calls
	case !strings.HasPrefix(name, "outbound|"):
		return snapshot.ProxyTarget{}, snapshot.NotCounted
	}
	target, _ := proxyTarget(name)
	return target, snapshot.Calls
}

// failures are reasons by the flags of answers (envoyproxy.io: access logs, RESPONSE_FLAGS). UF is also what a refused certificate becomes.
var failures = map[string]snapshot.Measure{
	"UT": snapshot.TimedOut, "UPE": snapshot.ResetByPeer, "UC": snapshot.ResetByPeer, "UR": snapshot.ResetByPeer,
	"UO": snapshot.Overflowed, "UF": snapshot.NotConnected, "UH": snapshot.NoneHealthy, "NC": snapshot.NoCluster, "NR": snapshot.NoRoute,
}

// ownMeasures are those of the metrics other than istio_requests_total. Istio names bytes as the caller's side of a proxy sees them: sent is
// what the destination answers.
var ownMeasures = map[string]snapshot.Measure{
	"istio_request_duration_milliseconds_bucket": snapshot.Latency,
	"istio_tcp_connections_opened_total":         snapshot.Connected,
	"istio_tcp_received_bytes_total":             snapshot.SentBytes,
	"istio_tcp_sent_bytes_total":                 snapshot.ReceivedBytes,
}

// ownCount reads the metrics of the filter istio.stats. Both proxies of a request report it, by the label reporter. The label
// destination_service is the host that was called, without its port. A Telemetry may remove any label (istio.io: Telemetry,
// MetricsOverrides.TagOverride), which is not there then; what has no value is "unknown" otherwise, and a status "0".
func ownCount(name string, label func(string) string) snapshot.OwnCount {
	if name == "istio_build" { // is there before the first request
		return snapshot.OwnCount{Known: true}
	}
	of, known := ownMeasures[name]
	if !known && name != "istio_requests_total" {
		return snapshot.OwnCount{}
	}
	out := snapshot.OwnCount{Known: true, Measure: of}
	switch label("reporter") {
	case "":
		out.Lacks = "reporter"
		return out
	case "source":
		out.Side, out.Target.Host = snapshot.Calls, label("destination_service")
	case "destination":
		out.Side = snapshot.Serves
	default:
		return snapshot.OwnCount{Known: true}
	}
	if out.Side == snapshot.Calls && out.Target.Host == "" {
		out.Lacks = "destination_service"
	}
	if known {
		return out
	}
	out.Measure = snapshot.Unanswered
	code := label("response_code")
	if code == "" {
		out.Lacks = "response_code"
	}
	if len(code) == 3 && code[0] >= '1' && code[0] <= '5' {
		out.Measure = snapshot.Answered1xx + snapshot.Measure(code[0]-'1')
	}
	out.Forbidden = code == "403" || label("grpc_response_status") == "7"
	for flag := range strings.SplitSeq(label("response_flags"), ",") {
		if of, failed := failures[flag]; failed {
			out.Failure, out.Failed = of, true
			break
		}
	}
	return out
}

// statsNode reads TYPE~ADDRESS~POD.NAMESPACE~DOMAIN (pilot/pkg/model, ParseServiceNodeWithMetadata). Names of pods may have dots.
func statsNode(id string) (namespace, pod string, ok bool) {
	parts := strings.Split(id, "~")
	if len(parts) != 4 {
		return "", "", false
	}
	dot := strings.LastIndexByte(parts[2], '.')
	if dot <= 0 || dot == len(parts[2])-1 {
		return "", "", false
	}
	return parts[2][dot+1:], parts[2][:dot], true
}

// A statistic that is read, and how much of the settings that include it is looked at.
const (
	statsExample = "cluster.outbound|80||a.b.svc.cluster.local;.upstream_rq_2xx"
	maxMatchers  = 100
	maxMatcher   = 4096
)

// statsKept looks at the settings from which Istio's proxies make their configuration: those of the mesh, whose place annotations of the pod
// take (pkg/bootstrap/config.go, getStatsOptions). Without any, a proxy keeps no numbers of clusters.
func statsKept(metadata []byte) bool {
	var all structpb.Struct
	if proto.Unmarshal(metadata, &all) != nil {
		return false
	}
	matcher := all.GetFields()["PROXY_CONFIG"].GetStructValue().GetFields()["proxyStatsMatcher"].GetStructValue().GetFields()
	annotations := all.GetFields()["ANNOTATIONS"].GetStructValue().GetFields()
	for kind, matches := range map[string]func(string) bool{
		"Prefixes": func(text string) bool { return strings.HasPrefix(statsExample, text) },
		"Suffixes": func(text string) bool { return strings.HasSuffix(statsExample, text) },
		"Regexps": func(text string) bool {
			whole, err := regexp.Compile("^(?:" + text + ")$")
			return err == nil && whole.MatchString(statsExample)
		},
	} {
		var texts []string
		for _, v := range matcher["inclusion"+kind].GetListValue().GetValues() {
			texts = append(texts, v.GetStringValue())
		}
		if own, there := annotations["sidecar.istio.io/statsInclusion"+kind]; there {
			texts = strings.Split(own.GetStringValue(), ",")
		}
		for _, text := range texts[:min(len(texts), maxMatchers)] {
			if text != "" && len(text) <= maxMatcher && matches(text) {
				return true
			}
		}
	}
	return false
}

package telemetry

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// hubSide is a meshctl serve of whose proxies agents have said something in all of the last 15 minutes.
type hubSide struct {
	of       *Telemetry
	registry *prometheus.Registry
	// said is what agents said of the proxies last, and at when that was.
	said []*Sent
	at   time.Time
}

// each is what comes of an edge in one point: counters of measures, and latencies from the third bucket on.
var each = []struct {
	measure snapshot.Measure
	n       uint64
}{{snapshot.Answered2xx, 1200}, {snapshot.Answered5xx, 3}, {snapshot.Retried, 4}, {snapshot.SentBytes, 1 << 20}, {snapshot.ReceivedBytes, 1 << 22}}

var latencies = []uint64{900, 200, 94, 9}

// newHubSide has the proxies of so many clusters with 100 workloads each. A workload calls 17 services of its cluster and 2 of the next one, and is called.
func newHubSide(t testing.TB, clusters int) *hubSide {
	t.Helper()
	const services = 100
	in := enginetest.World(enginetest.Size{Services: services, Clusters: clusters, FederateEvery: 1})
	for _, c := range in.Clusters {
		c.Relay = &snapshot.Relay{}
	}
	state := engine.Translate(in)
	local, federated := map[string]string{}, map[string]string{}
	name := func(cluster, service int) string {
		return enginetest.Cluster(cluster%clusters) + "/" + enginetest.Service(service%services)
	}
	for d := range state.Plan.Destinations.All() {
		at := d.Destination.Spec.KubeService.Ref
		local[at.ClusterName+"/"+at.Name] = d.LocalFQDN
		if d.Federation != nil {
			federated[at.ClusterName+"/"+at.Name] = d.Federation.Hostname
		}
	}
	h := &hubSide{of: &Telemetry{}, registry: prometheus.NewRegistry(), at: time.Now().Add(-traffic.Kept - traffic.Point)}
	survey, byCluster := traffic.Look(state), map[string][]*traffic.Pod{}
	for i := range survey.Pods {
		pod := &survey.Pods[i]
		byCluster[pod.Proxy.Cluster] = append(byCluster[pod.Proxy.Cluster], pod)
		var cluster, service int
		if _, err := fmt.Sscanf(pod.Proxy.Cluster+" "+pod.Workload.Spec.Kubernetes.Controller.Name, "cluster-%d service-%d", &cluster, &service); err != nil {
			continue // a gateway
		}
		said := &Sent{Proxy: pod.Proxy, Parts: &traffic.Parts{Uptime: time.Hour, Counts: true, Clusters: []traffic.Part{newPart(traffic.Target{Serves: true})}}}
		for n := range 19 {
			host := local[name(cluster-1, service+n)]
			if n >= 17 {
				host = federated[name(cluster, service+n)]
			}
			require.NotEmpty(t, host)
			said.Parts.Clusters = append(said.Parts.Clusters, newPart(traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: host, Port: 8080}}))
		}
		h.said = append(h.said, said)
	}
	term := newTerm(Options{State: func() *snapshot.State { return state }, Log: slog.New(slog.DiscardHandler)}, h.at)
	require.NoError(t, term.register(h.registry))
	h.of.current.Store(term)
	term.begin(h.at, state, survey.Entrances, byCluster)
	return h
}

func newPart(of traffic.Target) traffic.Part {
	out := traffic.Part{Target: of, Latency: make([]uint64, len(traffic.Bounds)+1)}
	for _, came := range each {
		out.Measures, out.Values = append(out.Measures, uint32(came.measure)), append(out.Values, 0)
	}
	return out
}

// round has agents say something of all proxies, a point after the round before.
func (h *hubSide) round() {
	h.at = h.at.Add(traffic.Point)
	for _, s := range h.said {
		s.Parts.Started = h.at.Add(-s.Parts.Uptime)
		for i := range s.Parts.Clusters {
			part := &s.Parts.Clusters[i]
			for n, came := range each {
				part.Values[n] += came.n + uint64(i)
			}
			for n, came := range latencies {
				part.Latency[2+n] += came
			}
		}
		h.of.current.Load().take(h.at, s)
	}
}

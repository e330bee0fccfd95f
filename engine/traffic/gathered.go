package traffic

import (
	"math"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Labels of series, as the service discovery of Prometheus is mostly configured: the first that there is counts.
var (
	podLabels       = []string{"pod", "kubernetes_pod_name", "pod_name"}
	namespaceLabels = []string{"namespace", "kubernetes_namespace", "pod_namespace"}
)

// StartedSeries is the name under which Gathered takes when a proxy started, in seconds since 1970.
const StartedSeries = "started"

// Gathered are numbers that somebody else has read of the proxies of one cluster, as series of a Prometheus at one time: the Readings of its
// pods. It is not ready: use NewGathered.
type Gathered struct {
	pods map[podAt]*gatheredPod
	at   time.Time
	// Unknown is how many series were of no pod that was asked for, and Refused how many were not understood.
	Unknown, Refused int
}

type podAt struct{ namespace, name string }

type gatheredPod struct {
	stats   *snapshot.ProxyStats
	reading *Reading
}

// NewGathered gathers the numbers of pods, at a time by the clock of who has read them.
func NewGathered(pods []*Pod, at time.Time) *Gathered {
	g := &Gathered{pods: map[podAt]*gatheredPod{}, at: at}
	for _, p := range pods {
		g.pods[podAt{p.Proxy.Namespace, p.Proxy.Pod}] = &gatheredPod{stats: p.Stats}
	}
	return g
}

// Take takes a series. A reading of a pod has what was taken of it.
func (g *Gathered) Take(name string, labels map[string]string, value float64) {
	s := sample{name: name, value: value}
	if math.IsNaN(value) || value < 0 || value > maxCount || len(labels) > maxLabels {
		g.Refused++
		return
	}
	for label, of := range labels {
		if len(label) > maxText || !printed(of) {
			g.Refused++
			return
		}
		s.labels = append(s.labels, labelOf{label, of})
	}
	at := g.pods[podAt{first(&s, namespaceLabels...), first(&s, podLabels...)}]
	if at == nil {
		g.Unknown++
		return
	}
	if at.reading == nil {
		at.reading = &Reading{Uptime: -1, Unordered: true, clusters: map[Target]*Values{}, owned: map[Target]*Values{}}
	}
	if name == StartedSeries {
		at.reading.Started = time.UnixMilli(int64(value * 1000))
		at.reading.Uptime = max(g.at.Sub(at.reading.Started), 0)
		return
	}
	at.reading.take(&s, at.stats)
}

// Reading is that of a pod; nil if nothing was taken of it. It may be called once for each pod.
func (g *Gathered) Reading(p Proxy) *Reading {
	at := g.pods[podAt{p.Namespace, p.Pod}]
	if at == nil || at.reading == nil {
		return nil
	}
	for _, of := range []map[Target]*Values{at.reading.clusters, at.reading.owned} {
		for _, v := range of {
			v.separate()
		}
	}
	return at.reading
}

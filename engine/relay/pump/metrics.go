package pump

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the calls between an agent and the hub, in metrics.
const (
	Report    = "report"
	Desire    = "desire"
	Exchange  = "exchange"
	Telemetry = "telemetry"
)

// Series are the numbers of one cluster, on either side.
type Series struct {
	Cluster string
	// Streams are by the name of their call. Hub: they are those of the hub, which receives what goes up.
	Streams map[string]Numbers
	Hub     bool
	// Complete: the hub has all objects of the cluster.
	Complete bool
	// LagUp and LagDown are for how long something waits.
	LagUp, LagDown time.Duration
	// GenerationLag is of how many generations that stood the agent does not know; only the hub knows it.
	GenerationLag uint64
	// CertificateEnds is when that of the agent does; zero if that is not known.
	CertificateEnds time.Time
	// Refusals are callers that were refused as the agent, and Mismatches are kinds that differed although nothing was to be sent; only the
	// hub counts them.
	Refusals, Mismatches uint64
}

// heard is when something arrived last.
func (s *Series) heard() time.Time {
	var last time.Time
	for name, n := range s.Streams {
		if name != Telemetry && n.Heard.After(last) {
			last = n.Heard
		}
	}
	return last
}

// Collector computes the metrics of relays on each scrape. It implements prometheus.Collector.
type Collector struct {
	series func() []Series

	push, pull, warmed, bytes, frames, resyncs, unacked, generations, stale, rejects, resets, expiry, refused, mismatches *prometheus.Desc
}

// NewCollector prepares a Collector.
func NewCollector(series func() []Series) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"cluster"}, labels...), nil)
	}
	return &Collector{
		series: series,
		push:   desc("relay_push_clients_connected", "1 if there is a stream on which the agent of a cluster reports, as Gloo Mesh names it."),
		pull:   desc("relay_pull_clients_connected", "1 if there is a stream on which the agent of a cluster follows what is to stand there, as Gloo Mesh names it."),
		warmed: desc("relay_push_clients_warmed", "1 if the hub has all objects of a cluster, as Gloo Mesh names it."),
		bytes:  desc("meshctl_relay_bytes_total", "Bytes of frames, before compression and encryption; up is from the agent to the hub.", "stream", "direction"),
		frames: desc("meshctl_relay_frames_total", "Frames; up is from the agent to the hub.", "stream", "direction"),
		resyncs: desc("meshctl_relay_resync_total", "Kinds that were compared after a stream had begun: all objects were sent (full), those that differ (delta), or none (same).",
			"stream", "how"),
		unacked:     desc("meshctl_relay_unacked_seconds", "For how long the oldest waits that was sent and is not acknowledged; up, while the hub compares: since the stream began.", "direction"),
		generations: desc("meshctl_relay_settled_generation_lag", "Of how many generations that stood in the cluster its agent does not know."),
		stale:       desc("meshctl_relay_stale_seconds", "Time since the other side was last heard. 35 s end a stream."),
		rejects:     desc("meshctl_relay_rejects_total", "Objects that the receiver did not take.", "stream"),
		resets:      desc("meshctl_relay_stream_resets_total", "Streams that ended, by reason.", "stream", "reason"),
		expiry:      desc("meshctl_relay_certificate_expiry_seconds", "Time until the certificate of the agent ends; negative afterwards."),
		refused:     desc("meshctl_relay_refused_total", "Callers that were refused as the agent of a cluster; whose agent they are is what they say."),
		mismatches:  desc("meshctl_relay_mismatches_total", "Kinds that were compared again because what the hub had was not what the agent said; more than 0 is a bug in meshctl."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.push, c.pull, c.warmed, c.bytes, c.frames, c.resyncs, c.unacked, c.generations, c.stale, c.rejects, c.resets, c.expiry, c.refused, c.mismatches,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, s := range c.series() {
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.Cluster}, labels...)...)
		}
		counter := func(d *prometheus.Desc, v uint64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{s.Cluster}, labels...)...)
		}
		for name, n := range s.Streams {
			up, down := n.Sent, n.Received
			if s.Hub {
				up, down = down, up
			}
			counter(c.bytes, up.Bytes, name, "up")
			counter(c.bytes, down.Bytes, name, "down")
			counter(c.frames, up.Frames, name, "up")
			counter(c.frames, down.Frames, name, "down")
			for reason, count := range n.Resets {
				counter(c.resets, count, name, reason)
			}
			if name == Exchange || name == Telemetry {
				continue
			}
			counter(c.resyncs, n.Resyncs.Full, name, "full")
			counter(c.resyncs, n.Resyncs.Delta, name, "delta")
			counter(c.resyncs, n.Resyncs.Same, name, "same")
			counter(c.rejects, n.Rejects, name)
		}
		gauge(c.unacked, s.LagUp.Seconds(), "up")
		gauge(c.unacked, s.LagDown.Seconds(), "down")
		if heard := s.heard(); !heard.IsZero() {
			gauge(c.stale, now.Sub(heard).Seconds())
		}
		if !s.CertificateEnds.IsZero() {
			gauge(c.expiry, s.CertificateEnds.Sub(now).Seconds())
		}
		gauge(c.push, one(s.Streams[Report].Open))
		gauge(c.pull, one(s.Streams[Desire].Open))
		if s.Hub {
			gauge(c.warmed, one(s.Complete))
			gauge(c.generations, float64(s.GenerationLag))
			counter(c.refused, s.Refusals)
			counter(c.mismatches, s.Mismatches)
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

package hub

import (
	"time"

	"github.com/meshctl/meshctl/engine/relay/pump"
)

// Collector computes the metrics of a Hub on each scrape.
func (h *Hub) Collector() *pump.Collector {
	return pump.NewCollector(func() []pump.Series {
		now, all := time.Now(), h.Statuses()
		out := make([]pump.Series, 0, len(all))
		for i := range all {
			s := &all[i]
			out = append(out, pump.Series{
				Cluster: s.Cluster, Hub: true, Complete: s.Complete, LagUp: s.LagUp(now), LagDown: s.LagDown(now),
				Streams:       map[string]pump.Numbers{pump.Report: s.Report, pump.Desire: s.Desire, pump.Exchange: s.Exchange, pump.Telemetry: s.Telemetry},
				GenerationLag: s.Generation - s.Told, CertificateEnds: s.Relay.CertificateEnds, Refusals: s.Refusals, Mismatches: s.Mismatches,
			})
		}
		return out
	})
}

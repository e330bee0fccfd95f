package relay

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// maxReading is the largest reading that is sent, in bytes: less than gRPC takes.
const maxReading = 3 << 20

// ReadingOf is what an agent says of a proxy, as it is sent.
func ReadingOf(s *telemetry.Sent) *relayv1.Reading {
	out := &relayv1.Reading{
		Pod: &relayv1.Name{Namespace: s.Proxy.Namespace, Name: s.Proxy.Pod}, Created: s.Proxy.Created, AgeMilliseconds: uint64(max(s.Age, 0).Milliseconds()),
		Failed: string(s.Reason), Detail: s.Detail,
	}
	p := s.Parts
	if p == nil {
		return out
	}
	if !p.Started.IsZero() {
		started := p.Started.UnixMilli()
		out.Started, out.UptimeSeconds = &started, uint64(p.Uptime/time.Second)
	}
	out.Counts, out.Own, out.Refused, out.Overflow = p.Counts, p.Own, p.Refused, p.Overflow
	out.Clusters, out.Owned, out.Both = countedOf(p.Clusters), countedOf(p.Owned), countedOf([]traffic.Part{p.Both})[0]
	if proto.Size(out) > maxReading {
		return &relayv1.Reading{Pod: out.GetPod(), Created: out.GetCreated(), Failed: string(traffic.Failed), Detail: "its proxy counts more than is sent"}
	}
	return out
}

func countedOf(parts []traffic.Part) []*relayv1.Counted {
	out := make([]*relayv1.Counted, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		out = append(out, &relayv1.Counted{
			Serves: p.Serves, Host: p.Host, Port: p.Port, Subset: p.Subset, Measures: p.Measures, Values: p.Values, Latency: p.Latency,
		})
	}
	return out
}

// maxAge bounds ages, which are added to times.
const maxAge = 1 << 40

// SentOf is a reading that came from an agent. Its cluster is not set: it is that of the agent.
func SentOf(r *relayv1.Reading) *telemetry.Sent {
	out := &telemetry.Sent{
		Proxy:  traffic.Proxy{Namespace: r.GetPod().GetNamespace(), Pod: r.GetPod().GetName(), Created: r.GetCreated()},
		Age:    time.Duration(min(r.GetAgeMilliseconds(), maxAge)) * time.Millisecond,
		Reason: traffic.Reason(r.GetFailed()), Detail: Text(r.GetDetail()),
	}
	if r.GetFailed() != "" {
		return out
	}
	out.Parts = &traffic.Parts{
		Counts: r.GetCounts(), Own: r.GetOwn(), Refused: r.GetRefused(), Overflow: r.GetOverflow(),
		Clusters: partsOf(r.GetClusters()), Owned: partsOf(r.GetOwned()),
	}
	if both := r.GetBoth(); both != nil {
		out.Parts.Both = partsOf([]*relayv1.Counted{both})[0]
	}
	if r != nil && r.Started != nil {
		out.Parts.Started, out.Parts.Uptime = time.UnixMilli(r.GetStarted()), time.Duration(min(r.GetUptimeSeconds(), 1<<32))*time.Second
	}
	return out
}

func partsOf(counted []*relayv1.Counted) []traffic.Part {
	out := make([]traffic.Part, 0, len(counted))
	for _, c := range counted {
		p := traffic.Part{Target: traffic.Target{Serves: c.GetServes()}, Measures: c.GetMeasures(), Values: c.GetValues(), Latency: c.GetLatency()}
		p.Host, p.Port, p.Subset = c.GetHost(), c.GetPort(), c.GetSubset()
		out = append(out, p)
	}
	return out
}

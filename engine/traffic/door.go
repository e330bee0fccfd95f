package traffic

import (
	"fmt"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Door is how numbers come in.
type Door string

// The doors. Scrape: meshctl serve reads the proxies, by way of the API server. Agent: the agent of the cluster reads them, at the addresses
// of their pods. Push: the proxies send them to the agent by themselves. Prometheus: a Prometheus has read them. Off: they are not read.
const (
	Scrape     Door = "scrape"
	Agent      Door = "agent"
	Push       Door = "push"
	Prometheus Door = "prometheus"
	Off        Door = "none"
)

// Entrance is how the numbers of one cluster come in.
type Entrance struct {
	Door Door
	// Prometheus is where, with that Door.
	Prometheus *multiclusterv1alpha1.PrometheusSource
	// Closed is why the door that was asked for cannot be used, as the end of a sentence; empty if it can.
	Closed string
}

// Entrances are those of all clusters of an Input. What the KubernetesCluster asks for counts; else, the agent reads the proxies of a cluster
// that is reached through one, and meshctl serve those of others.
func Entrances(in *snapshot.Input) map[string]Entrance {
	asked := map[string]*multiclusterv1alpha1.Telemetry{}
	for _, k := range in.Management.KubernetesClusters {
		asked[k.Name] = k.Spec.Telemetry
	}
	out := make(map[string]Entrance, len(in.Clusters))
	for _, c := range in.Clusters {
		out[c.Name] = entrance(asked[c.Name], c.Relay != nil)
	}
	return out
}

func entrance(asked *multiclusterv1alpha1.Telemetry, relayed bool) Entrance {
	out := Entrance{Door: Scrape}
	if relayed {
		out.Door = Agent
	}
	if asked == nil || asked.Door == "" {
		return out
	}
	out.Door = Door(asked.Door)
	switch {
	case out.Door == Scrape && relayed:
		out.Closed = "its API server is not reached, so that only its agent or a Prometheus can read its proxies"
	case out.Door == Push && !relayed:
		out.Closed = "its agent does not dial meshctl serve, and has nobody to hand over what proxies send; choose scrape or prometheus"
	case out.Door == Agent && !relayed:
		out.Closed = "its agent does not dial meshctl serve; choose scrape or prometheus"
	case out.Door == Prometheus && asked.Prometheus == nil:
		out.Closed = "its KubernetesCluster has no spec.telemetry.prometheus.url"
	case out.Door == Prometheus:
		out.Prometheus = asked.Prometheus
	case out.Door != Scrape && out.Door != Agent && out.Door != Push && out.Door != Off:
		out.Closed = fmt.Sprintf("its KubernetesCluster asks for the door %q, which this version does not know", snapshot.Clean(string(out.Door)))
	}
	return out
}

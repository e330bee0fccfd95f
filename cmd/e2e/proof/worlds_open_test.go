package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Counts of services' ports that were compared.
const (
	openListed = "open, and listed"
	closedOff  = "closed to callers without an identity"
)

// open compares where services are said to let in callers without an identity with what the pods behind them do with such requests.
func (d *drawnProxies) open(index *explain.Index, state *snapshot.State) (counts map[string]int, wrong []string) {
	counts = map[string]int{}
	exposure := explain.ExposureOf(index)
	for each := range state.Plan.Destinations.All() {
		k := each.Destination.Spec.KubeService
		if k == nil || k.Ref.Namespace != "shop" || slices.Contains(exposure.Unprotected, each.Ref) {
			continue
		}
		for _, port := range k.Ports {
			var said []explain.Opening
			for _, o := range exposure.Openings {
				if o.Service == each.Ref && slices.Contains(o.Ports, port.Port) {
					said = append(said, o)
				}
			}
			answer, pod := d.letsIn(each, port.Port, !strings.HasPrefix(port.Name, "tcp"))
			known := slices.ContainsFunc(said, func(o explain.Opening) bool { return o.Known })
			switch {
			case answer == envoy.Unknown:
				counts["open: proxies are not evaluated"]++
			case answer == envoy.Yes && len(said) == 0:
				wrong = append(wrong, fmt.Sprintf("%s lets in callers without an identity on port %d at pod %s, and is not listed: its own are %+v", each.Ref.Name, port.Port, pod, exposure.Openings))
			case answer == envoy.No && known && slices.ContainsFunc(said, func(o explain.Opening) bool { return o.Pods > 0 }):
				wrong = append(wrong, fmt.Sprintf("%s is listed for port %d, and no pod lets in callers without an identity: %+v", each.Ref.Name, port.Port, said))
			case answer == envoy.Yes:
				counts[openListed]++
			default:
				counts[closedOff]++
			}
		}
	}
	return counts, wrong
}

// letsIn reports whether a pod behind a port of a service lets in some request without an identity, and which one does.
func (d *drawnProxies) letsIn(of *snapshot.DestinationPlan, port uint32, requests bool) (answer envoy.Answer, pod string) {
	k := of.Destination.Spec.KubeService
	answer = envoy.No
	for i := range k.EndpointSubsets {
		part := &k.EndpointSubsets[i]
		number, serves := snapshot.SubsetPort(k, part, port)
		for _, e := range part.Endpoints {
			p := d.podAt(k.Ref.ClusterName, e.IpAddress)
			switch {
			case !serves || p == nil:
				continue
			case p.plain:
				return envoy.Yes, p.Name
			}
			in := envoy.Incoming{Address: e.IpAddress, Port: number, Connection: !requests}
			if requests {
				in.Plain = []string{"http/1.1"}
			}
			switch d.admits(d.configs[k.Ref.ClusterName][p.Name], in) {
			case envoy.Yes:
				return envoy.Yes, p.Name
			case envoy.Unknown:
				answer = envoy.Unknown
			}
		}
	}
	return answer, ""
}

// admits reports whether a proxy passes on some request that comes in this way.
func (d *drawnProxies) admits(config *envoy.Config, in envoy.Incoming) envoy.Answer {
	answer := envoy.No
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/", "/a", "/a/b.json", "/b", "/c"} {
			for _, team := range []string{"", "one", "two"} {
				request := envoy.Request{Method: method, Path: path, Headers: map[string]string{}}
				if team != "" {
					request.Headers["x-team"] = team
				}
				switch got := config.Receive(in, request); {
				case got.Stopped != "" || got.Passage.Answer == envoy.No:
				case got.Passage.Answer == envoy.Unknown:
					answer = envoy.Unknown
				default:
					return envoy.Yes
				}
			}
		}
	}
	return answer
}

// podAt is the pod of a cluster with an address; nil if none has it.
func (d *drawnProxies) podAt(cluster, address string) *worldProxy {
	for _, c := range d.world.clusters {
		for i := range c.pods {
			if c.name == cluster && c.pods[i].Address == address {
				return &c.pods[i]
			}
		}
	}
	return nil
}

package proof

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connectionFacts: how sidecars connect to each host, and to each subset.
func connectionFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p) {
		if s.view == nil {
			continue
		}
		view := *s.view
		if s.plan.ThroughGateways(view.Mesh) {
			view.Outlier = nil // it applies at the gateways
		}
		for _, port := range ports(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: "connections to " + name, want: plannedConnection(&view),
					look: func(config *envoy.Config) []string { return configuredConnection(config.Cluster(name)) },
				})
			}
		}
	}
	return out
}

// subsetNames begins with the empty one, which is the complete service.
func subsetNames(s seen) []string {
	out := []string{""}
	if s.view != nil {
		for _, subset := range s.view.Subsets {
			out = append(out, subset.Name)
		}
	}
	return out
}

func plannedConnection(v *snapshot.View) []string {
	out := []string{"outlier none", "tls by endpoint", "keep-alive none"}
	if o := v.Outlier; o != nil {
		out[0] = fmt.Sprintf("outlier %d every %s for %s up to %d%%", o.Value.ConsecutiveErrors,
			protoDuration(o.Value.Interval.Duration), protoDuration(o.Value.BaseEjectionTime.Duration), o.Value.MaxEjectionPercent)
	}
	if v.TLS != nil {
		out[1] = map[networkingv1.TLSMode]string{
			networkingv1.TLSModeDisable: "tls none", networkingv1.TLSModeSimple: "tls simple", networkingv1.TLSModeIstioMutual: "tls mutual",
		}[v.TLS.Value]
	}
	if k := v.KeepAlive; k != nil {
		out[2] = fmt.Sprintf("keep-alive %d after %v every %v", k.Value.Probes, k.Value.Time.Seconds(), k.Value.Interval.Seconds())
	}
	return out
}

func configuredConnection(c *envoy.Cluster) []string {
	if c == nil {
		return []string{"no cluster"}
	}
	out := []string{"outlier none", "tls none", "keep-alive none"}
	if o := c.OutlierDetection; o != nil {
		out[0] = fmt.Sprintf("outlier %d every %s for %s up to %d%%", number(o.Consecutive5XX), o.Interval, o.BaseEjectionTime, number(o.MaxEjectionPercent))
	}
	socket := c.TransportSocket.TypedConfig
	switch {
	case len(c.TransportSocketMatches) > 0:
		out[1] = "tls by endpoint"
	case len(socket.CommonTLSContext.TLSCertificateSDSSecretConfigs) > 0:
		out[1] = "tls mutual"
	case socket.Type != "":
		out[1] = "tls simple"
	}
	if k := c.UpstreamConnectionOptions.TCPKeepalive; k != nil {
		out[2] = fmt.Sprintf("keep-alive %d after %d every %d", k.KeepaliveProbes, k.KeepaliveTime, k.KeepaliveInterval)
	}
	return out
}

func number(n *uint32) uint32 {
	if n == nil {
		return 0
	}
	return *n
}

// endpointFacts: the endpoints of each host and subset. Services of other meshes
// have the gateways of their meshes as endpoints, with equal weights.
func endpointFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p) {
		for _, port := range ports(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: "endpoints of " + name, want: plannedEndpoints(s, p.zone, port, subset),
					look: func(config *envoy.Config) []string {
						return configuredEndpoints(config.EndpointsOf(name), s.remote && !s.plan.Federation.Flat)
					},
				})
			}
		}
	}
	return out
}

func plannedEndpoints(s seen, zone string, port uint32, subset string) []string {
	var selector map[string]string
	if s.view != nil {
		for _, one := range s.view.Subsets {
			if one.Name == subset {
				selector = one.Labels
			}
		}
	}
	pods := podEndpoints(s.plan, port, selector, dialling{
		plain: s.view != nil && s.view.TLS != nil && s.view.TLS.Value != networkingv1.TLSModeIstioMutual,
		near:  zone, nearFirst: s.view != nil && s.view.Outlier != nil && !s.remote,
		entry: s.remote,
	})
	if !s.remote || s.plan.Federation.Flat {
		return pods
	}
	var out []string
	for _, gw := range s.plan.Mesh.Gateways {
		for _, address := range gw.Addresses {
			if len(pods) > 0 {
				out = append(out, fmt.Sprintf("%s:%d mutual share 1", address, gw.Port))
			}
		}
	}
	slices.Sort(out)
	return out
}

// isGateway: users configure how gateways accept connections, so callers must not
// assume mutual TLS.
func isGateway(labels map[string]string) bool { return strings.HasSuffix(labels["istio"], "gateway") }

// dialling is how a proxy connects to pods.
type dialling struct {
	// plain is without mutual TLS.
	plain bool
	// nearFirst: endpoints in other zones get requests only if no others are left.
	// Istio does so only with outlier detection (istio.io
	// LocalityLoadBalancerSetting), and not for ServiceEntries, which have no zones.
	near      string
	nearFirst bool
	// entry: the endpoints are those of a ServiceEntry, in which a pod is one endpoint. Of its own cluster's pods, istiod takes every
	// address from the EndpointSlices.
	entry bool
}

// podEndpoints are the pods of a service that have the labels.
func podEndpoints(d *snapshot.DestinationPlan, port uint32, selector map[string]string, how dialling) []string {
	service := d.Destination.Spec.KubeService
	at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port })
	var near, far []string
	for _, part := range service.EndpointSubsets {
		for _, p := range part.Ports {
			if p.Name != service.Ports[at].Name {
				continue
			}
			for _, e := range part.Endpoints {
				if !contains(e.Labels, selector) {
					continue
				}
				addresses := []string{e.IpAddress}
				if !how.entry {
					addresses = append(addresses, e.OtherAddresses...)
				}
				for _, address := range addresses {
					text := fmt.Sprintf("%s:%d", address, p.Port)
					if !how.plain && !isGateway(e.Labels) {
						text += " mutual"
					}
					if how.nearFirst && e.SubLocality.Zone != how.near {
						far = append(far, text)
					} else {
						near = append(near, text)
					}
				}
			}
		}
	}
	if len(near) > 0 {
		for i := range far {
			far[i] += " priority 1"
		}
	}
	out := append(near, far...)
	slices.Sort(out)
	return out
}

func configuredEndpoints(endpoints []envoy.Endpoint, shares bool) []string {
	weights := map[string]uint32{}
	for _, e := range endpoints {
		text := fmt.Sprintf("%s:%d", e.Address, e.Port)
		if match, _ := e.Metadata["envoy.transport_socket_match"].(map[string]any); match["tlsMode"] == "istio" {
			text += " mutual"
		}
		if e.Priority > 0 {
			text += fmt.Sprintf(" priority %d", e.Priority)
		}
		weights[text] += e.Weight
	}
	var unit uint32 // weights are relative
	for _, weight := range weights {
		for unit, weight = weight, unit; weight > 0; {
			unit, weight = weight, unit%weight
		}
	}
	var out []string
	for text, weight := range weights {
		if shares {
			text += fmt.Sprintf(" share %d", weight/max(unit, 1))
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// gatewayFacts: the SNI names that the east-west gateway accepts, and their
// endpoints. Every name must have endpoints.
func gatewayFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, mesh := range plan.Meshes {
		if mesh.Cluster != p.cluster {
			continue
		}
		for _, gw := range mesh.Gateways {
			if gw.Service.Namespace == p.namespace && contains(p.labels, gw.Selector) {
				out = append(out, sniNames(plan, p, gw.ContainerPort)...)
			}
		}
	}
	return out
}

// sniNames lists the services of the gateway's own cluster, and no others: Istio
// accepts every name that it knows under the hosts of the Gateway.
func sniNames(plan *snapshot.Plan, p proxy, listener uint32) []fact {
	var names []string
	var out []fact
	for _, s := range visible(plan, p) {
		f := s.plan.Federation
		if f == nil || f.Flat || s.remote {
			continue
		}
		for subset, selector := range sniSubsets(s) {
			for _, port := range s.plan.Destination.Spec.KubeService.Ports {
				name := sniName(port.Port, subset, f.Hostname)
				names = append(names, name)
				want := podEndpoints(s.plan, port.Port, selector, dialling{entry: true})
				out = append(out, fact{
					name: "endpoints behind " + name, want: want,
					look: func(config *envoy.Config) []string {
						return configuredEndpoints(config.EndpointsOf(config.TCPCluster(listener, name)), false)
					},
				})
			}
		}
	}
	virtual, behind := virtualSNINames(plan, p, listener)
	names, out = append(names, virtual...), append(out, behind...)
	slices.Sort(names)
	return append(out, fact{
		name: "names that the gateway accepts", want: names,
		look: func(config *envoy.Config) []string { return config.ServerNames(listener) },
	})
}

// sniName is the SNI name of connections to a port of a host.
func sniName(port uint32, subset, host string) string {
	return fmt.Sprintf("outbound_.%d_.%s_.%s", port, subset, host)
}

// sniSubsets are the labels, by name, of the subsets that other meshes use.
func sniSubsets(s seen) map[string]map[string]string {
	out := map[string]map[string]string{"": nil}
	for _, v := range s.plan.Views {
		if v.Mesh == s.plan.Mesh {
			continue
		}
		for _, subset := range v.Subsets {
			out[subset.Name] = subset.Labels
		}
	}
	return out
}

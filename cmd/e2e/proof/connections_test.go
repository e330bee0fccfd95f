package proof

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/demo/envoy"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connectionFacts: how sidecars connect to each host, and to each subset.
func connectionFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p.cluster) {
		if s.view == nil {
			continue
		}
		for _, port := range httpPorts(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: "connections to " + name, want: plannedConnection(s.view),
					look: func(told *envoy.Config) []string { return toldConnection(told.Cluster(name)) },
				})
			}
		}
	}
	return out
}

// subsetNames begins with the empty one, which is the whole service.
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

func toldConnection(c *envoy.Cluster) []string {
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

// endpointFacts: where each host and subset is, from here. Services of other
// meshes are behind the gateways of theirs; each gateway's share is as large as
// the number of endpoints that it stands for.
func endpointFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, s := range visible(plan, p.cluster) {
		for _, port := range httpPorts(s.plan) {
			for _, subset := range subsetNames(s) {
				name := clusterName(s.host, port, subset)
				out = append(out, fact{
					name: "endpoints of " + name, want: plannedEndpoints(s, port, subset),
					look: func(told *envoy.Config) []string { return toldEndpoints(told.EndpointsOf(name), s.remote) },
				})
			}
		}
	}
	return out
}

func plannedEndpoints(s seen, port uint32, subset string) []string {
	var selector map[string]string
	if s.view != nil {
		for _, one := range s.view.Subsets {
			if one.Name == subset {
				selector = one.Labels
			}
		}
	}
	pods := podEndpoints(s.plan, port, selector)
	if !s.remote || s.plan.Federation.Flat {
		return pods
	}
	count := len(pods)
	var out []string
	for _, gw := range s.plan.Mesh.Gateways {
		for _, address := range gw.Addresses {
			if count > 0 {
				out = append(out, fmt.Sprintf("%s:%d mutual share %d", address, gw.Port, count))
			}
		}
	}
	slices.Sort(out)
	return out
}

// podEndpoints are the pods of a service that have the labels.
func podEndpoints(d *snapshot.DestinationPlan, port uint32, selector map[string]string) []string {
	service := d.Destination.Spec.KubeService
	name := ""
	for _, p := range service.Ports {
		if p.Port == port {
			name = p.Name
		}
	}
	var out []string
	for _, part := range service.EndpointSubsets {
		for _, p := range part.Ports {
			if p.Name != name {
				continue
			}
			for _, e := range part.Endpoints {
				if contains(e.Labels, selector) {
					out = append(out, fmt.Sprintf("%s:%d mutual", e.IpAddress, p.Port))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func toldEndpoints(endpoints []envoy.Endpoint, shares bool) []string {
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
	var out []string
	for text, weight := range weights {
		if shares {
			text += fmt.Sprintf(" share %d", weight)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// gatewayFacts: which names the east-west gateway lets pass, and to whom. A
// name without endpoints would be a door to nowhere.
func gatewayFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, mesh := range plan.Meshes {
		if mesh.Cluster != p.cluster {
			continue
		}
		for _, gw := range mesh.Gateways {
			if gw.Service.Namespace == p.namespace && contains(p.labels, gw.Selector) {
				out = append(out, doors(plan, mesh, gw.ContainerPort)...)
			}
		}
	}
	return out
}

// doors lists the services at home. Istio opens one for each name under the
// Gateway's hosts, also for those of other meshes that this one knows: they lead
// on to the gateways there.
func doors(plan *snapshot.Plan, mesh *snapshot.MeshPlan, listener uint32) []fact {
	var names []string
	var out []fact
	for _, s := range visible(plan, mesh.Cluster) {
		f := s.plan.Federation
		if f == nil || f.Flat {
			continue
		}
		for subset, selector := range doorSubsets(s) {
			for _, port := range s.plan.Destination.Spec.KubeService.Ports {
				name := fmt.Sprintf("outbound_.%d_.%s_.%s", port.Port, subset, f.Hostname)
				names = append(names, name)
				want := podEndpoints(s.plan, port.Port, selector)
				if s.remote {
					want = plannedEndpoints(s, port.Port, subset)
				}
				out = append(out, fact{
					name: "endpoints behind " + name, want: want,
					look: func(told *envoy.Config) []string {
						return toldEndpoints(told.EndpointsOf(told.TCPCluster(listener, name)), s.remote)
					},
				})
			}
		}
	}
	slices.Sort(names)
	return append(out, fact{
		name: "names that the gateway lets pass", want: names,
		look: func(told *envoy.Config) []string { return told.ServerNames(listener) },
	})
}

// doorSubsets are the labels of the subsets by name: at home those that any
// other mesh asks for.
func doorSubsets(s seen) map[string]map[string]string {
	out := map[string]map[string]string{"": nil}
	for _, v := range s.plan.Views {
		if s.remote && v != s.view || !s.remote && v.Mesh == s.plan.Mesh {
			continue
		}
		for _, subset := range v.Subsets {
			out[subset.Name] = subset.Labels
		}
	}
	return out
}

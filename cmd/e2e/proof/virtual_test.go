package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// virtual is a VirtualDestination as the mesh of a proxy sees it.
type virtual struct {
	plan *snapshot.VirtualDestinationPlan
	view *snapshot.VirtualView
}

// virtuals are those in the configuration of a proxy.
func virtuals(plan *snapshot.Plan, p proxy) []virtual {
	var out []virtual
	for _, v := range plan.VirtualDestinations {
		for _, view := range v.Views {
			if view.Mesh.Cluster == p.cluster && len(view.Priorities) > 0 && knows(sidecarOf(plan, p), v.Hostname) {
				out = append(out, virtual{v, view})
			}
		}
	}
	return out
}

// subsets are the labels of the subsets by name; the empty one has all pods.
func (v virtual) subsets() map[string]map[string]string {
	out := map[string]map[string]string{"": nil}
	for _, s := range v.plan.Subsets {
		out[s.Name] = s.Labels
	}
	return out
}

// virtualFacts: the endpoints in failover order, how to connect to them, and their
// names.
func virtualFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for _, v := range virtuals(plan, p) {
		for subset, selector := range v.subsets() {
			name := clusterName(v.plan.Hostname, v.plan.Port, subset)
			out = append(out, fact{
				name: "virtual endpoints of " + name, want: v.endpoints(subset, selector),
				look: func(config *envoy.Config) []string { return configuredEndpoints(config.EndpointsOf(name), false) },
			}, fact{
				name: "virtual connections to " + name, want: v.connection(subset),
				look: func(config *envoy.Config) []string { return configuredVirtualConnection(config.Cluster(name)) },
			})
		}
		out = append(out, v.address()...)
	}
	return out
}

// endpoints are in failover order.
func (v virtual) endpoints(subset string, selector map[string]string) []string {
	var groups [][]string
	named := false
	for _, priority := range v.view.Priorities {
		var group []string
		for _, t := range priority.Targets {
			pods := backingPods(t.Backing, selector)
			if len(t.Through) == 0 {
				group = append(group, pods...)
			}
			for _, gw := range t.Through {
				for _, address := range gw.Addresses {
					named = named || strings.HasSuffix(address, ".com")
					if len(pods) > 0 {
						group = append(group, fmt.Sprintf("%s:%d mutual", address, gw.Port))
					}
				}
			}
		}
		groups = append(groups, group)
	}
	// If proxies resolve names, subsets have no failover order, and
	// the VirtualDestination says so.
	if named && subset != "" {
		return inOrder([][]string{slices.Concat(groups...)})
	}
	return inOrder(groups)
}

// inOrder gives each group the next priority; an empty one is skipped.
func inOrder(groups [][]string) []string {
	var out []string
	priority := 0
	for _, group := range groups {
		for _, text := range slices.Compact(slices.Sorted(slices.Values(group))) {
			if priority > 0 {
				text += fmt.Sprintf(" priority %d", priority)
			}
			out = append(out, text)
		}
		if len(group) > 0 {
			priority++
		}
	}
	slices.Sort(out)
	return out
}

// backingPods are the pods of a service.
func backingPods(b *snapshot.BackingPlan, selector map[string]string) []string {
	var out []string
	for _, part := range b.Destination.Spec.KubeService.EndpointSubsets {
		for _, port := range part.Ports {
			if port.Name != b.Port.Name {
				continue
			}
			for _, e := range part.Endpoints {
				if contains(e.Labels, selector) {
					out = append(out, fmt.Sprintf("%s:%d mutual", e.IpAddress, port.Port))
				}
			}
		}
	}
	return out
}

// sni is the SNI name in connections to a gateway; empty for other endpoints.
func (v virtual) sni(host, subset string) string {
	return fmt.Sprintf("outbound_.%d_.%s_.%s", v.plan.Port, subset, host)
}

func (v virtual) connection(subset string) []string {
	o := v.plan.Outlier.Value
	out := plannedConnection(&snapshot.View{Outlier: v.plan.Outlier, TLS: v.view.TLS, KeepAlive: v.view.KeepAlive})
	host := v.plan.Hostname
	if v.view.PassedAs != "" {
		host, out[1] = v.view.PassedAs, "tls mutual"
	}
	return append(out, fmt.Sprintf("gateway errors %d", o.ConsecutiveErrors), "all if less than 1% are left", "asks for "+v.sni(host, subset))
}

func configuredVirtualConnection(c *envoy.Cluster) []string {
	out := configuredConnection(c)
	if c == nil {
		return out
	}
	if o := c.OutlierDetection; o != nil {
		out = append(out, fmt.Sprintf("gateway errors %d", number(o.ConsecutiveGatewayErrors)),
			fmt.Sprintf("all if less than %v%% are left", c.CommonLBConfig.HealthyPanicThreshold.Value))
	}
	asked := []string{c.TransportSocket.TypedConfig.SNI}
	for _, m := range c.TransportSocketMatches {
		asked = append(asked, m.TransportSocket.TypedConfig.SNI)
	}
	for _, sni := range asked {
		if sni != "" {
			out = append(out, "asks for "+sni)
		}
	}
	return out
}

// address: requests are routed by their host, connections by their address.
func (v virtual) address() []fact {
	host, port := v.plan.Hostname, v.plan.Port
	name := clusterName(host, port, "")
	if slices.Contains([]string{"HTTP", "HTTP2", "GRPC"}, v.plan.Protocol) {
		return []fact{{
			name: "virtual address of " + host, want: []string{v.plan.Address},
			look: func(config *envoy.Config) []string { return addressesOf(config.VirtualHost(host, port)) },
		}, {
			name: "virtual routes to " + host, want: []string{"prefix / -> " + name + " timeout 0s retries of the mesh"},
			look: func(config *envoy.Config) []string { return configuredRoutes(config.VirtualHost(host, port)) },
		}}
	}
	return []fact{{
		name: "virtual connections pass to " + host, want: []string{fmt.Sprintf("%s:%d", v.plan.Address, port)},
		look: func(config *envoy.Config) []string { return listenersOf(config, name, false) },
	}}
}

// virtualSNINames are the SNI names by which the gateways of a mesh route
// connections to VirtualDestinations, with their pods: those of the own cluster
// only, so that there is no loop.
func virtualSNINames(plan *snapshot.Plan, p proxy, listener uint32) (names []string, out []fact) {
	for _, v := range plan.VirtualDestinations {
		home, suffix := passedOn(v, p.cluster)
		if len(home) == 0 {
			continue
		}
		for subset, selector := range (virtual{plan: v}).subsets() {
			name := virtual{plan: v}.sni(snapshot.PassedAs(v.Ref, suffix), subset)
			names = append(names, name)
			var groups [][]string
			for _, b := range home {
				groups = append(groups, backingPods(b, selector))
			}
			out = append(out, fact{
				name: "virtual endpoints behind " + name, want: inOrder(groups),
				look: func(config *envoy.Config) []string {
					return configuredEndpoints(config.EndpointsOf(config.TCPCluster(listener, name)), false)
				},
			})
		}
	}
	return names, out
}

// passedOn are the services of a cluster that callers in another one reach through
// its gateways, and the suffix of their names.
func passedOn(v *snapshot.VirtualDestinationPlan, cluster string) (home []*snapshot.BackingPlan, suffix string) {
	through := map[*snapshot.BackingPlan]bool{}
	for _, view := range v.Views {
		for _, priority := range view.Priorities {
			for _, t := range priority.Targets {
				through[t.Backing] = through[t.Backing] || len(t.Through) > 0
			}
		}
	}
	for _, b := range v.Backing {
		if through[b] && b.Mesh.Cluster == cluster {
			home, suffix = append(home, b), b.Mesh.HostnameSuffix
		}
	}
	return home, suffix
}

package proof

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sidecarOf has the services that a proxy knows by ServiceDependencies; nil for all.
func sidecarOf(plan *snapshot.Plan, p proxy) *snapshot.SidecarPlan {
	for _, s := range plan.Sidecars {
		if s.Ref.Cluster == p.cluster && s.Ref.Namespace == p.namespace && contains(p.labels, s.Selector) && !s.Egress.Everything {
			return s
		}
	}
	return nil
}

func knows(s *snapshot.SidecarPlan, host string) bool {
	return s == nil || slices.ContainsFunc(s.Egress.Hosts, func(h snapshot.EgressHost) bool {
		suffix, pattern := strings.CutPrefix(h.Host, "*")
		return h.Host == host || pattern && strings.HasSuffix(host, suffix)
	})
}

// knowledgeFacts: the services that a sidecar knows, and the addresses of those of
// other meshes.
func knowledgeFacts(plan *snapshot.Plan, p proxy) []fact {
	sidecar := sidecarOf(plan, p)
	var hosts []string
	var out []fact
	for _, s := range visible(plan, p) {
		hosts = append(hosts, s.host)
		out = append(out, addressFacts(s)...)
	}
	for _, e := range externals(plan, p) {
		hosts = append(hosts, e.Hosts...)
	}
	for _, v := range virtuals(plan, p) {
		hosts = append(hosts, v.plan.Hostname)
	}
	slices.Sort(hosts)
	return append(out, fact{
		name: "services that it knows", want: hosts,
		look: func(config *envoy.Config) []string {
			return slices.DeleteFunc(outboundHosts(config), func(host string) bool {
				return !slices.Contains(hosts, host) && isIgnored(sidecar, host)
			})
		},
	})
}

// isIgnored: a Plan has no services outside of meshes, such as the API server, and
// does not list those that a pattern selects.
func isIgnored(s *snapshot.SidecarPlan, host string) bool {
	switch {
	case !strings.HasSuffix(host, ".svc.cluster.local"):
		return false
	case s == nil:
		return strings.HasSuffix(host, ".default.svc.cluster.local") || strings.HasSuffix(host, ".kube-system.svc.cluster.local") ||
			strings.HasPrefix(host, "istiod.")
	default:
		return knows(s, host)
	}
}

func outboundHosts(config *envoy.Config) []string {
	var out []string
	for i := range config.Clusters {
		if parts := strings.Split(config.Clusters[i].Name, "|"); len(parts) == 4 && parts[0] == "outbound" {
			out = append(out, parts[3])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addressFacts: a service of another mesh has the same address everywhere. Requests
// are routed by their host, and connections by their address.
func addressFacts(s seen) []fact {
	var out []fact
	for _, port := range portsFor(s.plan, requests) {
		// If the protocol is detected, the address is used.
		if s.remote && !slices.Contains(portsFor(s.plan, connections), port) {
			out = append(out, fact{
				name: fmt.Sprintf("address of %s:%d", s.host, port), want: []string{s.plan.Federation.Address},
				look: func(config *envoy.Config) []string { return addressesOf(config.VirtualHost(s.host, port)) },
			})
		}
	}
	for _, port := range portsFor(s.plan, connections) {
		f := fact{
			name: fmt.Sprintf("connections pass to %s:%d", s.host, port), want: []string{fmt.Sprintf("on port %d", port)},
			look: func(config *envoy.Config) []string { return listenersOf(config, clusterName(s.host, port, ""), true) },
		}
		if s.remote {
			f.want = []string{fmt.Sprintf("%s:%d", s.plan.Federation.Address, port)}
			f.look = func(config *envoy.Config) []string {
				return listenersOf(config, clusterName(s.host, port, ""), false)
			}
		}
		out = append(out, f)
	}
	return out
}

func addressesOf(vh *envoy.VirtualHost) []string {
	if vh == nil {
		return nil
	}
	var out []string
	for _, domain := range vh.Domains {
		if at, err := netip.ParseAddr(domain); err == nil {
			out = append(out, at.String())
		}
	}
	return out
}

// listenersOf: in its own cluster, Kubernetes chose the address, which is not in
// the Plan.
func listenersOf(config *envoy.Config, cluster string, home bool) []string {
	out := config.TCPListeners(cluster)
	for i, at := range out {
		if _, port, _ := strings.Cut(at, ":"); home {
			out[i] = "on port " + port
		}
	}
	return out
}

package istio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ways are the ways into the mesh of a cluster through gateways.
type ways struct{ *handWritten }

// gatewayOf is a Gateway as istiod has it: one that users wrote, or what it makes of a listener of the Gateway API or of an Ingress.
type gatewayOf struct {
	namespace, name string
	created         time.Time
	// services are those by which it finds its pods, in servicesIn; without, they have the labels of selector.
	services   []string
	servicesIn string
	selector   map[string]string
	servers    []*networking.Server
	// attached: it is of the Gateway API. managed: Istio deploys its pods.
	attached, managed bool
}

func (g *gatewayOf) fullName() string { return g.namespace + "/" + g.name }

// gatewayServer is a server at some pods.
type gatewayServer struct {
	*networking.Server
	// gateway is the NAMESPACE/NAME of its Gateway.
	gateway string
	// hosts are [NAMESPACE/]HOST in lower case. Without a namespace, they are for all.
	hosts []string
	// listens is the port on which the pods listen.
	listens string
}

// isPlainHTTP: requests are seen without ending TLS (Istio, protocol.Instance.IsHTTP).
func (s *gatewayServer) isPlainHTTP() bool { return isPlainHTTP(s.Port.GetProtocol()) }

func isPlainHTTP(protocol string) bool {
	switch strings.ToLower(protocol) {
	case "http", "http2", "http_proxy", "grpc", "grpc-web":
		return true
	}
	return false
}

// endsHTTPS: requests are seen after TLS is ended (Istio, IsHTTPSServerWithTLSTermination).
func (s *gatewayServer) endsHTTPS() bool {
	return s.Tls != nil && strings.EqualFold(s.Port.GetProtocol(), "https") && !s.passes()
}

// passes: TLS is passed on as it comes (Istio, IsPassThroughServer).
func (s *gatewayServer) passes() bool {
	mode := s.Tls.GetMode()
	return s.Tls != nil && (mode == networking.ServerTLSSettings_PASSTHROUGH || mode == networking.ServerTLSSettings_AUTO_PASSTHROUGH)
}

// names are those by which callers in TLS find it (SNI).
func (s *gatewayServer) names() (out []string) {
	for _, host := range s.hosts {
		_, name, isQualified := strings.Cut(host, "/")
		if !isQualified {
			name = host
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gatewaysAt are the Gateways for pods, the oldest first (Istio, PushContext.initGateways and mergeGateways). Where Istio deploys the
// pods for the Gateway API, those that users wrote in other namespaces do not apply (filterStrictGatewayMerging).
func (h *ways) gatewaysAt(pods *snapshot.PodQuery, services []*corev1.Service) []*gatewayOf {
	labels := pods.Pods[0]
	var out []*gatewayOf
	for _, o := range h.gateways {
		if inventory.MatchLabels(o.Spec.Selector, labels) && h.reads(pods.Mesh, o) {
			out = append(out, writtenGateway(o))
		}
	}
	for _, g := range h.ingresses(pods.Mesh) {
		if inventory.MatchLabels(g.selector, labels) {
			out = append(out, g)
		}
	}
	managed := map[string]bool{}
	for _, l := range h.listeners(pods.Mesh) {
		if l.valid && l.servicesIn == pods.Namespace && slices.ContainsFunc(services, func(s *corev1.Service) bool { return slices.Contains(l.services, s.Name) }) {
			out = append(out, &l.gatewayOf)
			managed[l.namespace] = managed[l.namespace] || l.managed
		}
	}
	if slices.ContainsFunc(out, func(g *gatewayOf) bool { return g.managed }) {
		out = slices.DeleteFunc(out, func(g *gatewayOf) bool { return !g.attached && !managed[g.namespace] })
	}
	slices.SortStableFunc(out, func(a, b *gatewayOf) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.name, b.name), strings.Compare(a.namespace, b.namespace))
	})
	return out
}

func writtenGateway(o *istionetworkingv1.Gateway) *gatewayOf {
	return &gatewayOf{namespace: o.Namespace, name: o.Name, created: o.CreationTimestamp.Time, selector: o.Spec.Selector, servers: o.Spec.Servers}
}

// servicesOf are the Services that select pods.
func (h *ways) servicesOf(pods *snapshot.PodQuery) (out []*corev1.Service) {
	for _, s := range h.from.Services {
		if s.Namespace == pods.Namespace && len(s.Spec.Selector) > 0 && inventory.MatchLabels(s.Spec.Selector, pods.Pods[0]) {
			out = append(out, s)
		}
	}
	return out
}

// serversAt are the servers of Gateways that are in force at pods. Of two that do not go together on a port, the first one is (Istio,
// model.mergeGateways).
func serversAt(gateways []*gatewayOf, services []*corev1.Service) (out []gatewayServer) {
	seen, plain, named := map[string]bool{}, map[string]gatewayServer{}, map[string]bool{}
	for _, g := range gateways {
		for _, s := range g.servers {
			one := gatewayServer{Server: s, gateway: g.fullName(), hosts: serverHosts(s, g.namespace)}
			for _, one.listens = range g.listens(s.Port.GetNumber(), services) {
				if s.Tls != nil && !claim(named, one.listens, one.hosts) {
					continue
				}
				isTLS := s.Tls != nil && !one.isPlainHTTP()
				first, isPlain := plain[one.listens]
				if isPlain && !(one.isPlainHTTP() && (isPlainHTTP(first.Port.GetProtocol()) || strings.EqualFold(first.Port.GetProtocol(), s.Port.GetProtocol()))) {
					continue
				}
				if !isPlain && !isTLS {
					plain[one.listens] = one
				}
				seen[one.listens] = true
				out = append(out, one)
			}
		}
	}
	return out
}

// claim notes names that are taken on a port, and reports whether none of them was taken before.
func claim(taken map[string]bool, port string, names []string) bool {
	for _, name := range names {
		if taken[port+" "+name] {
			return false
		}
	}
	for _, name := range names {
		taken[port+" "+name] = true
	}
	return true
}

// serverHosts are the hosts of a server with full names of namespaces (Istio, sanitizeServerHostNamespace).
func serverHosts(s *networking.Server, own string) (out []string) {
	for _, text := range s.Hosts {
		namespace, host, isQualified := strings.Cut(strings.ToLower(text), "/")
		switch {
		case !isQualified:
			host = namespace
		case namespace == ownNamespace:
			host = own + "/" + host
		case namespace != allNamespaces:
			host = namespace + "/" + host
		}
		out = append(out, host)
	}
	return out
}

// listens are the ports on which pods listen for a port of a Gateway, ascending: those to which their Services lead. Where a Gateway
// selects pods, it is the port itself if no Service has it (Istio, resolvePorts).
func (g *gatewayOf) listens(number uint32, services []*corev1.Service) (out []string) {
	for _, s := range services {
		if len(g.services) > 0 && !slices.Contains(g.services, s.Name) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if uint32(max(p.Port, 0)) != number {
				continue
			}
			target := p.TargetPort.String()
			if target == "" || target == "0" {
				target = strconv.FormatUint(uint64(number), 10)
			}
			if len(g.services) == 0 {
				return []string{target}
			}
			out = append(out, target)
		}
	}
	if len(out) == 0 && len(g.services) == 0 {
		return []string{strconv.FormatUint(uint64(number), 10)}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

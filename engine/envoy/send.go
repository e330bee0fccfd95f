package envoy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Sent is what a proxy does with a request of its own application.
type Sent struct {
	// Listener, Routes and VirtualHost are the names of what the request takes; empty where there is none.
	Listener, Routes, VirtualHost string
	// Route takes the request; nil if none does.
	Route *Route
	// Status is what the proxy answers itself, and Stopped why it sends nothing on; zero if it does.
	Status  uint32
	Stopped string
	// Targets are the clusters that requests are sent to. One that gets all of them has weight 0.
	Targets []ClusterWeight
	Passage Passage
}

// setting is what a route sets for a filter.
type setting struct {
	Type  string `json:"@type"`
	Abort *FaultAbort
	// RBAC is an RBACPerRoute's, and replaces that of the filter; nil turns it off.
	RBAC *struct{ Rules *RBAC } `json:"rbac"`
}

func (s setting) kind() string { return s.Type[strings.LastIndexAny(s.Type, "./")+1:] }

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Send says what a sidecar does with a request to a host and port, without TLS. The address that the host has for the caller is one of
// those that the configuration gives it.
func (c *Config) Send(host string, port uint32, r Request) Sent {
	r.Host = host
	out := Sent{Passage: Passage{Answer: Yes}}
	listener, manager := c.outbound(host, port)
	if listener == nil {
		cluster, passage := c.catchAll()
		if out.Passage = passage; cluster == "" {
			out.Stopped = fmt.Sprintf("it has no listener for requests to port %d", port)
			return out
		}
		out.Targets = []ClusterWeight{{Name: cluster}}
		return out
	}
	out.Listener = listener.Name
	out.Passage = pass(manager.HTTPFilters, r)
	c.route(&out, manager, r, port)
	return out
}

// route adds what the routes of a connection manager do with a request that passed its filters.
func (c *Config) route(out *Sent, manager *FilterConfig, r Request, port uint32) {
	routes := manager.RouteConfig
	if name := manager.RDS.RouteConfigName; name != "" {
		out.Routes = name
		if routes = c.RouteConfiguration(name); routes == nil {
			out.Stopped = "it has no routes " + name
			return
		}
	}
	switch vh := routes.search(r.Host, port); {
	case out.Passage.Answer == No:
		out.Stopped = out.Passage.Filter + " refuses it"
	case routes == nil:
		out.Passage.doubt("routes of a kind that is not known")
	case vh == nil:
		out.Status, out.Stopped = 404, "no virtual host of routes "+out.Routes+" is for "+r.Host
	default:
		out.VirtualHost = vh.Name
		for _, field := range routes.unknown {
			out.Passage.doubt("routes " + routes.Name + ": " + field)
		}
		out.take(vh, r)
	}
}

// take finds the route of a virtual host, and what it does.
func (s *Sent) take(vh *VirtualHost, r Request) {
	for _, field := range vh.unknown {
		s.Passage.doubt("virtual host " + vh.Name + ": " + field)
	}
	route, doubt := vh.routeFor(r)
	switch {
	case doubt != "":
		s.Passage.doubt(doubt)
		return
	case route == nil:
		s.Status, s.Stopped = 404, "no route of virtual host "+vh.Name+" takes it"
		return
	}
	s.Route = route
	for _, field := range slices.Concat(route.unknown, route.Route.unknown, route.Route.WeightedClusters.unknown) {
		s.Passage.doubt("the route's " + field)
	}
	for i := range route.Route.WeightedClusters.Clusters {
		if t := &route.Route.WeightedClusters.Clusters[i]; len(t.unknown) > 0 {
			s.Passage.doubt("target " + t.Name + ": " + t.unknown[0])
		}
	}
	settings := map[string]setting{}
	for _, level := range []map[string]json.RawMessage{vh.TypedPerFilterConfig, route.TypedPerFilterConfig} {
		for name, data := range level {
			var one setting
			if err := json.Unmarshal(data, &one); err != nil {
				s.Passage.doubt("the route's own settings for filter " + name)
				continue
			}
			settings[name] = one
		}
	}
	wasRefused := s.Passage.Answer == No
	s.Passage.perRoute(settings, r)
	if s.Passage.Answer == No && !wasRefused {
		s.Stopped = s.Passage.Filter + " refuses it"
		return
	}
	switch {
	case route.DirectResponse != nil:
		s.Status, s.Stopped = route.DirectResponse.Status, "the route answers it"
	case len(route.Redirect) > 0:
		s.Status, s.Stopped = 301, "the route redirects it"
	default:
		for _, t := range route.Route.Targets() {
			if route.Route.Cluster != "" || t.Weight > 0 {
				s.Targets = append(s.Targets, t)
			}
		}
		if len(s.Targets) == 0 && s.Passage.Answer != Unknown {
			s.Stopped = "the route sends it nowhere"
		}
	}
}

// catchAll is the cluster that takes connections for which there is no listener, and what the filters before it do; empty if nothing
// takes them (Envoy: Listener.use_original_dst).
func (c *Config) catchAll() (string, Passage) {
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if !l.UseOriginalDst && l.Name != outboundForAll || l.TrafficDirection == "INBOUND" {
			continue
		}
		for _, chain := range l.allChains() {
			for _, f := range chain.Filters {
				if chain.FilterChainMatch.DestinationPort == 0 && f.TypedConfig.Kind() == "TcpProxy" {
					return f.TypedConfig.Cluster, pass(chain.Filters, Request{})
				}
			}
		}
	}
	return "", Passage{Answer: Yes}
}

// outbound finds the listener and the connection manager for requests to a host. Of listeners for a port, the one for an address comes
// before the one for all of them.
func (c *Config) outbound(host string, port uint32) (*Listener, *FilterConfig) {
	var all *Listener
	var manager *FilterConfig
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.Name == outboundForAll {
			if m := l.httpTo(port); m != nil {
				return l, m
			}
		}
		if l.TrafficDirection != "OUTBOUND" || l.Address.SocketAddress.PortValue != port {
			continue
		}
		m := l.plainHTTP()
		if m == nil {
			continue
		}
		if address, err := netip.ParseAddr(l.Address.SocketAddress.Address); err == nil && address.IsUnspecified() {
			all, manager = l, m
			continue
		}
		name := m.RDS.RouteConfigName
		if name == fmt.Sprintf("%s:%d", host, port) || m.RouteConfig.named(host, port) || c.RouteConfiguration(name).named(host, port) {
			return l, m
		}
	}
	return all, manager
}

// outboundForAll is the listener of Open Service Mesh for all that an application sends: the port, and the address, choose the filter
// chain (OSM, lds.OutboundListenerName). Others have a listener for each port.
const outboundForAll = "outbound-listener"

// httpTo is the connection manager of a listener for requests to a port; nil if it has none.
func (l *Listener) httpTo(port uint32) *FilterConfig {
	for i := range l.FilterChains {
		if chain := &l.FilterChains[i]; chain.FilterChainMatch.DestinationPort == port && chain.http() != nil {
			return chain.http()
		}
	}
	return nil
}

// named reports whether one of the virtual hosts is for a host, and not for all of them.
func (r *RouteConfiguration) named(host string, port uint32) bool {
	vh := r.search(host, port)
	return vh != nil && !slices.Contains(vh.Domains, "*")
}

// plainHTTP is the connection manager for requests without TLS; nil if there is none.
func (l *Listener) plainHTTP() *FilterConfig {
	for _, chain := range l.allChains() {
		m := chain.FilterChainMatch
		plain := m.TransportProtocol == "" || m.TransportProtocol == "raw_buffer"
		if plain && (len(m.ApplicationProtocols) == 0 || slices.Contains(m.ApplicationProtocols, "http/1.1")) && chain.http() != nil {
			return chain.http()
		}
	}
	return nil
}

// search finds the virtual host for a host: by its name, then by the longest *.SUFFIX, then by the longest PREFIX.*, and else the one
// for * (Envoy: config.route.v3.VirtualHost.domains).
func (r *RouteConfiguration) search(host string, port uint32) *VirtualHost {
	if r == nil {
		return nil
	}
	names := []string{host, fmt.Sprintf("%s:%d", host, port)}
	best, rank := (*VirtualHost)(nil), 0
	for i := range r.VirtualHosts {
		for _, domain := range r.VirtualHosts[i].Domains {
			for _, name := range names {
				if found := fits(strings.ToLower(domain), strings.ToLower(name)); found > rank {
					best, rank = &r.VirtualHosts[i], found
				}
			}
		}
	}
	return best
}

// fits ranks how a domain matches a name; 0 if it does not.
func fits(domain, name string) int {
	const suffixes, exact = 1 << 12, 1 << 24
	switch {
	case domain == name:
		return exact
	case domain == "*":
		return 1
	case strings.HasPrefix(domain, "*") && len(name) > len(domain)-1 && strings.HasSuffix(name, domain[1:]):
		return suffixes + len(domain)
	case strings.HasSuffix(domain, "*") && len(name) > len(domain)-1 && strings.HasPrefix(name, domain[:len(domain)-1]):
		return len(domain)
	}
	return 0
}

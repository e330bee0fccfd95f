package envoy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Config is the complete configuration of a proxy. Each list is sorted by name.
type Config struct {
	Listeners []Listener
	Routes    []RouteConfiguration
	Clusters  []Cluster
	Endpoints []ClusterLoadAssignment
	Secrets   []Secret
	// Refused are the updates that the proxy refused, with its reasons: it goes on with what it had.
	Refused []string
}

// Parse reads the output of the role xds of the helper binary.
func Parse(data []byte) (*Config, error) {
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("a proxy's configuration: %w", err)
	}
	return &c, nil
}

// VirtualHost finds the virtual host for requests to host on the outbound port, or
// nil. Istio names the routes of a port PORT, or HOST:PORT if the port may also
// have other traffic; Open Service Mesh "rds-outbound.PORT".
func (c *Config) VirtualHost(host string, port uint32) *VirtualHost {
	text := fmt.Sprint(port)
	for i := range c.Routes {
		name := c.Routes[i].Name
		if name == host+":"+text && len(c.Routes[i].VirtualHosts) == 1 {
			return &c.Routes[i].VirtualHosts[0]
		}
		if name != text && name != "rds-outbound."+text {
			continue
		}
		for j := range c.Routes[i].VirtualHosts {
			vh := &c.Routes[i].VirtualHosts[j]
			if slices.Contains(vh.Domains, host) || slices.Contains(vh.Domains, host+":"+text) {
				return vh
			}
		}
	}
	return nil
}

// Cluster finds a cluster by its name, or nil.
func (c *Config) Cluster(name string) *Cluster {
	for i := range c.Clusters {
		if c.Clusters[i].Name == name {
			return &c.Clusters[i]
		}
	}
	return nil
}

// EndpointsOf returns the endpoints of a cluster, from the cluster itself or from
// EDS, with the priority of their group.
func (c *Config) EndpointsOf(cluster string) []Endpoint {
	found := c.Cluster(cluster)
	if found == nil {
		return nil
	}
	assignment := found.LoadAssignment
	if found.Type == "EDS" {
		name := found.EDSClusterConfig.ServiceName
		if name == "" {
			name = cluster
		}
		for i := range c.Endpoints {
			if c.Endpoints[i].ClusterName == name {
				assignment = &c.Endpoints[i]
			}
		}
	}
	if assignment == nil {
		return nil
	}
	var out []Endpoint
	for _, group := range assignment.Endpoints {
		for _, lb := range group.LBEndpoints {
			socket := lb.Endpoint.Address.SocketAddress
			out = append(out, Endpoint{
				Address: socket.Address, Port: socket.PortValue, Weight: lb.LoadBalancingWeight,
				Priority: group.Priority, GroupWeight: group.LoadBalancingWeight, Locality: group.Locality,
				Metadata: lb.Metadata.FilterMetadata, Unhealthy: slices.Contains([]string{"UNHEALTHY", "DRAINING", "TIMEOUT"}, lb.HealthStatus),
			})
		}
	}
	return out
}

// ServerNames are the SNI names for which the listener on port has filter
// chains, ascending.
func (c *Config) ServerNames(port uint32) []string {
	var out []string
	for _, chain := range c.chains(port) {
		out = append(out, chain.FilterChainMatch.ServerNames...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TCPCluster is the cluster to which the listener on port passes connections
// with an SNI name; empty if there is none.
func (c *Config) TCPCluster(port uint32, serverName string) string {
	for _, chain := range c.chains(port) {
		if !slices.Contains(chain.FilterChainMatch.ServerNames, serverName) {
			continue
		}
		for _, f := range chain.Filters {
			if strings.HasSuffix(f.TypedConfig.Type, ".TcpProxy") {
				return f.TypedConfig.Cluster
			}
		}
	}
	return ""
}

// TCPListeners are the addresses, with ports, of the listeners that pass
// connections on to a cluster, ascending.
func (c *Config) TCPListeners(cluster string) []string {
	var out []string
	for _, l := range c.Listeners {
		for _, chain := range l.allChains() {
			for _, f := range chain.Filters {
				if strings.HasSuffix(f.TypedConfig.Type, ".TcpProxy") && f.TypedConfig.Cluster == cluster {
					out = append(out, fmt.Sprintf("%s:%d", l.Address.SocketAddress.Address, l.Address.SocketAddress.PortValue))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l *Listener) allChains() []FilterChain {
	if l.DefaultFilterChain == nil {
		return l.FilterChains
	}
	return append(slices.Clone(l.FilterChains), *l.DefaultFilterChain)
}

func (c *Config) chains(port uint32) []FilterChain {
	var out []FilterChain
	for i := range c.Listeners {
		if l := &c.Listeners[i]; l.Address.SocketAddress.PortValue == port {
			out = append(out, l.allChains()...)
		}
	}
	return out
}

// HTTPFilters are the HTTP filters of the filter chains for connections to a
// destination port on the listener on port: one list for each chain.
func (c *Config) HTTPFilters(port, destination uint32) [][]Filter {
	var out [][]Filter
	for _, chain := range c.chains(port) {
		if f := chain.http(); f != nil && chain.FilterChainMatch.DestinationPort == destination {
			out = append(out, f.HTTPFilters)
		}
	}
	return out
}

// NetworkFilters are the filters of the filter chains without HTTP for connections
// to a destination port on the listener on port: one list for each chain.
func (c *Config) NetworkFilters(port, destination uint32) [][]Filter {
	var out [][]Filter
	for _, chain := range c.chains(port) {
		if chain.http() == nil && chain.FilterChainMatch.DestinationPort == destination {
			out = append(out, chain.Filters)
		}
	}
	return out
}

// Passed are the network filters and then the HTTP filters of each filter chain of
// all listeners.
func (c *Config) Passed() [][]Filter {
	var out [][]Filter
	for i := range c.Listeners {
		for _, chain := range c.Listeners[i].allChains() {
			filters := chain.Filters
			if f := chain.http(); f != nil {
				filters = slices.Concat(filters, f.HTTPFilters)
			}
			out = append(out, filters)
		}
	}
	return out
}

// http is the HttpConnectionManager of a chain, or nil.
func (f *FilterChain) http() *FilterConfig {
	for i := range f.Filters {
		if config := &f.Filters[i].TypedConfig; strings.HasSuffix(config.Type, ".HttpConnectionManager") {
			return config
		}
	}
	return nil
}

// OutboundHTTP are the HTTP filters with which a sidecar sends requests: one
// list for each filter chain.
func (c *Config) OutboundHTTP() [][]Filter {
	var out [][]Filter
	for i := range c.Listeners {
		if c.Listeners[i].TrafficDirection != "OUTBOUND" {
			continue
		}
		for _, chain := range c.Listeners[i].allChains() {
			if f := chain.http(); f != nil {
				out = append(out, f.HTTPFilters)
			}
		}
	}
	return out
}

package envoy

import (
	"fmt"
	"slices"
)

// Connection is how a proxy connects to an endpoint.
type Connection struct {
	Endpoint Endpoint
	// TLS: with a certificate of the proxy, if Certificate is set, and with SNI.
	TLS, Certificate bool
	SNI              string
	ALPN             []string
	// Doubt is what is not known of it.
	Doubt string
}

// Connect lists how a proxy connects to the endpoints of a cluster that get requests: the healthy ones of the first priority that has
// any. Without any, the reason says why (envoyproxy.io: priority levels; panic threshold is left out).
func (c *Config) Connect(name string) (list []Connection, reason string) {
	cluster := c.Cluster(name)
	switch {
	case cluster == nil:
		return nil, "it has no cluster " + name
	case cluster.Type == "ORIGINAL_DST":
		return []Connection{cluster.connection(Endpoint{})}, ""
	}
	all := c.EndpointsOf(name)
	healthy := slices.DeleteFunc(slices.Clone(all), func(e Endpoint) bool { return e.Unhealthy })
	if len(healthy) == 0 {
		return nil, fmt.Sprintf("cluster %s has no healthy endpoint, of %d", name, len(all))
	}
	first := slices.MinFunc(healthy, func(a, b Endpoint) int { return int(a.Priority) - int(b.Priority) }).Priority
	for _, e := range healthy {
		if e.Priority == first {
			list = append(list, cluster.connection(e))
		}
	}
	return list, ""
}

// connection is the one to an endpoint, by the first match of its metadata (Envoy: Cluster.transport_socket_matches).
func (c *Cluster) connection(e Endpoint) Connection {
	out := Connection{Endpoint: e}
	socket := &c.TransportSocket
	labels := object(e.Metadata["envoy.transport_socket_match"])
	for i := range c.TransportSocketMatches {
		if m := &c.TransportSocketMatches[i]; holdsAll(m.Match, labels) {
			socket = &m.TransportSocket
			break
		}
	}
	switch config := &socket.TypedConfig; config.kind() {
	case "", "RawBuffer":
	case "UpstreamTlsContext":
		tls := &config.CommonTLSContext
		out.TLS, out.SNI, out.ALPN = true, config.SNI, tls.ALPNProtocols
		out.Certificate = len(tls.TLSCertificateSDSSecretConfigs) > 0
	default:
		out.Doubt = "connections by " + socket.Name
	}
	return out
}

// holdsAll reports whether all values are among others.
func holdsAll(wanted, have map[string]any) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

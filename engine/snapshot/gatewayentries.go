package snapshot

import "strings"

// GatewayEntry is a way into the mesh through a gateway: a port, or what enters there by some names.
type GatewayEntry struct {
	// Port is the one of the gateway's configuration, and Listens where its pods listen.
	Port    uint32
	Listens string
	// Names are those that callers must ask for in TLS (SNI), of which the nearest entry of a port takes a connection; nil where TLS
	// does not decide.
	Names []string
	// Traffic is what the gateway sees.
	Traffic Traffic
	// Hosts are the names for which it has routes. The nearest one for a request or connection takes it, and no other does.
	Hosts []GatewayHost
}

// GatewayHost is what a gateway does with what enters for a name.
type GatewayHost struct {
	// Name may be a pattern that begins with an asterisk.
	Name string
	// Of are the objects that route it, in the order in which they are tried.
	Of []Ref
	// Leads: some of it goes to the host that was asked about, as far as is known.
	Leads bool
	// Redirects: requests are sent to HTTPS instead.
	Redirects bool
	// Routes are tried in this order. What none of them takes is answered with status 404.
	Routes []HandRoute
}

// HostFor is the one for a name, or the nearest pattern that includes it (Envoy: VirtualHost.domains); nil if there is none.
func (e *GatewayEntry) HostFor(name string) (nearest *GatewayHost) {
	for i := range e.Hosts {
		if h := &e.Hosts[i]; nearest == nil && nearness(h.Name, name) > 0 || nearest != nil && nearness(h.Name, name) > nearness(nearest.Name, name) {
			nearest = h
		}
	}
	return nearest
}

// Nearness is how near the names of an entry are to a name that callers ask for: 0 if it is for none of them, and larger if nearer.
func (e *GatewayEntry) Nearness(name string) (nearest int) {
	if e.Names == nil {
		return 1
	}
	for _, n := range e.Names {
		nearest = max(nearest, nearness(n, name))
	}
	return nearest
}

// nearness is 0 if a pattern does not include a name, and larger the more of it the pattern has.
func nearness(pattern, name string) int {
	rest, isPattern := strings.CutPrefix(pattern, "*")
	switch {
	case pattern == name:
		return len(name) + 2
	case isPattern && strings.HasSuffix(name, rest):
		return len(rest) + 1
	}
	return 0
}

package envoy

import (
	"fmt"
	"slices"
	"strings"
)

// Incoming is a connection as the proxy of the called pod sees it.
type Incoming struct {
	// Address and Port are where the pod listens. The address is empty if it is not known.
	Address string
	Port    uint32
	// TLS, with SNI and ALPN, as the other proxy connects. NoCertificate: it shows none of its own.
	TLS, NoCertificate bool
	SNI                string
	ALPN               []string
	// Principal is the SPIFFE ID in the certificate of the caller, which is known where TLS ends.
	Principal string
	// Plain are the protocols of connections without TLS, as a proxy detects them: http/1.1 for requests.
	Plain []string
	// Connection: it carries no requests.
	Connection bool
}

// Received is what the proxy of a called pod does.
type Received struct {
	Listener, Chain string
	// HTTP: it sees requests; else connections.
	HTTP bool
	// Stopped is why it takes no such connection, or answers the request itself; empty if it passes it on.
	Stopped string
	Status  uint32
	Passage Passage
}

// Receive says what a sidecar does with a request that comes by a connection.
func (c *Config) Receive(in Incoming, r Request) Received {
	out := Received{Passage: Passage{Answer: Yes}}
	r.Port = in.Port
	listener := c.inbound()
	if listener == nil {
		out.Stopped = "it has no inbound listener"
		return out
	}
	out.Listener = listener.Name
	chain, doubt := listener.chainFor(in)
	switch {
	case doubt != "":
		out.Passage.doubt(doubt)
		return out
	case chain == nil:
		out.Stopped = fmt.Sprintf("no filter chain is for connections %s to port %d", in.text(), in.Port)
		return out
	}
	out.Chain = chain.Name
	endsTLS := chain.TransportSocket.TypedConfig.kind() == "DownstreamTlsContext"
	switch manager := chain.http(); {
	case in.TLS && !endsTLS && manager != nil:
		out.HTTP, out.Stopped = true, fmt.Sprintf("filter chain %s for port %d takes no TLS", chain.Name, in.Port)
		return out
	case !in.TLS && endsTLS:
		out.Stopped = fmt.Sprintf("filter chain %s for port %d takes only TLS", chain.Name, in.Port)
		return out
	case in.NoCertificate && chain.TransportSocket.TypedConfig.RequireClientCertificate:
		out.Stopped = fmt.Sprintf("filter chain %s for port %d takes only TLS with a certificate of the caller", chain.Name, in.Port)
		return out
	case !endsTLS:
		r.Principal = ""
	}
	connection := pass(chain.Filters, Request{Principal: r.Principal, Port: in.Port})
	out.Passage = connection
	manager := chain.http()
	if manager == nil || connection.Answer == No {
		out.HTTP = manager != nil
		return out
	}
	if in.Connection {
		out.HTTP = true
		out.Passage.doubt("filter chain " + chain.Name + " reads connections as requests of HTTP")
		return out
	}
	out.HTTP = true
	out.Passage = pass(manager.HTTPFilters, r)
	out.Passage.Doubts = append(connection.Doubts, out.Passage.Doubts...)
	out.Passage.Allowed = append(connection.Allowed, out.Passage.Allowed...)
	if out.Passage.Answer != No {
		out.Passage.Answer = min(out.Passage.Answer, connection.Answer)
	}
	routes := manager.RouteConfig
	if name := manager.RDS.RouteConfigName; name != "" {
		routes = c.RouteConfiguration(name)
	}
	if routes == nil {
		out.Passage.doubt("routes of its listener that are not known")
		return out
	}
	var sent Sent
	if vh := routes.search(r.Host, in.Port); vh == nil {
		sent.Status, sent.Stopped = 404, "no virtual host is for "+r.Host
	} else {
		sent.Passage = out.Passage
		for _, field := range routes.unknown {
			sent.Passage.doubt("routes " + routes.Name + ": " + field)
		}
		sent.take(vh, r)
		out.Passage = sent.Passage
	}
	out.Status, out.Stopped = sent.Status, sent.Stopped
	return out
}

// inbound is the listener to which a sidecar's incoming connections are redirected; nil if there is none.
func (c *Config) inbound() *Listener {
	for i := range c.Listeners {
		if l := &c.Listeners[i]; l.TrafficDirection == "INBOUND" && (l.Name == "virtualInbound" || l.Name == "inbound-listener") {
			return l
		}
	}
	return nil
}

func (in *Incoming) text() string {
	if in.TLS {
		return "with TLS"
	}
	return "without TLS"
}

// chainFor finds the filter chain of a connection: at each step, those that match most exactly stay (Envoy:
// config.listener.v3.FilterChainMatch). Doubt is what is not known of the match.
func (l *Listener) chainFor(in Incoming) (*FilterChain, string) {
	transport, protocols := "raw_buffer", in.Plain
	if in.TLS {
		transport, protocols = "tls", in.ALPN
	}
	left := make([]*FilterChain, 0, len(l.FilterChains))
	for i := range l.FilterChains {
		left = append(left, &l.FilterChains[i])
	}
	left = narrow(left, func(m *ChainMatch) int { return exactly(m.DestinationPort == 0, m.DestinationPort == in.Port) })
	for _, chain := range left {
		if len(chain.FilterChainMatch.unknown) > 0 {
			return nil, fmt.Sprintf("filter chain %s matches by %s", chain.Name, strings.Join(chain.FilterChainMatch.unknown, ", "))
		}
		if in.Address == "" && len(chain.FilterChainMatch.PrefixRanges) > 0 {
			return nil, fmt.Sprintf("filter chain %s matches by the address", chain.Name)
		}
	}
	left = narrow(left, func(m *ChainMatch) int { return byAddress(m.PrefixRanges, in.Address) })
	left = narrow(left, func(m *ChainMatch) int { return byServerName(m.ServerNames, in.SNI) })
	left = narrow(left, func(m *ChainMatch) int { return exactly(m.TransportProtocol == "", m.TransportProtocol == transport) })
	left = narrow(left, func(m *ChainMatch) int {
		return exactly(len(m.ApplicationProtocols) == 0, slices.ContainsFunc(m.ApplicationProtocols, func(p string) bool { return slices.Contains(protocols, p) }))
	})
	if len(left) == 0 {
		return l.DefaultFilterChain, ""
	}
	return left[0], ""
}

// exactly ranks a condition: 2 if it is met, 1 if there is none, and else 0.
func exactly(none, met bool) int {
	switch {
	case none:
		return 1
	case met:
		return 2
	}
	return 0
}

// byServerName ranks the most exact name higher.
func byServerName(names []string, sni string) int {
	rank := exactly(len(names) == 0, false)
	for _, name := range names {
		switch {
		case name == sni:
			return 1 << 24
		case strings.HasPrefix(name, "*") && strings.HasSuffix(sni, name[1:]):
			rank = max(rank, 1+len(name))
		}
	}
	return rank
}

// narrow keeps the chains of the highest rank that is not 0.
func narrow(chains []*FilterChain, rank func(*ChainMatch) int) []*FilterChain {
	best := 1
	for _, c := range chains {
		best = max(best, rank(&c.FilterChainMatch))
	}
	return slices.DeleteFunc(chains, func(c *FilterChain) bool { return rank(&c.FilterChainMatch) != best })
}

// Passed is what a gateway does with a connection that it does not read.
type Passed struct {
	// Cluster is where it passes the connection on to, and EndsTLS is set if it begins a TLS session of its own.
	Cluster string
	EndsTLS bool
	// Stopped is why it passes it on to nothing; empty if it does.
	Stopped string
	Passage Passage
}

// PassOn says what a gateway does with a connection that it does not read.
func (c *Config) PassOn(in Incoming) Passed {
	out := Passed{Passage: Passage{Answer: Yes}}
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.Address.SocketAddress.PortValue != in.Port {
			continue
		}
		chain, doubt := l.chainFor(Incoming{TLS: in.TLS, SNI: in.SNI, ALPN: in.ALPN})
		if doubt != "" {
			out.Passage.doubt(doubt)
			return out
		}
		if chain == nil {
			out.Stopped = "no filter chain is for server name " + in.SNI
			return out
		}
		out.EndsTLS = chain.TransportSocket.TypedConfig.kind() == "DownstreamTlsContext"
		r := Request{Port: in.Port, SNI: in.SNI}
		if out.EndsTLS {
			r.Principal = in.Principal
		}
		out.Passage = pass(chain.Filters, r)
		for j := range chain.Filters {
			f := &chain.Filters[j].TypedConfig
			switch targets := f.tcpTargets(); {
			case len(targets) == 1:
				out.Cluster = targets[0].Name
				return out
			case len(targets) > 1:
				out.Passage.doubt("several clusters to which connections are passed on")
				return out
			}
		}
		out.Stopped = "its filter chain " + chain.Name + " passes nothing on"
		return out
	}
	out.Stopped = fmt.Sprintf("it has no listener for port %d", in.Port)
	return out
}

package envoy

import (
	"fmt"
	"net/netip"
	"slices"
)

// PrefixRange is a range of addresses.
type PrefixRange struct {
	AddressPrefix string
	PrefixLen     uint32
}

// holds reports whether an address is in a range.
func (p PrefixRange) holds(address string) bool {
	at, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	start, err := netip.ParseAddr(p.AddressPrefix)
	if err != nil {
		return false
	}
	in, err := start.Prefix(int(p.PrefixLen))
	return err == nil && in.Contains(at)
}

// byAddress ranks the longest prefix higher.
func byAddress(ranges []PrefixRange, address string) int {
	rank := exactly(len(ranges) == 0, false)
	for _, r := range ranges {
		if r.holds(address) {
			rank = max(rank, 2+int(r.PrefixLen))
		}
	}
	return rank
}

// Outgoing is a connection of an application that its proxy does not read.
type Outgoing struct {
	// Addresses are those that its host has for the caller; none if they are not known.
	Addresses []string
	Port      uint32
	// Leads reports whether a cluster is that of the host: where no address is known, by that the listener is found.
	Leads func(cluster string) bool
	// TLS, with SNI, as the application asks for it.
	TLS bool
	SNI string
}

// SendConnection says what a sidecar does with a connection. Known is false if it is not known which listener takes it.
func (c *Config) SendConnection(o Outgoing) (out Sent, known bool) {
	out.Passage = Passage{Answer: Yes}
	listener, address := c.listenerOf(o)
	switch {
	case listener == nil && len(o.Addresses) == 0:
		return out, false
	case listener == nil:
		cluster, passage := c.catchAll()
		if out.Passage = passage; cluster == "" {
			out.Stopped = fmt.Sprintf("it has no listener for connections to port %d", o.Port)
			return out, true
		}
		out.Targets = []ClusterWeight{{Name: cluster}}
		return out, true
	}
	out.Listener = listener.Name
	chain, doubt := listener.chainFor(Incoming{Address: address, Port: o.Port, TLS: o.TLS, SNI: o.SNI})
	out.through(chain, doubt, Request{Port: o.Port})
	return out, true
}

// listenerOf is the listener for a connection, and the address that it is for: the one of an address comes before the one for all.
func (c *Config) listenerOf(o Outgoing) (found *Listener, address string) {
	for i := range c.Listeners {
		l := &c.Listeners[i]
		socket := &l.Address.SocketAddress
		if l.Name == outboundForAll && len(o.Addresses) > 0 {
			return l, o.Addresses[0]
		}
		if l.TrafficDirection != "OUTBOUND" || socket.PortValue != o.Port || l.UseOriginalDst {
			continue
		}
		at, err := netip.ParseAddr(socket.Address)
		isAny := err == nil && at.IsUnspecified()
		switch {
		case slices.Contains(o.Addresses, socket.Address), len(o.Addresses) == 0 && !isAny && l.leads(o.Leads):
			return l, socket.Address
		case isAny && len(o.Addresses) > 0 && found == nil:
			found, address = l, o.Addresses[0]
		}
	}
	return found, address
}

// leads reports whether a listener sends connections to a cluster.
func (l *Listener) leads(is func(cluster string) bool) bool {
	for _, chain := range l.allChains() {
		for _, f := range chain.Filters {
			for _, t := range f.TypedConfig.tcpTargets() {
				if is(t.Name) {
					return true
				}
			}
		}
	}
	return false
}

// tcpTargets are the clusters of a TcpProxy; none of other filters.
func (f *FilterConfig) tcpTargets() []ClusterWeight {
	switch {
	case f.Kind() != "TcpProxy":
		return nil
	case f.Cluster != "":
		return []ClusterWeight{{Name: f.Cluster}}
	}
	return f.WeightedClusters.Clusters
}

// through adds what a filter chain does with a connection.
func (s *Sent) through(chain *FilterChain, doubt string, r Request) {
	switch {
	case doubt != "":
		s.Passage.doubt(doubt)
		return
	case chain == nil:
		s.Stopped = "no filter chain of listener " + s.Listener + " is for such connections"
		return
	}
	s.Passage = pass(chain.Filters, r)
	for i := range chain.Filters {
		f := &chain.Filters[i].TypedConfig
		for _, field := range f.WeightedClusters.unknown {
			s.Passage.doubt("the weights of its targets: " + field)
		}
		for _, t := range f.tcpTargets() {
			if f.Cluster != "" || t.Weight > 0 {
				s.Targets = append(s.Targets, t)
			}
		}
	}
	switch {
	case chain.http() != nil:
		s.Passage.doubt("connections that are read as requests of HTTP")
	case s.Passage.Answer == No:
		s.Stopped = s.Passage.Filter + " refuses it"
	case len(s.Targets) == 0:
		s.Stopped = "filter chain " + chain.Name + " of listener " + s.Listener + " sends it nowhere"
	}
}

// Entering is a connection that somebody makes to a gateway.
type Entering struct {
	// Port is where its pod listens.
	Port uint32
	// TLS, with SNI.
	TLS bool
	SNI string
	// Connection: it carries no requests that the gateway reads.
	Connection bool
}

// Enter says what a gateway does with a request, or a connection, that somebody sends to it.
func (c *Config) Enter(in Entering, r Request) Sent {
	out := Sent{Passage: Passage{Answer: Yes}}
	i := slices.IndexFunc(c.Listeners, func(l Listener) bool {
		return l.Address.SocketAddress.PortValue == in.Port && l.TrafficDirection != "INBOUND"
	})
	if i < 0 {
		out.Stopped = fmt.Sprintf("it has no listener for port %d", in.Port)
		return out
	}
	out.Listener = c.Listeners[i].Name
	came := Incoming{Port: in.Port, TLS: in.TLS, SNI: in.SNI}
	if !in.Connection {
		came.ALPN, came.Plain = []string{"h2", "http/1.1"}, []string{"http/1.1"}
	}
	chain, doubt := c.Listeners[i].chainFor(came)
	if chain == nil || doubt != "" || chain.http() == nil {
		out.through(chain, doubt, Request{Port: in.Port})
		return out
	}
	manager := chain.http()
	r.Principal, r.Port = "", in.Port
	connection := pass(chain.Filters, Request{Port: in.Port})
	out.Passage = pass(manager.HTTPFilters, r)
	out.Passage.Doubts = append(connection.Doubts, out.Passage.Doubts...)
	if connection.Answer == No {
		out.Passage = connection
	}
	c.route(&out, manager, r, in.Port)
	return out
}

package envoy

import "slices"

// Chain finds the filter chain of the listener on port for connections to a
// destination port, and with the SNI name if that is not empty; or nil.
func (c *Config) Chain(port, destination uint32, serverName string) *FilterChain {
	for _, chain := range c.chains(port) {
		match := chain.FilterChainMatch
		if match.DestinationPort == destination && (serverName == "" || slices.Contains(match.ServerNames, serverName)) {
			return &chain
		}
	}
	return nil
}

// RouteConfiguration finds routes by their name, or nil.
func (c *Config) RouteConfiguration(name string) *RouteConfiguration {
	for i := range c.Routes {
		if c.Routes[i].Name == name {
			return &c.Routes[i]
		}
	}
	return nil
}

// VirtualHost finds the virtual host of a domain, or nil.
func (r *RouteConfiguration) VirtualHost(domain string) *VirtualHost {
	if r == nil {
		return nil
	}
	for i := range r.VirtualHosts {
		if slices.Contains(r.VirtualHosts[i].Domains, domain) {
			return &r.VirtualHosts[i]
		}
	}
	return nil
}

// SharedDomain is a domain of two virtual hosts, for which a proxy rejects all
// routes; empty if there is none.
func (r *RouteConfiguration) SharedDomain() string {
	seen := map[string]bool{}
	for _, vh := range r.VirtualHosts {
		for _, domain := range vh.Domains {
			if seen[domain] {
				return domain
			}
			seen[domain] = true
		}
	}
	return ""
}

package envoy

// Listener accepts connections.
type Listener struct {
	Name               string
	Address            Address
	TrafficDirection   string // INBOUND, OUTBOUND
	FilterChains       []FilterChain
	DefaultFilterChain *FilterChain
}

// Address is that of a listener or an endpoint.
type Address struct {
	SocketAddress struct {
		Address   string
		PortValue uint32
	}
}

// FilterChain is what a listener does with the connections that match.
type FilterChain struct {
	Name             string
	FilterChainMatch struct {
		DestinationPort      uint32
		ServerNames          []string
		TransportProtocol    string
		ApplicationProtocols []string
	}
	Filters         []Filter
	TransportSocket TransportSocket
}

// Filter is a network filter or an HTTP filter.
type Filter struct {
	Name        string
	TypedConfig FilterConfig
}

// FilterConfig is the configuration of a filter; Type says which.
type FilterConfig struct {
	Type string `json:"@type"`

	// Cluster is a TcpProxy's.
	Cluster string
	// HTTPFilters, RDS and RouteConfig are an HttpConnectionManager's.
	HTTPFilters []Filter
	RDS         struct{ RouteConfigName string }
	RouteConfig *RouteConfiguration
	// Rules and ShadowRules are an RBAC filter's; nil Rules allow everything.
	Rules       *RBAC
	ShadowRules *RBAC
	// FilterEnabled is a CSRF filter's, and a local rate limit's.
	FilterEnabled, ShadowEnabled, FilterEnforced *RuntimeFraction
	// AdditionalOrigins are a CSRF filter's.
	AdditionalOrigins []StringMatcher
	// TokenBucket is a local rate limit's; nil limits nothing.
	TokenBucket *TokenBucket
}

// RuntimeFraction is a percentage that can be changed at run time.
type RuntimeFraction struct{ DefaultValue FractionalPercent }

// Percent is the percentage from 0 to 100; 0 for nil.
func (f *RuntimeFraction) Percent() float64 {
	if f == nil {
		return 0
	}
	return f.DefaultValue.Percent()
}

// TokenBucket allows one request for each token.
type TokenBucket struct {
	MaxTokens, TokensPerFill uint32
	FillInterval             string
}

// RBAC allows or denies requests.
type RBAC struct {
	// Action is ALLOW, the default, or DENY.
	Action string
	// Policies by name. For ALLOW, one must match, so without policies nothing is
	// allowed.
	Policies map[string]RBACPolicy
}

// RBACPolicy matches if one of the permissions and one of the principals do.
type RBACPolicy struct {
	Permissions []Condition
	Principals  []Condition
}

package envoy

// Listener accepts connections.
type Listener struct {
	Name               string
	Address            Address
	TrafficDirection   string // INBOUND, OUTBOUND
	FilterChains       []FilterChain
	DefaultFilterChain *FilterChain
}

// Address is where a listener or an endpoint is.
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

// FilterConfig is the configuration of whatever filter Type names.
type FilterConfig struct {
	Type string `json:"@type"`

	// Cluster is a TcpProxy's.
	Cluster string
	// HTTPFilters, RDS and RouteConfig are an HttpConnectionManager's.
	HTTPFilters []Filter
	RDS         struct{ RouteConfigName string }
	RouteConfig *RouteConfiguration
	// Rules and ShadowRules are an RBAC filter's; nil Rules let everything pass.
	Rules       *RBAC
	ShadowRules *RBAC
	// FilterEnabled is a CSRF filter's, and a local rate limit's.
	FilterEnabled, ShadowEnabled, FilterEnforced *RuntimeFraction
	// AdditionalOrigins are a CSRF filter's.
	AdditionalOrigins []StringMatcher
	// TokenBucket is a local rate limit's; nil limits nothing.
	TokenBucket *TokenBucket
}

// RuntimeFraction is a share that could be changed at run time.
type RuntimeFraction struct{ DefaultValue FractionalPercent }

// Percent is the share as a number from 0 to 100; of nil it is 0.
func (f *RuntimeFraction) Percent() float64 {
	if f == nil {
		return 0
	}
	return f.DefaultValue.Percent()
}

// TokenBucket lets one request through for each token in it.
type TokenBucket struct {
	MaxTokens, TokensPerFill uint32
	FillInterval             string
}

// RBAC lets requests pass, or not.
type RBAC struct {
	// Action is ALLOW, the default, or DENY.
	Action string
	// Policies by name; of ALLOW, one must match, so none lets nothing pass.
	Policies map[string]RBACPolicy
}

// RBACPolicy matches if one of the permissions and one of the principals do.
type RBACPolicy struct {
	Permissions []Condition
	Principals  []Condition
}

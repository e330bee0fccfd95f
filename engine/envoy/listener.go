package envoy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Listener accepts connections.
type Listener struct {
	Name             string
	Address          Address
	TrafficDirection string // INBOUND, OUTBOUND
	// UseOriginalDst: connections to addresses and ports of other listeners are theirs.
	UseOriginalDst     bool
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
	FilterChainMatch ChainMatch
	Filters          []Filter
	TransportSocket  TransportSocket
}

// ChainMatch says which connections a chain is for.
type ChainMatch struct {
	DestinationPort      uint32
	PrefixRanges         []PrefixRange
	ServerNames          []string
	TransportProtocol    string
	ApplicationProtocols []string

	unknown []string
}

// Filter is a network filter or an HTTP filter.
type Filter struct {
	Name        string
	TypedConfig FilterConfig
	// Disabled: it does nothing unless a route enables it.
	Disabled bool
}

// FilterConfig is the configuration of a filter; Type says which.
type FilterConfig struct {
	Type string `json:"@type"`

	// Cluster is a TcpProxy's, and WeightedClusters, too.
	Cluster          string
	WeightedClusters WeightedClusters
	// Optional: a JwtAuthentication's, all of whose rules take requests without a token.
	Optional bool `json:"-"`
	// Abort is an HTTPFault's.
	Abort *FaultAbort
	// HTTPFilters, RDS and RouteConfig are an HttpConnectionManager's.
	HTTPFilters []Filter
	RDS         struct{ RouteConfigName string }
	RouteConfig *RouteConfiguration
	// Rules and ShadowRules are an RBAC filter's; nil Rules allow everything.
	Rules       *RBAC
	ShadowRules *RBAC
	// Matcher decides in place of Rules.
	Matcher json.RawMessage
	// FilterEnabled is a CSRF filter's, and a local rate limit's.
	FilterEnabled, ShadowEnabled, FilterEnforced *RuntimeFraction
	// AdditionalOrigins are a CSRF filter's.
	AdditionalOrigins []StringMatcher
	// TokenBucket is a local rate limit's; nil limits nothing.
	TokenBucket *TokenBucket
}

// parsed are the types of filters whose fields a FilterConfig has.
var parsed = []string{"HttpConnectionManager", "TcpProxy", "RBAC", "HTTPFault", "CsrfPolicy", "LocalRateLimit"}

type plainFilterConfig FilterConfig

// UnmarshalJSON reads the fields of types that are known: those of others may have the same names.
func (f *FilterConfig) UnmarshalJSON(data []byte) error {
	var of struct {
		Type    string `json:"@type"`
		TypeURL string
	}
	if err := json.Unmarshal(data, &of); err != nil {
		return err
	}
	f.Type = cmp.Or(of.TypeURL, of.Type) // of an xds.type.v3.TypedStruct
	switch kind := f.Kind(); {
	case kind == "" || slices.Contains(parsed, kind):
		return json.Unmarshal(data, (*plainFilterConfig)(f))
	case kind == "JwtAuthentication":
		type requirement struct{ AllowMissing, AllowMissingOrFailed *struct{} }
		var jwt struct {
			Rules []struct {
				Requires struct {
					RequiresAny struct{ Requirements []requirement }
					requirement
				}
			}
		}
		if err := json.Unmarshal(data, &jwt); err != nil {
			return err
		}
		optional := func(r requirement) bool { return r.AllowMissing != nil || r.AllowMissingOrFailed != nil }
		f.Optional = true
		for _, rule := range jwt.Rules {
			f.Optional = f.Optional && (optional(rule.Requires.requirement) || slices.ContainsFunc(rule.Requires.RequiresAny.Requirements, optional))
		}
	}
	return nil
}

// Kind is the last part of the type.
func (f *FilterConfig) Kind() string { return f.Type[strings.LastIndexAny(f.Type, "./")+1:] }

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

	unknown []string
}

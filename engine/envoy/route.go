package envoy

import "encoding/json"

// RouteConfiguration has the routes of a port.
type RouteConfiguration struct {
	Name         string
	VirtualHosts []VirtualHost

	unknown []string
}

// VirtualHost has the routes of some hosts.
type VirtualHost struct {
	Name                 string
	Domains              []string
	Routes               []Route
	TypedPerFilterConfig map[string]json.RawMessage

	unknown []string
}

// Route is what happens to requests that match; the first matching route is used.
type Route struct {
	Name  string
	Match RouteMatch
	Route RouteAction

	RequestHeadersToAdd     []HeaderOption
	RequestHeadersToRemove  []string
	ResponseHeadersToAdd    []HeaderOption
	ResponseHeadersToRemove []string
	// TypedPerFilterConfig has faults, CORS and more, by filter.
	TypedPerFilterConfig map[string]json.RawMessage

	// DirectResponse and Redirect answer requests in place of Route.
	DirectResponse *struct{ Status uint32 }
	Redirect       json.RawMessage
	Metadata       Metadata

	unknown []string
}

// Metadata says where a control plane has something from.
type Metadata struct{ FilterMetadata map[string]json.RawMessage }

// FaultAbort answers a share of requests with a status (envoy.extensions.filters.http.fault.v3.FaultAbort).
type FaultAbort struct {
	HTTPStatus uint32
	Percentage FractionalPercent
}

// RouteMatch says which requests a route matches.
type RouteMatch struct {
	Prefix, Path        string
	PathSeparatedPrefix string
	SafeRegex           struct{ Regex string }
	// CaseSensitive is true if it is nil.
	CaseSensitive   *bool
	Headers         []HeaderMatcher
	QueryParameters []QueryParameterMatcher

	unknown []string
}

// HeaderMatcher is a condition on a header.
type HeaderMatcher struct {
	Name        string
	StringMatch *StringMatcher
	// SafeRegexMatch is how older control planes write a StringMatch.
	SafeRegexMatch struct{ Regex string }
	PresentMatch   bool
	InvertMatch    bool
	// TreatMissingHeaderAsEmpty: if false, a request without the header does not
	// match, inverted or not.
	TreatMissingHeaderAsEmpty bool

	unknown []string
}

// QueryParameterMatcher is a condition on a query parameter.
type QueryParameterMatcher struct {
	Name         string
	StringMatch  *StringMatcher
	PresentMatch bool

	unknown []string
}

// StringMatcher has one field set.
type StringMatcher struct {
	Exact, Prefix, Suffix, Contains string
	SafeRegex                       struct{ Regex string }
	IgnoreCase                      bool

	unknown []string
}

// RouteAction sends requests somewhere.
type RouteAction struct {
	Cluster          string
	WeightedClusters WeightedClusters
	Timeout          string
	RetryPolicy      *RetryPolicy
	// RequestMirrorPolicies are the targets of copies.
	RequestMirrorPolicies []MirrorPolicy
	// HostRewriteLiteral replaces the request's host, unless it is empty.
	HostRewriteLiteral string
	HashPolicy         []json.RawMessage

	unknown []string
}

// ClusterWeight is the weight of a cluster.
type ClusterWeight struct {
	Name   string
	Weight uint32
	// HostRewriteLiteral replaces the request's host, unless it is empty.
	HostRewriteLiteral string

	RequestHeadersToAdd     []HeaderOption
	RequestHeadersToRemove  []string
	ResponseHeadersToAdd    []HeaderOption
	ResponseHeadersToRemove []string

	unknown []string
}

// WeightedClusters are the clusters of an action that divides requests.
type WeightedClusters struct {
	Clusters []ClusterWeight

	unknown []string
}

// Targets are the clusters of an action with their weights; a single one has
// weight 0.
func (a RouteAction) Targets() []ClusterWeight {
	if a.Cluster != "" {
		return []ClusterWeight{{Name: a.Cluster}}
	}
	return a.WeightedClusters.Clusters
}

// RetryPolicy has the number and the timeout of retries.
type RetryPolicy struct {
	RetryOn       string
	NumRetries    uint32
	PerTryTimeout string
}

// MirrorPolicy sends copies to a cluster.
type MirrorPolicy struct {
	Cluster         string
	RuntimeFraction struct{ DefaultValue FractionalPercent }
}

// FractionalPercent is a percentage as a fraction.
type FractionalPercent struct {
	Numerator   uint32
	Denominator string // HUNDRED, the default, TEN_THOUSAND or MILLION
}

// Percent is the percentage from 0 to 100.
func (p FractionalPercent) Percent() float64 {
	switch p.Denominator {
	case "MILLION":
		return float64(p.Numerator) / 10_000
	case "TEN_THOUSAND":
		return float64(p.Numerator) / 100
	default:
		return float64(p.Numerator)
	}
}

// HeaderOption adds a header.
type HeaderOption struct {
	Header struct{ Key, Value string }
	// AppendAction is empty for APPEND_IF_EXISTS_OR_ADD, the default.
	AppendAction string
}

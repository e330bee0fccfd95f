package envoy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Answer is what is known of whether a condition holds.
type Answer int

// Answers, so that the smaller of two is that of both conditions together, and the greater that of either.
const (
	No Answer = iota
	Unknown
	Yes
)

func answer(holds bool) Answer {
	if holds {
		return Yes
	}
	return No
}

func (a Answer) not() Answer { return Yes - a }

// harmless are fields that decide nothing about where a request goes and who lets it in, by the type that has them.
var harmless = map[string][]string{
	"RouteMatch":            {},
	"HeaderMatcher":         {},
	"QueryParameterMatcher": {},
	"StringMatcher":         {},
	"ChainMatch":            {},
	"VirtualHost": {
		"virtualClusters", "rateLimits", "includeRequestAttemptCount", "includeAttemptCountInResponse", "includeIsTimeoutRetryHeader",
		"retryPolicy", "hedgePolicy", "perRequestBufferLimitBytes", "requestBodyBufferLimit", "requestMirrorPolicies", "metadata", "cors",
		"responseHeadersToAdd", "responseHeadersToRemove", "retryPolicyTypedConfig",
	},
	"Route": {
		"metadata", "decorator", "tracing", "statPrefix", "perRequestBufferLimitBytes", "requestBodyBufferLimit",
	},
	"RouteAction": {
		"maxGrpcTimeout", "idleTimeout", "maxStreamDuration", "grpcTimeoutOffset", "appendXForwardedHost",
		"priority", "rateLimits", "includeVhRateLimits", "upgradeConfigs", "hedgePolicy", "clusterNotFoundResponseCode", "flushTimeout", "cors",
	},
	"WeightedClusters": {"totalWeight"},
	"ClusterWeight":    {},
	"RouteConfiguration": {
		"@type", "validateClusters", "maxDirectResponseBodySizeBytes", "ignorePortInHostMatching", "internalOnlyHeaders", "responseHeadersToAdd",
		"responseHeadersToRemove", "metadata", "mostSpecificHeaderMutationsWins", "requestMirrorPolicies",
	},
}

// read decodes a message, and returns the fields that are set and that may decide something, but that the type does not have.
func read[T any](data []byte, into *T) ([]string, error) {
	if err := json.Unmarshal(data, into); err != nil {
		return nil, err
	}
	var set map[string]json.RawMessage
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, err
	}
	t := reflect.TypeFor[T]()
	var unknown []string
	for name := range set {
		_, has := t.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		if !has && !slices.Contains(harmless[strings.TrimPrefix(t.Name(), "plain")], name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown, nil
}

// The types below have the fields of the ones without plain, and not their methods, which would call themselves.
type (
	plainRouteMatch            RouteMatch
	plainHeaderMatcher         HeaderMatcher
	plainQueryParameterMatcher QueryParameterMatcher
	plainStringMatcher         StringMatcher
	plainRoute                 Route
	plainRouteAction           RouteAction
	plainChainMatch            ChainMatch
	plainRBACPolicy            RBACPolicy
	plainVirtualHost           VirtualHost
	plainWeightedClusters      WeightedClusters
	plainClusterWeight         ClusterWeight
	plainRouteConfiguration    RouteConfiguration
)

// UnmarshalJSON notes the fields that this package does not know.
func (m *RouteMatch) UnmarshalJSON(data []byte) (err error) {
	m.unknown, err = read(data, (*plainRouteMatch)(m))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (h *HeaderMatcher) UnmarshalJSON(data []byte) (err error) {
	h.unknown, err = read(data, (*plainHeaderMatcher)(h))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (q *QueryParameterMatcher) UnmarshalJSON(data []byte) (err error) {
	q.unknown, err = read(data, (*plainQueryParameterMatcher)(q))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (m *StringMatcher) UnmarshalJSON(data []byte) (err error) {
	m.unknown, err = read(data, (*plainStringMatcher)(m))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (r *Route) UnmarshalJSON(data []byte) (err error) {
	r.unknown, err = read(data, (*plainRoute)(r))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (a *RouteAction) UnmarshalJSON(data []byte) (err error) {
	a.unknown, err = read(data, (*plainRouteAction)(a))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (m *ChainMatch) UnmarshalJSON(data []byte) (err error) {
	m.unknown, err = read(data, (*plainChainMatch)(m))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (p *RBACPolicy) UnmarshalJSON(data []byte) (err error) {
	p.unknown, err = read(data, (*plainRBACPolicy)(p))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (v *VirtualHost) UnmarshalJSON(data []byte) (err error) {
	v.unknown, err = read(data, (*plainVirtualHost)(v))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (w *WeightedClusters) UnmarshalJSON(data []byte) (err error) {
	w.unknown, err = read(data, (*plainWeightedClusters)(w))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (c *ClusterWeight) UnmarshalJSON(data []byte) (err error) {
	c.unknown, err = read(data, (*plainClusterWeight)(c))
	return err
}

// UnmarshalJSON notes the fields that this package does not know.
func (r *RouteConfiguration) UnmarshalJSON(data []byte) (err error) {
	r.unknown, err = read(data, (*plainRouteConfiguration)(r))
	return err
}

package istio

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// httpRoute is a route of a rule, and where it was written.
type httpRoute struct {
	*networking.HTTPRoute
	ref snapshot.Ref
	// unknown is what of its action is not evaluated; empty if all is.
	unknown string
}

// httpRoutesOf are the routes of an HTTPRoute, one for each match; nil if Istio does not take it (Istio, convertHTTPRoute).
func (a *attacher) httpRoutesOf(o *gatewayv1.HTTPRoute, ref snapshot.Ref) (out []httpRoute) {
	for i := range o.Spec.Rules {
		rule := &o.Spec.Rules[i]
		route, err := a.actionOf(rule.Filters, rule.BackendRefs, ref)
		if err != nil {
			return nil
		}
		if limit := timeoutOf(rule); limit > 0 {
			route.Timeout = durationpb.New(limit)
		}
		matches := rule.Matches
		if len(matches) == 0 {
			matches = []gatewayv1.HTTPRouteMatch{{}} // as API servers complete it
		}
		for _, m := range matches {
			one := route
			one.HTTPRoute = cloned(route.HTTPRoute, &networking.HTTPMatchRequest{Uri: pathMatch(m.Path), Headers: headerMatches(m.Headers), QueryParams: valueMatches(m.QueryParams)})
			if m.Method != "" {
				one.Match[0].Method = exact(m.Method)
			}
			out = append(out, one)
		}
	}
	return out
}

// cloned is a route with another match.
func cloned(r *networking.HTTPRoute, m *networking.HTTPMatchRequest) *networking.HTTPRoute {
	return &networking.HTTPRoute{
		Match: []*networking.HTTPMatchRequest{m}, Route: r.Route, Redirect: r.Redirect, Rewrite: r.Rewrite, DirectResponse: r.DirectResponse,
		Headers: r.Headers, Timeout: r.Timeout,
	}
}

// timeoutOf is that of all tries: where nothing is retried, that of one try is (Istio, convertHTTPRoute).
func timeoutOf(rule *gatewayv1.HTTPRouteRule) time.Duration {
	if rule.Timeouts == nil {
		return 0
	}
	request, _ := time.ParseDuration(rule.Timeouts.Request)
	one, _ := time.ParseDuration(rule.Timeouts.BackendRequest)
	if one != 0 && rule.Retry == nil {
		return one
	}
	return request
}

// pathMatch is a condition on paths. Prefixes end where an element of the path does: see attachedMatch.
func pathMatch(m *gatewayv1.PathMatch) *networking.StringMatch {
	kind, value := gatewayv1.PathPrefix, "/"
	if m != nil {
		kind = cmp.Or(m.Type, kind)
		if m.Value != nil {
			value = *m.Value
		}
	}
	switch kind {
	case gatewayv1.Exact:
		return exact(value)
	case gatewayv1.RegularExpression:
		return regex(value)
	}
	if value != "/" {
		value = strings.TrimSuffix(value, "/")
	}
	return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: value}}
}

func valueMatches(list []gatewayv1.ValueMatch) map[string]*networking.StringMatch {
	var out map[string]*networking.StringMatch
	for _, m := range list {
		if m.Type == gatewayv1.RegularExpression {
			set(&out, m.Name, regex(m.Value))
		} else {
			set(&out, m.Name, exact(m.Value))
		}
	}
	return out
}

// headerMatches have names in lower case, as Envoy compares them.
func headerMatches(list []gatewayv1.ValueMatch) map[string]*networking.StringMatch {
	lower := slices.Clone(list)
	for i := range lower {
		lower[i].Name = strings.ToLower(lower[i].Name)
	}
	return valueMatches(lower)
}

// grpcRoutesOf are the routes of a GRPCRoute (Istio, convertGRPCRoute).
func (a *attacher) grpcRoutesOf(o *gatewayv1.GRPCRoute, ref snapshot.Ref) (out []httpRoute) {
	for i := range o.Spec.Rules {
		rule := &o.Spec.Rules[i]
		route, err := a.actionOf(rule.Filters, rule.BackendRefs, ref)
		if err != nil || route.Redirect != nil || route.Rewrite != nil {
			return nil // it has no such filters
		}
		if len(rule.Matches) == 0 {
			out = append(out, route)
		}
		for _, m := range rule.Matches {
			one := route
			one.HTTPRoute = cloned(route.HTTPRoute, &networking.HTTPMatchRequest{Uri: methodMatch(m.Method), Headers: headerMatches(m.Headers)})
			out = append(out, one)
		}
	}
	return out
}

// methodMatch is a condition on the path, which is /SERVICE/METHOD (Istio, createGRPCURIMatch).
func methodMatch(m *gatewayv1.GRPCMethodMatch) *networking.StringMatch {
	switch {
	case m == nil:
		return nil
	case m.Service == "":
		return regex("/[^/]+/" + m.Method)
	case m.Type == gatewayv1.RegularExpression:
		return regex("/" + m.Service + "/" + cmp.Or(m.Method, ".+"))
	case m.Method == "":
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: "/" + m.Service + "/"}}
	}
	return exact("/" + m.Service + "/" + m.Method)
}

// sortRoutes puts routes into the order in which the Gateway API has them tried (Istio, sortHTTPRoutes).
func sortRoutes(routes []httpRoute) {
	slices.SortStableFunc(routes, func(a, b httpRoute) int {
		if len(a.Match) == 0 || len(b.Match) == 0 {
			return cmp.Compare(len(b.Match), len(a.Match))
		}
		m, n := a.Match[0], b.Match[0]
		return cmp.Or(cmp.Compare(uriRank(n), uriRank(m)), cmp.Compare(uriLength(n), uriLength(m)), order(m.Method == nil, n.Method == nil),
			cmp.Compare(len(n.Headers), len(m.Headers)), cmp.Compare(len(n.QueryParams), len(m.QueryParams)))
	})
}

func uriRank(m *networking.HTTPMatchRequest) int {
	switch m.Uri.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return 3
	case *networking.StringMatch_Prefix:
		return 2
	case *networking.StringMatch_Regex:
		return 1
	}
	return 0
}

func uriLength(m *networking.HTTPMatchRequest) int {
	return len(m.Uri.GetExact()) + len(m.Uri.GetPrefix()) + len(m.Uri.GetRegex())
}

package istio

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// routesOf are those of a route for sidecars, one for each of its matches.
func (h *handWritten) routesOf(r httpRoute, matchOf func(*networking.HTTPMatchRequest) (snapshot.Match, string), of *snapshot.HostQuery) (out []snapshot.HandRoute) {
	one := snapshot.HandRoute{ActionUnknown: r.unknown}
	h.act(&one, r)
	matches := r.Match
	if len(matches) == 0 {
		matches = []*networking.HTTPMatchRequest{{}}
	}
	for _, m := range matches {
		if m.Port != 0 && of.Port != 0 && m.Port != of.Port || len(m.Gateways) > 0 && !slices.Contains(m.Gateways, meshGateway) {
			continue
		}
		one.Match, one.MatchUnknown = matchOf(m)
		if len(m.Gateways) > 0 { // then nothing is asked about the callers (Istio, sourceMatchHTTP)
			one.Match.SourceNamespace, one.Match.SourceLabels = "", nil
		}
		out = append(out, one)
	}
	return out
}

// attachedMatch is a match of the Gateway API, in which a prefix ends where an element of the path does (Istio, TranslateRouteMatch).
func attachedMatch(m *networking.HTTPMatchRequest) (snapshot.Match, string) {
	out, unknown := matchOf(m)
	if prefix := strings.TrimSuffix(m.Uri.GetPrefix(), "/"); prefix != "" {
		out.Request.Uri = &commonv1.StringMatch{Regex: regexp.QuoteMeta(prefix) + "(/.*)?"}
	}
	return out, unknown
}

// meshGateway stands for all sidecars (istio.io: VirtualService.gateways).
const meshGateway = "mesh"

// matchOf is the opposite of matchRequest.
func matchOf(m *networking.HTTPMatchRequest) (out snapshot.Match, unknown string) {
	out = snapshot.Match{SourceNamespace: m.SourceNamespace, SourceLabels: m.SourceLabels}
	request := &networkingv1.HttpMatcher{}
	if m.Uri != nil {
		request.Uri = &commonv1.StringMatch{Exact: m.Uri.GetExact(), Prefix: m.Uri.GetPrefix(), Regex: m.Uri.GetRegex(), IgnoreCase: m.IgnoreUriCase && m.Uri.GetRegex() == ""}
	}
	switch method := m.Method; {
	case method == nil:
	case method.GetExact() != "":
		request.Method = method.GetExact()
	default:
		unknown = "methods by pattern"
	}
	if m.Scheme != nil || m.Authority != nil {
		unknown = "the scheme or authority of requests"
	}
	for name, v := range m.Headers {
		request.Headers = append(request.Headers, headerOf(name, v, false))
	}
	for name, v := range m.WithoutHeaders {
		request.Headers = append(request.Headers, headerOf(name, v, true))
	}
	for name, v := range m.QueryParams {
		value, isRegex := valueOf(v)
		request.QueryParameters = append(request.QueryParameters, networkingv1.QueryParameterMatcher{Name: name, Value: value, Regex: isRegex})
	}
	slices.SortFunc(request.Headers, func(a, b networkingv1.HeaderMatcher) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(request.QueryParameters, func(a, b networkingv1.QueryParameterMatcher) int { return strings.Compare(a.Name, b.Name) })
	out.Request = request
	return out, unknown
}

func headerOf(name string, m *networking.StringMatch, without bool) networkingv1.HeaderMatcher {
	value, isRegex := valueOf(m)
	return networkingv1.HeaderMatcher{Name: name, Value: value, Regex: isRegex, InvertMatch: without}
}

// valueOf is the opposite of valueMatch; a prefix becomes a regular expression.
func valueOf(m *networking.StringMatch) (value string, isRegex bool) {
	switch {
	case m.GetExact() != "":
		return m.GetExact(), false
	case m.GetRegex() != "":
		return m.GetRegex(), true
	case m.GetPrefix() != "":
		return regexp.QuoteMeta(m.GetPrefix()) + ".*", true
	}
	return "", false
}

// act says what a route does with requests.
func (h *handWritten) act(to *snapshot.HandRoute, r httpRoute) {
	out := &snapshot.Action{Policies: []snapshot.Ref{r.ref}}
	to.Action = out
	origin := snapshot.Origin{Ref: r.ref, Field: "http"}
	if r.ref.Kind != snapshot.VirtualService {
		origin.Field = "rules"
	}
	switch {
	case r.Redirect != nil:
		to.ActionUnknown = "it redirects them"
		return
	case r.DirectResponse != nil:
		to.Ends = fmt.Sprintf("answers them with status %d itself", r.DirectResponse.Status)
		return
	case r.Delegate != nil:
		to.ActionUnknown = "it delegates them to another VirtualService"
		return
	case r.Rewrite != nil:
		to.ActionUnknown = "it rewrites them"
	}
	if f := r.Fault.GetAbort(); f != nil {
		if f.GetHttpStatus() == 0 {
			to.ActionUnknown = "it aborts them with a status of gRPC"
		}
		out.Abort = &snapshot.WithOrigin[snapshot.Abort]{Value: snapshot.Abort{Status: f.GetHttpStatus(), Percent: percentOf(f.Percentage)}, Origin: origin}
	}
	if f := r.Fault.GetDelay(); f != nil {
		out.Delay = &snapshot.WithOrigin[snapshot.Delay]{Value: snapshot.Delay{Duration: f.GetFixedDelay().AsDuration(), Percent: percentOf(f.Percentage)}, Origin: origin}
	}
	if d := r.Timeout.AsDuration(); d > 0 {
		out.Timeout = &snapshot.WithOrigin[time.Duration]{Value: d, Origin: origin}
	}
	if m := headersOf(r.Headers); m != nil {
		out.Headers = &snapshot.WithOrigin[networkingv1.HeaderManipulation]{Value: *m, Origin: origin}
	}
	out.Targets = &snapshot.WithOrigin[[]snapshot.Target]{Origin: origin}
	for _, d := range r.Route {
		out.Targets.Value = append(out.Targets.Value, h.target(d.Destination, d.Weight, r.ref.Namespace, headersOf(d.Headers)))
	}
}

// target is where some of the requests of a route go. It has no host where the route names a backend that it may not use.
func (h *handWritten) target(d *networking.Destination, weight int32, namespace string, headers *networkingv1.HeaderManipulation) snapshot.Target {
	host := d.GetHost()
	if host != "" {
		host = h.fullName(host, namespace)
	}
	return snapshot.Target{
		Host: host, Port: d.GetPort().GetNumber(), Subset: d.GetSubset(), Weight: uint32(max(weight, 0)), Headers: headers,
	}
}

// headersOf are the changes of headers; those that are set are removed before.
func headersOf(h *networking.Headers) *networkingv1.HeaderManipulation {
	if h == nil {
		return nil
	}
	out := &networkingv1.HeaderManipulation{
		AppendRequestHeaders: map[string]string{}, RemoveRequestHeaders: slices.Clone(h.Request.GetRemove()),
		AppendResponseHeaders: map[string]string{}, RemoveResponseHeaders: slices.Clone(h.Response.GetRemove()),
	}
	for _, change := range []struct {
		of     *networking.Headers_HeaderOperations
		append map[string]string
		remove *[]string
	}{{h.Request, out.AppendRequestHeaders, &out.RemoveRequestHeaders}, {h.Response, out.AppendResponseHeaders, &out.RemoveResponseHeaders}} {
		maps.Copy(change.append, change.of.GetAdd())
		maps.Copy(change.append, change.of.GetSet())
		*change.remove = append(*change.remove, slices.Sorted(maps.Keys(change.of.GetSet()))...)
	}
	return out
}

// percentOf is all if nothing is said (istio.io: HTTPFaultInjection).
func percentOf(p *networking.Percent) float64 {
	if p == nil {
		return 100
	}
	return p.Value
}

// fullName is a host as Istio reads it in an object of a namespace.
func (h *handWritten) fullName(host, namespace string) string {
	host = strings.ToLower(host)
	if !strings.Contains(host, ".") {
		host += "." + namespace + ".svc." + h.from.DomainOrDefault()
	}
	return host
}

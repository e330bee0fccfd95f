package istio

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// RoutesFor implements snapshot.ByHand. Proxies use the VirtualServices of their own namespace and those exported to it by name before
// those for all, each time the oldest, and one for a host before one for a pattern (Istio, SelectVirtualServices and
// separateVSHostsAndServices).
func (h *handWritten) RoutesFor(of *snapshot.HostQuery, namespace string) (out []snapshot.HandRoutes) {
	exact := h.virtualServices.named(of.Host)
	for _, o := range h.virtualServices.matching(of.Host) {
		to := o.seenBy(of.Mesh)
		if !to.includes(namespace) {
			continue
		}
		isPattern := !slices.ContainsFunc(exact, func(e handWrittenObject) bool { return e.ref == o.ref })
		routes := snapshot.HandRoutes{Ref: o.ref, Pattern: isPattern, First: !to.all && !isPattern, Created: o.created}
		if vs := h.virtualServiceOf[o.ref]; vs != nil {
			routes.Routes = h.routesOf(vs, of)
		}
		out = append(out, routes)
	}
	slices.SortStableFunc(out, func(a, b snapshot.HandRoutes) int {
		return cmp.Or(order(a.Pattern, b.Pattern), order(b.First, a.First), a.Created.Compare(b.Created),
			strings.Compare(a.Ref.Name+"."+a.Ref.Namespace, b.Ref.Name+"."+b.Ref.Namespace))
	})
	return out
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// routesOf are the routes of a VirtualService for sidecars, one for each of their matches.
func (h *handWritten) routesOf(vs *istionetworkingv1.VirtualService, of *snapshot.HostQuery) (out []snapshot.HandRoute) {
	ref := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: h.from.Name, Namespace: vs.Namespace, Name: vs.Name}
	for _, route := range vs.Spec.Http {
		action, unknown := h.actionOf(route, vs.Namespace, ref)
		matches := route.Match
		if len(matches) == 0 {
			matches = []*networking.HTTPMatchRequest{{}}
		}
		for _, m := range matches {
			if m.Port != 0 && of.Port != 0 && m.Port != of.Port || len(m.Gateways) > 0 && !slices.Contains(m.Gateways, meshGateway) {
				continue
			}
			one := snapshot.HandRoute{ActionUnknown: unknown}
			one.Match, one.MatchUnknown = matchOf(m)
			one.Action = action
			out = append(out, one)
		}
	}
	return out
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

// actionOf is what a route does with requests. Unknown is what of it is not evaluated.
func (h *handWritten) actionOf(r *networking.HTTPRoute, namespace string, ref snapshot.Ref) (out *snapshot.Action, unknown string) {
	out = &snapshot.Action{Policies: []snapshot.Ref{ref}}
	origin := snapshot.Origin{Ref: ref, Field: "http"}
	switch {
	case r.Redirect != nil:
		return out, "it redirects them"
	case r.DirectResponse != nil:
		return out, "it answers them itself"
	case r.Delegate != nil:
		return out, "it delegates them to another VirtualService"
	case r.Rewrite != nil:
		unknown = "it rewrites them"
	}
	if f := r.Fault.GetAbort(); f != nil {
		if f.GetHttpStatus() == 0 {
			unknown = "it aborts them with a status of gRPC"
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
	targets := &snapshot.WithOrigin[[]snapshot.Target]{Origin: origin}
	for _, d := range r.Route {
		targets.Value = append(targets.Value, snapshot.Target{
			Host: h.fullName(d.Destination.GetHost(), namespace), Port: d.Destination.GetPort().GetNumber(), Subset: d.Destination.GetSubset(), Weight: uint32(max(d.Weight, 0)),
			Headers: headersOf(d.Headers),
		})
	}
	out.Targets = targets
	return out, unknown
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

// SubsetLabels implements snapshot.ByHand.
func (h *handWritten) SubsetLabels(of *snapshot.HostQuery, namespace, subset string) (map[string]string, bool) {
	for _, o := range h.destinationRules.matching(of.Host) {
		if to, _ := o.ruleFor(of); !to.includes(namespace) {
			continue
		}
		for _, s := range h.destinationRuleOf[o.ref].Spec.GetSubsets() {
			if s.Name == subset {
				return s.Labels, true
			}
		}
	}
	return nil, false
}

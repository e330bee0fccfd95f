package istio

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// httpOf are the routes of a VirtualService for requests, with those of other ones in place of the routes that delegate to these. One
// that is not there, or that is not exported to the namespace, has none (Istio, mergeVirtualServices).
func (h *handWritten) httpOf(mesh *snapshot.MeshPlan, vs *istionetworkingv1.VirtualService) (out []httpRoute) {
	ref := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: h.from.Name, Namespace: vs.Namespace, Name: vs.Name}
	for _, r := range vs.Spec.Http {
		if r.Delegate == nil {
			out = append(out, httpRoute{HTTPRoute: r, ref: ref})
			continue
		}
		to := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: h.from.Name, Namespace: r.Delegate.Namespace, Name: r.Delegate.Name}
		if to.Namespace == "" {
			to.Namespace = vs.Namespace
		}
		delegate := h.virtualServiceOf[to]
		if delegate == nil || len(delegate.Spec.Hosts) > 0 || !h.reads(mesh, delegate) ||
			!(handWrittenObject{ref: to, exportTo: delegate.Spec.ExportTo}).seenBy(mesh).includes(vs.Namespace) {
			continue
		}
		for _, leaf := range delegate.Spec.Http {
			if merged := mergeRoutes(r, leaf, vs.Namespace, to.Namespace); merged != nil {
				out = append(out, httpRoute{HTTPRoute: merged, ref: to})
			}
		}
	}
	return out
}

// mergeRoutes is a route of a delegate as that of a root; nil if it asks for what the root does not take (Istio, mergeHTTPRoute).
func mergeRoutes(root, leaf *networking.HTTPRoute, rootNamespace, namespace string) *networking.HTTPRoute {
	matches, ok := mergeMatches(fullGateways(root.Match, rootNamespace), fullGateways(leaf.Match, namespace))
	if !ok {
		return nil
	}
	out := &networking.HTTPRoute{
		Match: matches, Route: leaf.Route, Redirect: leaf.Redirect, Delegate: leaf.Delegate,
		Rewrite: leaf.Rewrite, DirectResponse: leaf.DirectResponse, Timeout: leaf.Timeout, Fault: leaf.Fault, Headers: leaf.Headers,
	}
	if out.Rewrite == nil {
		out.Rewrite = root.Rewrite
	}
	if out.DirectResponse == nil {
		out.DirectResponse = root.DirectResponse
	}
	if out.Timeout == nil {
		out.Timeout = root.Timeout
	}
	if out.Fault == nil {
		out.Fault = root.Fault
	}
	if out.Headers == nil {
		out.Headers = root.Headers
	}
	return out
}

// fullGateways are matches with the full names of gateways, which are relative to the namespace of their object.
func fullGateways(matches []*networking.HTTPMatchRequest, namespace string) (out []*networking.HTTPMatchRequest) {
	for _, m := range matches {
		one := copyMatch(m)
		one.Gateways = slices.Clone(m.Gateways)
		for i, name := range one.Gateways {
			if name != meshGateway {
				one.Gateways[i] = boundName(name, namespace)
			}
		}
		out = append(out, one)
	}
	return out
}

// copyMatch has what is read of a match.
func copyMatch(m *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	return &networking.HTTPMatchRequest{
		Uri: m.Uri, Scheme: m.Scheme, Method: m.Method, Authority: m.Authority, Headers: m.Headers, WithoutHeaders: m.WithoutHeaders,
		QueryParams: m.QueryParams, IgnoreUriCase: m.IgnoreUriCase, Port: m.Port, SourceLabels: m.SourceLabels, SourceNamespace: m.SourceNamespace, Gateways: m.Gateways,
	}
}

// mergeMatches is false if one of the delegate goes with none of the root.
func mergeMatches(root, leaf []*networking.HTTPMatchRequest) (out []*networking.HTTPMatchRequest, ok bool) {
	switch {
	case len(root) == 0:
		return leaf, true
	case len(leaf) == 0:
		return root, true
	}
	for _, l := range leaf {
		found := false
		for _, r := range root {
			if !contradicts(r, l) {
				out, found = append(out, mergeMatch(r, l)), true
			}
		}
		if !found {
			return nil, false
		}
	}
	return out, true
}

func mergeMatch(root, leaf *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := copyMatch(leaf)
	out.Uri, out.Scheme, out.Method, out.Authority = either(leaf.Uri, root.Uri), either(leaf.Scheme, root.Scheme), either(leaf.Method, root.Method), either(leaf.Authority, root.Authority)
	out.Headers, out.WithoutHeaders = mergedMaps(root.Headers, leaf.Headers), mergedMaps(root.WithoutHeaders, leaf.WithoutHeaders)
	out.QueryParams, out.SourceLabels = mergedMaps(root.QueryParams, leaf.QueryParams), mergedMaps(root.SourceLabels, leaf.SourceLabels)
	if out.Port == 0 {
		out.Port = root.Port
	}
	if out.SourceNamespace == "" {
		out.SourceNamespace = root.SourceNamespace
	}
	if len(out.Gateways) == 0 {
		out.Gateways = root.Gateways
	}
	return out
}

func either(a, b *networking.StringMatch) *networking.StringMatch {
	if a == nil {
		return b
	}
	return a
}

func mergedMaps[V any](root, leaf map[string]V) map[string]V {
	if len(root)+len(leaf) == 0 {
		return nil
	}
	out := maps.Clone(root)
	if out == nil {
		out = map[string]V{}
	}
	maps.Copy(out, leaf)
	return out
}

// contradicts reports whether a match of a delegate asks for something else than that of the root (Istio, hasConflict).
func contradicts(root, leaf *networking.HTTPMatchRequest) bool {
	differ := func(root, leaf map[string]*networking.StringMatch) bool {
		for name, m := range leaf {
			if outside(root[name], m) {
				return true
			}
		}
		return false
	}
	for name, value := range leaf.SourceLabels {
		if of, found := root.SourceLabels[name]; found && of != value {
			return true
		}
	}
	return outside(root.Uri, leaf.Uri) || outside(root.Scheme, leaf.Scheme) || outside(root.Method, leaf.Method) || outside(root.Authority, leaf.Authority) ||
		differ(root.Headers, leaf.Headers) || differ(root.WithoutHeaders, leaf.WithoutHeaders) || differ(root.QueryParams, leaf.QueryParams) ||
		root.IgnoreUriCase != leaf.IgnoreUriCase || root.Port > 0 && leaf.Port > 0 && root.Port != leaf.Port ||
		root.SourceNamespace != "" && leaf.SourceNamespace != root.SourceNamespace || otherGateways(root.Gateways, leaf.Gateways)
}

func otherGateways(root, leaf []string) bool {
	return len(root) > 0 && len(leaf) > 0 && (len(root) < len(leaf) || slices.ContainsFunc(leaf, func(name string) bool { return !slices.Contains(root, name) }))
}

// outside reports whether a condition is not known to be a part of another one (Istio, stringMatchConflict).
func outside(root, leaf *networking.StringMatch) bool {
	switch {
	case root == nil || leaf == nil:
		return false
	case root.GetRegex() != "" || leaf.GetRegex() != "":
		return true
	case root.GetExact() != "":
		return leaf.GetPrefix() != "" || leaf.GetExact() != root.GetExact()
	case root.GetPrefix() != "":
		return leaf.GetPrefix()+leaf.GetExact() == "" || !strings.HasPrefix(leaf.GetPrefix()+leaf.GetExact(), root.GetPrefix())
	}
	return true
}

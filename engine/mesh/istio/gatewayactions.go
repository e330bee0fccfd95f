package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// actionOf is what a rule does.
func (a *attacher) actionOf(filters []gatewayv1.Filter, backends []gatewayv1.BackendRef, ref snapshot.Ref) (out httpRoute, err error) {
	out = httpRoute{HTTPRoute: &networking.HTTPRoute{}, ref: ref}
	for i := range filters {
		switch f := &filters[i]; f.Type {
		case "RequestMirror", "CORS":
		case "RequestRedirect":
			out.Redirect = &networking.HTTPRedirect{}
		case "URLRewrite":
			out.Rewrite = &networking.HTTPRewrite{}
		default:
			if out.Headers, err = headerFilter(out.Headers, f); err != nil {
				return out, err
			}
		}
	}
	var sum int32
	for i := range backends {
		sum += weightOf(&backends[i])
	}
	if sum == 0 && out.Redirect == nil {
		out.DirectResponse = &networking.HTTPDirectResponse{Status: 500}
		return out, nil
	}
	for i := range backends {
		b := &backends[i]
		if weightOf(b) == 0 {
			continue
		}
		to := &networking.HTTPRouteDestination{Weight: weightOf(b)}
		var unknown string
		if to.Destination, unknown, err = a.destinationOf(b, ref); err != nil {
			return out, err
		}
		out.unknown = cmp.Or(out.unknown, unknown)
		for i := range b.Filters {
			if to.Headers, err = headerFilter(to.Headers, &b.Filters[i]); err != nil {
				return out, err
			}
		}
		out.Route = append(out.Route, to)
	}
	return out, nil
}

// weightOf is 1 if nothing is said.
func weightOf(b *gatewayv1.BackendRef) int32 {
	if b.Weight == nil {
		return 1
	}
	return *b.Weight
}

// headerFilter adds a filter to changes of headers. Of two of a type, the later one holds.
func headerFilter(to *networking.Headers, f *gatewayv1.Filter) (*networking.Headers, error) {
	out := &networking.Headers{Request: to.GetRequest(), Response: to.GetResponse()}
	ops := func(h *gatewayv1.HeaderFilter) *networking.Headers_HeaderOperations {
		if h == nil {
			return nil
		}
		return &networking.Headers_HeaderOperations{Set: headerNames(h.Set), Add: headerNames(h.Add), Remove: slices.Clone(h.Remove)}
	}
	switch f.Type {
	case gatewayv1.RequestHeaderModifier:
		if o := ops(f.RequestHeaderModifier); o != nil {
			out.Request = o
		}
	case gatewayv1.ResponseHeaderModifier:
		if o := ops(f.ResponseHeaderModifier); o != nil {
			out.Response = o
		}
	default:
		return nil, &notTakenError{"filter " + f.Type}
	}
	return out, nil
}

// destinationOf is where a backend is: nowhere, for one in another namespace that no ReferenceGrant opens. Unknown is why that is not
// followed (Istio, buildDestination).
func (a *attacher) destinationOf(b *gatewayv1.BackendRef, ref snapshot.Ref) (to *networking.Destination, unknown string, err error) {
	group, kind, namespace := valueOr(b.Group, ""), valueOr(b.Kind, "Service"), ref.Namespace
	to = &networking.Destination{}
	switch in := valueOr(b.Namespace, namespace); {
	case a.atGateways && in != namespace && !granted(a.grants, ref, group, kind, in, b.Name):
		return to, "", nil
	case group == "" && kind == "Service" && !strings.Contains(b.Name, "."), group == "multicluster.x-k8s.io" && kind == "ServiceImport":
		to.Host = b.Name + "." + valueOr(b.Namespace, namespace) + ".svc." + a.domain
	case group == istioGroup && kind == "Hostname" && b.Namespace == nil:
		to.Host = b.Name
	case group == "" && kind == "Service", group == istioGroup && kind == "Hostname":
		return nil, "", &notTakenError{"backend " + b.Name}
	default:
		return to, fmt.Sprintf("it sends them to %s %s, which is no Service", kind, b.Name), nil
	}
	if b.Port == nil {
		return nil, "", &notTakenError{"backend " + b.Name + " without a port"}
	}
	to.Port = &networking.PortSelector{Number: uint32(max(*b.Port, 0))}
	return to, "", nil
}

const istioGroup = "networking.istio.io"

func valueOr(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

// headerNames are lower-case names with the first value of each (Istio, headerListToMap).
func headerNames(list []gatewayv1.Header) map[string]string {
	out := map[string]string{}
	for _, h := range list {
		if name := strings.ToLower(h.Name); !hasKey(out, name) {
			out[name] = h.Value
		}
	}
	return out
}

func hasKey(m map[string]string, name string) bool {
	_, found := m[name]
	return found
}

// notTakenError is why Istio does not take an object, which then routes nothing (Istio, computeRoute: a hard error).
type notTakenError struct{ what string }

func (e *notTakenError) Error() string { return e.what }

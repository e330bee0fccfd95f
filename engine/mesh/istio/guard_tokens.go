package istio

import (
	"net/url"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Where proxies look for a token if a rule does not say it (envoyproxy.io: JwtProvider).
const (
	tokenHeader = "authorization"
	tokenPrefix = "Bearer "
	tokenParam  = "access_token"
)

// tokensOn are the RequestAuthentications that apply to a pod: of its namespace, and of the root namespace (Istio,
// getConfigsForWorkload).
func (h *handWritten) tokensOn(of *snapshot.PodQuery, labels map[string]string) (out []*istiosecurityv1.RequestAuthentication) {
	namespaces := []string{of.Namespace, of.Mesh.RootNamespace}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		for _, o := range h.tokens[namespace] {
			if inRevision(of.Mesh, o) && attaches(o.Namespace, &o.Spec, of.Namespace, labels) {
				out = append(out, o)
			}
		}
	}
	return out
}

// tokenOf finds a token that a rule reads of a request, and where it is. Where is empty if there is none: such a request passes
// (istio.io: RequestAuthentication), and one that stands for all may have none.
func (g *guard) tokenOf(call *snapshot.Call) (by *istiosecurityv1.RequestAuthentication, where string) {
	if !call.HTTP || call.AnyRequest {
		return nil, ""
	}
	for _, o := range g.tokens {
		for _, rule := range o.Spec.JwtRules {
			if where := tokenIn(rule, call); where != "" {
				return o, where
			}
		}
	}
	return nil, ""
}

// mayHaveToken reports whether the pods may know a token of a request.
func (g *guard) mayHaveToken(call *snapshot.Call) bool {
	_, where := g.tokenOf(call)
	return g.tokensUnknown || where != ""
}

func tokenIn(rule *security.JWTRule, call *snapshot.Call) string {
	headers, params, cookies := rule.GetFromHeaders(), rule.GetFromParams(), rule.GetFromCookies()
	if len(headers)+len(params)+len(cookies) == 0 {
		headers, params = []*security.JWTHeader{{Name: tokenHeader, Prefix: tokenPrefix}}, []string{tokenParam}
	}
	for _, h := range headers {
		name := strings.ToLower(h.GetName())
		if value := call.Headers[name]; value != "" && strings.Contains(value, h.GetPrefix()) {
			return "header " + name
		}
	}
	query, _ := url.ParseQuery(call.Query) // what cannot be read is left out
	for _, p := range params {
		if query.Has(p) {
			return "query parameter " + p
		}
	}
	for _, c := range cookies {
		for pair := range strings.SplitSeq(call.Headers["cookie"], ";") {
			if name, _, _ := strings.Cut(strings.TrimSpace(pair), "="); name == c {
				return "cookie " + c
			}
		}
	}
	return ""
}

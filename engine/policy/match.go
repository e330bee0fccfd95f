package policy

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sourceClusters are all clusters that the sources of a policy name. Those that none names
// see the same of it; where one names a cluster, callers there may be more than elsewhere.
func sourceClusters(spec *networkingv1.TrafficPolicySpec) []string {
	var out []string
	for i := range spec.SourceSelector {
		if m := spec.SourceSelector[i].KubeWorkloadMatcher; m != nil {
			out = append(out, m.Clusters...)
		}
	}
	return out
}

// onlyClusters are the clusters that all callers are in whom the sources of a policy select; nil: they may be in any.
func onlyClusters(spec *networkingv1.TrafficPolicySpec) []string {
	for i := range spec.SourceSelector {
		if m := spec.SourceSelector[i].KubeWorkloadMatcher; m == nil || len(m.Clusters) == 0 {
			return nil
		}
	}
	return sourceClusters(spec)
}

// sources are the callers in one cluster that a policy selects; false if there are
// none. A source without labels and namespaces is all callers of the cluster.
func sources(spec *networkingv1.TrafficPolicySpec, cluster string) ([]*commonv1.KubeWorkloadMatcher, bool) {
	if len(spec.SourceSelector) == 0 {
		return []*commonv1.KubeWorkloadMatcher{{}}, true
	}
	var out []*commonv1.KubeWorkloadMatcher
	for i := range spec.SourceSelector {
		m := spec.SourceSelector[i].KubeWorkloadMatcher
		if m == nil {
			m = &commonv1.KubeWorkloadMatcher{}
		}
		if inventory.Includes(m.Clusters, cluster) {
			out = append(out, m)
		}
	}
	return out, len(out) > 0
}

// matches are the conditions under which a policy applies to a request in one
// cluster: each source with each HTTP matcher.
func matches(spec *networkingv1.TrafficPolicySpec, cluster string) []snapshot.Match {
	from, ok := sources(spec, cluster)
	if !ok {
		return nil
	}
	var out []snapshot.Match
	for _, source := range from {
		namespaces := source.Namespaces
		if len(namespaces) == 0 {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			match := snapshot.Match{SourceNamespace: namespace, SourceLabels: source.Labels}
			requests := requestMatchers(spec)
			if len(requests) == 0 {
				out = append(out, match)
			}
			for i := range requests {
				match.Request = &requests[i]
				out = append(out, match)
			}
		}
	}
	return out
}

// matchKey is equal for matches of the same requests of the same callers.
func (env *environment) matchKey(m snapshot.Match) string {
	var b strings.Builder
	b.WriteString(m.SourceNamespace)
	for _, k := range slices.Sorted(maps.Keys(m.SourceLabels)) {
		b.WriteString("," + k + "=" + m.SourceLabels[k])
	}
	if m.Request == nil {
		return b.String()
	}
	b.WriteByte('&')
	key, known := env.requestKeys[m.Request]
	if !known {
		key = requestKey(m.Request)
		if env.requestKeys == nil {
			env.requestKeys = map[*networkingv1.HttpMatcher]string{}
		}
		env.requestKeys[m.Request] = key
	}
	b.WriteString(key)
	return b.String()
}

// requestKey is equal for matchers of the same requests.
func requestKey(r *networkingv1.HttpMatcher) string {
	request := *r
	request.Name = "" // names have no effect
	if request.Uri != nil && *request.Uri == (commonv1.StringMatch{}) {
		request.Uri = nil
	}
	request.Headers = slices.Clone(request.Headers)
	for i := range request.Headers {
		request.Headers[i].Name = strings.ToLower(request.Headers[i].Name)
	}
	slices.SortStableFunc(request.Headers, func(a, b networkingv1.HeaderMatcher) int { return strings.Compare(a.Name, b.Name) })
	request.QueryParameters = slices.Clone(request.QueryParameters)
	slices.SortStableFunc(request.QueryParameters, func(a, b networkingv1.QueryParameterMatcher) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.Marshal(request)
	if err != nil {
		return "" // plain structs of strings always marshal
	}
	return string(text)
}

// requestMatchers are the matchers of which one must match; none if every request
// does.
func requestMatchers(spec *networkingv1.TrafficPolicySpec) []networkingv1.HttpMatcher {
	for i := range spec.HttpRequestMatchers {
		if emptyRequest(&spec.HttpRequestMatchers[i]) {
			return nil
		}
	}
	return spec.HttpRequestMatchers
}

// takesAll reports whether a match matches every request of every caller.
func takesAll(m snapshot.Match) bool {
	return m.SourceNamespace == "" && len(m.SourceLabels) == 0 && m.Request == nil
}

func emptyRequest(r *networkingv1.HttpMatcher) bool {
	return (r.Uri == nil || *r.Uri == commonv1.StringMatch{Prefix: "/"} || *r.Uri == commonv1.StringMatch{}) &&
		len(r.Headers) == 0 && len(r.QueryParameters) == 0 && r.Method == ""
}

// compareMatches orders matches, the more specific first. The criteria are those of
// Gloo Mesh 1.x in its order; the last one is ours.
func compareMatches(a, b snapshot.Match) int {
	ar, br := a.Request, b.Request
	if ar == nil {
		ar = &networkingv1.HttpMatcher{}
	}
	if br == nil {
		br = &networkingv1.HttpMatcher{}
	}
	aPlain, aWithout := countHeaders(ar)
	bPlain, bWithout := countHeaders(br)
	return cmp.Or(
		compareURIs(ar.Uri, br.Uri),
		cmp.Compare(bPlain, aPlain),
		cmp.Compare(len(br.QueryParameters), len(ar.QueryParameters)),
		cmp.Compare(len(b.SourceLabels), len(a.SourceLabels)),
		strings.Compare(b.SourceNamespace, a.SourceNamespace),
		strings.Compare(br.Method, ar.Method),
		cmp.Compare(bWithout, aWithout),
		cmp.Compare(valued(br), valued(ar)),
	)
}

// valued counts the conditions on values, exact ones twice: of two matches on the
// same headers and parameters, one that only requires presence comes last.
func valued(r *networkingv1.HttpMatcher) (n int) {
	count := func(value string, isRegex bool) {
		if value != "" {
			n++
			if !isRegex {
				n++
			}
		}
	}
	for _, h := range r.Headers {
		count(h.Value, h.Regex)
	}
	for _, q := range r.QueryParameters {
		count(q.Value, q.Regex)
	}
	return n
}

func countHeaders(r *networkingv1.HttpMatcher) (plain, without int) {
	for _, h := range r.Headers {
		if h.InvertMatch {
			without++
		} else {
			plain++
		}
	}
	return plain, without
}

// compareURIs orders longer exact paths first, then longer regular expressions,
// suffixes and prefixes; no path comes last.
func compareURIs(a, b *commonv1.StringMatch) int {
	if a == nil {
		a = &commonv1.StringMatch{}
	}
	if b == nil {
		b = &commonv1.StringMatch{}
	}
	return cmp.Or(
		longer(a.Exact, b.Exact), longer(a.Regex, b.Regex), longer(a.Suffix, b.Suffix), longer(a.Prefix, b.Prefix),
	)
}

func longer(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
}

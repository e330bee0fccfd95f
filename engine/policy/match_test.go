package policy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestOrderOfMatches lists matches from the one that is tried first to the one
// that is tried last; each line is decided by its first difference to the next.
func TestOrderOfMatches(t *testing.T) {
	t.Parallel()
	header := func(names ...string) (out []networkingv1.HeaderMatcher) {
		for _, n := range names {
			out = append(out, networkingv1.HeaderMatcher{Name: n})
		}
		return out
	}
	without := func(names ...string) (out []networkingv1.HeaderMatcher) {
		for _, h := range header(names...) {
			h.InvertMatch = true
			out = append(out, h)
		}
		return out
	}
	query := func(names ...string) (out []networkingv1.QueryParameterMatcher) {
		for _, n := range names {
			out = append(out, networkingv1.QueryParameterMatcher{Name: n})
		}
		return out
	}
	uri := func(m commonv1.StringMatch) snapshot.Match {
		return snapshot.Match{Request: &networkingv1.HttpMatcher{Uri: &m}}
	}
	request := func(r networkingv1.HttpMatcher) snapshot.Match { return snapshot.Match{Request: &r} }

	want := []snapshot.Match{
		uri(commonv1.StringMatch{Exact: "/long"}),
		uri(commonv1.StringMatch{Exact: "/a"}),
		uri(commonv1.StringMatch{Exact: "/b"}),
		uri(commonv1.StringMatch{Regex: "/[a-z]+"}),
		uri(commonv1.StringMatch{Regex: "/.*"}),
		uri(commonv1.StringMatch{Suffix: ".html"}),
		uri(commonv1.StringMatch{Suffix: ".js"}),
		uri(commonv1.StringMatch{Prefix: "/long/prefix"}),
		request(networkingv1.HttpMatcher{Uri: &commonv1.StringMatch{Prefix: "/a"}, Headers: header("x")}),
		uri(commonv1.StringMatch{Prefix: "/a"}),
		request(networkingv1.HttpMatcher{Headers: header("x", "y")}),
		request(networkingv1.HttpMatcher{Headers: header("x"), QueryParameters: query("q")}),
		request(networkingv1.HttpMatcher{Headers: header("x")}),
		request(networkingv1.HttpMatcher{QueryParameters: query("p", "q")}),
		request(networkingv1.HttpMatcher{QueryParameters: query("q")}),
		{SourceLabels: map[string]string{"app": "web", "tier": "front"}},
		{SourceLabels: map[string]string{"app": "web"}, SourceNamespace: "shop"},
		{SourceLabels: map[string]string{"app": "web"}},
		{SourceNamespace: "shop"},
		{SourceNamespace: "admin"},
		request(networkingv1.HttpMatcher{Method: "POST"}),
		request(networkingv1.HttpMatcher{Method: "GET", Headers: without("x")}),
		request(networkingv1.HttpMatcher{Method: "GET"}),
		request(networkingv1.HttpMatcher{Headers: without("x", "y")}),
		request(networkingv1.HttpMatcher{Headers: without("x")}),
		{},
	}
	for i := range want {
		for j := range want {
			c := compareMatches(want[i], want[j])
			switch {
			case i < j:
				assert.Negative(t, c, "%d before %d", i, j)
			case i > j:
				assert.Positive(t, c, "%d after %d", i, j)
			default:
				assert.Zero(t, c, "%d is equal to itself", i)
			}
		}
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, compareMatches)
	assert.Equal(t, want, got)
}

// TestSameRequests: conditions that take the same requests are one, however
// they are written.
func TestSameRequests(t *testing.T) {
	t.Parallel()
	key := func(m snapshot.Match) string { return (&environment{}).matchKey(m) }
	one := snapshot.Match{Request: &networkingv1.HttpMatcher{
		Name: "one", Uri: &commonv1.StringMatch{},
		Headers:         []networkingv1.HeaderMatcher{{Name: "X-B", Value: "b"}, {Name: "x-a"}},
		QueryParameters: []networkingv1.QueryParameterMatcher{{Name: "q"}, {Name: "p"}},
	}}
	other := snapshot.Match{Request: &networkingv1.HttpMatcher{
		Name:            "other",
		Headers:         []networkingv1.HeaderMatcher{{Name: "x-a"}, {Name: "x-b", Value: "b"}},
		QueryParameters: []networkingv1.QueryParameterMatcher{{Name: "p"}, {Name: "q"}},
	}}
	assert.Equal(t, key(one), key(other))
	assert.Equal(t, "X-B", one.Request.Headers[0].Name, "the policy is left as it is")

	other.Request.Headers[0].InvertMatch = true
	assert.NotEqual(t, key(one), key(other))
	other = one
	other.SourceNamespace = "shop"
	assert.NotEqual(t, key(one), key(other))
}

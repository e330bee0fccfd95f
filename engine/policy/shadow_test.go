package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestCovers: a says whether it takes all that b takes, and only if it is sure.
func TestCovers(t *testing.T) {
	t.Parallel()
	uri := func(m commonv1.StringMatch) snapshot.Match {
		return snapshot.Match{Request: &networkingv1.HttpMatcher{Uri: &m}}
	}
	request := func(r networkingv1.HttpMatcher) snapshot.Match { return snapshot.Match{Request: &r} }
	header := func(h networkingv1.HeaderMatcher) snapshot.Match {
		return request(networkingv1.HttpMatcher{Headers: []networkingv1.HeaderMatcher{h}})
	}
	for name, tt := range map[string]struct {
		a, b snapshot.Match
		want bool
	}{
		"any, any":             {snapshot.Match{}, snapshot.Match{}, true},
		"path, any":            {uri(commonv1.StringMatch{Prefix: "/a"}), snapshot.Match{}, false},
		"slash, any":           {uri(commonv1.StringMatch{Prefix: "/"}), snapshot.Match{}, true},
		"regex of all":         {uri(commonv1.StringMatch{Regex: ".*"}), uri(commonv1.StringMatch{Suffix: ".js"}), true},
		"regex of all paths":   {uri(commonv1.StringMatch{Regex: "/.*"}), snapshot.Match{}, true},
		"regex prefix":         {uri(commonv1.StringMatch{Regex: "/api/.*"}), uri(commonv1.StringMatch{Prefix: "/api/v1"}), true},
		"regex of another":     {uri(commonv1.StringMatch{Regex: "/api/.*"}), uri(commonv1.StringMatch{Prefix: "/ap"}), false},
		"regex at least one":   {uri(commonv1.StringMatch{Regex: "/api/.+"}), uri(commonv1.StringMatch{Prefix: "/api/"}), false},
		"regex in any case":    {uri(commonv1.StringMatch{Regex: "(?i)/api/.*"}), uri(commonv1.StringMatch{Prefix: "/api/v1"}), false},
		"regex suffix":         {uri(commonv1.StringMatch{Regex: `.*\.js`}), uri(commonv1.StringMatch{Suffix: ".min.js"}), true},
		"regex, same regex":    {uri(commonv1.StringMatch{Regex: "/[a-z]+"}), uri(commonv1.StringMatch{Regex: "/[a-z]+"}), true},
		"regex, another regex": {uri(commonv1.StringMatch{Regex: "/[a-z]+"}), uri(commonv1.StringMatch{Regex: "/[ab]+"}), false},
		"case":                 {uri(commonv1.StringMatch{Prefix: "/A", IgnoreCase: true}), uri(commonv1.StringMatch{Prefix: "/ab"}), true},
		"other case":           {uri(commonv1.StringMatch{Prefix: "/a"}), uri(commonv1.StringMatch{Prefix: "/ab", IgnoreCase: true}), false},
		"method":               {request(networkingv1.HttpMatcher{Method: "GET"}), snapshot.Match{}, false},
		"method, with method":  {snapshot.Match{}, request(networkingv1.HttpMatcher{Method: "GET"}), true},
		"header present":       {header(networkingv1.HeaderMatcher{Name: "X"}), header(networkingv1.HeaderMatcher{Name: "x", Value: "1"}), true},
		"header absent":        {header(networkingv1.HeaderMatcher{Name: "x", InvertMatch: true}), header(networkingv1.HeaderMatcher{Name: "x", Value: "1", InvertMatch: true}), false},
		"header value":         {header(networkingv1.HeaderMatcher{Name: "x", Value: "1"}), header(networkingv1.HeaderMatcher{Name: "x"}), false},
		"namespace":            {snapshot.Match{SourceNamespace: "shop"}, snapshot.Match{}, false},
		"labels":               {snapshot.Match{SourceLabels: map[string]string{"app": "web"}}, snapshot.Match{SourceLabels: map[string]string{"app": "web", "tier": "front"}}, true},
		"fewer labels":         {snapshot.Match{SourceLabels: map[string]string{"app": "web"}}, snapshot.Match{}, false},
	} {
		assert.Equal(t, tt.want, covers(tt.a, tt.b), name)
	}
}

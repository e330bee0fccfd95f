package access_test

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/access"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

func TestRequestMatches(t *testing.T) {
	t.Parallel()
	path := func(m commonv1.StringMatch) *networkingv1.HttpMatcher { return &networkingv1.HttpMatcher{Uri: &m} }
	header := func(h networkingv1.HeaderMatcher) *networkingv1.HttpMatcher {
		return &networkingv1.HttpMatcher{Headers: []networkingv1.HeaderMatcher{h}}
	}
	query := func(q networkingv1.QueryParameterMatcher) *networkingv1.HttpMatcher {
		return &networkingv1.HttpMatcher{QueryParameters: []networkingv1.QueryParameterMatcher{q}}
	}
	request := access.Request{Method: "GET", Path: "/reviews/1?lang=en&empty=&lang=de", Headers: map[string]string{"end-user": "jason"}}
	for name, tt := range map[string]struct {
		m    *networkingv1.HttpMatcher
		want bool
	}{
		"nothing":                     {nil, true},
		"empty":                       {&networkingv1.HttpMatcher{}, true},
		"method":                      {&networkingv1.HttpMatcher{Method: "GET"}, true},
		"another method":              {&networkingv1.HttpMatcher{Method: "POST"}, false},
		"the path has no query":       {path(commonv1.StringMatch{Exact: "/reviews/1"}), true},
		"exact":                       {path(commonv1.StringMatch{Exact: "/reviews"}), false},
		"exact in another case":       {path(commonv1.StringMatch{Exact: "/Reviews/1"}), false},
		"exact in any case":           {path(commonv1.StringMatch{Exact: "/Reviews/1", IgnoreCase: true}), true},
		"prefix":                      {path(commonv1.StringMatch{Prefix: "/rev"}), true},
		"suffix":                      {path(commonv1.StringMatch{Suffix: "/1"}), true},
		"another suffix":              {path(commonv1.StringMatch{Suffix: "de"}), false},
		"regex of all":                {path(commonv1.StringMatch{Regex: "/reviews/[0-9]"}), true},
		"regex of a part":             {path(commonv1.StringMatch{Regex: "reviews"}), false},
		"header in any case":          {header(networkingv1.HeaderMatcher{Name: "End-User", Value: "jason"}), true},
		"header present":              {header(networkingv1.HeaderMatcher{Name: "end-user"}), true},
		"header absent":               {header(networkingv1.HeaderMatcher{Name: "other"}), false},
		"header regex":                {header(networkingv1.HeaderMatcher{Name: "end-user", Value: "j.*", Regex: true}), true},
		"header regex of a part":      {header(networkingv1.HeaderMatcher{Name: "end-user", Value: "j", Regex: true}), false},
		"not this header":             {header(networkingv1.HeaderMatcher{Name: "end-user", InvertMatch: true}), false},
		"no header":                   {header(networkingv1.HeaderMatcher{Name: "other", InvertMatch: true}), true},
		"not this value":              {header(networkingv1.HeaderMatcher{Name: "end-user", Value: "jason", InvertMatch: true}), false},
		"not this value, and none":    {header(networkingv1.HeaderMatcher{Name: "other", Value: "x", InvertMatch: true}), true},
		"not a value, and none is it": {header(networkingv1.HeaderMatcher{Name: "other", Value: ".*", Regex: true, InvertMatch: true}), false},
		"query":                       {query(networkingv1.QueryParameterMatcher{Name: "lang", Value: "en"}), true},
		"the second value of a query": {query(networkingv1.QueryParameterMatcher{Name: "lang", Value: "de"}), false},
		"query present":               {query(networkingv1.QueryParameterMatcher{Name: "empty"}), true},
		"query absent":                {query(networkingv1.QueryParameterMatcher{Name: "page"}), false},
	} {
		assert.Equal(t, tt.want, request.Matches(tt.m), name)
	}
}

// TestMatchersAgree: a matcher takes each request that a matcher takes which it contains.
func TestMatchersAgree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	contained, taken := 0, 0
	for range 20_000 {
		wide, narrow := randomMatcher(random), randomMatcher(random)
		if !access.MatcherContains(wide, narrow) {
			continue
		}
		contained++
		for range 20 {
			r := randomRequest(random)
			if !r.Matches(narrow) {
				continue
			}
			taken++
			require.True(t, r.Matches(wide), "%+v contains %+v, and does not take %+v", wide, narrow, r)
		}
	}
	assert.Greater(t, contained, 1000)
	assert.Greater(t, taken, 1000)
}

// TestRegexIsNotBlindToCase, whatever ignoreCase says: an older API server may have stored both.
func TestRegexIsNotBlindToCase(t *testing.T) {
	t.Parallel()
	wide := &networkingv1.HttpMatcher{Uri: &commonv1.StringMatch{Regex: "/api/.*", IgnoreCase: true}}
	narrow := &networkingv1.HttpMatcher{Uri: &commonv1.StringMatch{Exact: "/API/users"}}
	request := access.Request{Method: "GET", Path: "/API/users"}
	require.True(t, request.Matches(narrow))
	assert.False(t, request.Matches(wide))
	assert.False(t, access.MatcherContains(wide, narrow))
}

func one[T any](random *rand.Rand, of ...T) T { return of[random.Intn(len(of))] }

func randomMatcher(random *rand.Rand) *networkingv1.HttpMatcher {
	out := &networkingv1.HttpMatcher{Method: one(random, "", "", "GET", "POST")}
	text, ignoreCase := one(random, "/", "/a", "/A", "/a/b"), one(random, false, true)
	out.Uri = one(random, nil, nil, &commonv1.StringMatch{}, &commonv1.StringMatch{Exact: text, IgnoreCase: ignoreCase}, &commonv1.StringMatch{Prefix: text, IgnoreCase: ignoreCase},
		&commonv1.StringMatch{Suffix: text, IgnoreCase: ignoreCase}, &commonv1.StringMatch{Regex: text + one(random, "", ".*", ".+"), IgnoreCase: ignoreCase})
	value, isRegex := one(random, "", "x", "y", ".*", "x?"), one(random, false, true)
	if random.Intn(3) == 0 {
		out.Headers = append(out.Headers, networkingv1.HeaderMatcher{Name: one(random, "h", "H", "other"), Value: value, Regex: isRegex, InvertMatch: random.Intn(2) == 0})
	}
	if random.Intn(3) == 0 {
		out.QueryParameters = append(out.QueryParameters, networkingv1.QueryParameterMatcher{Name: one(random, "q", "p"), Value: value, Regex: isRegex})
	}
	return out
}

func randomRequest(random *rand.Rand) access.Request {
	out := access.Request{Method: one(random, "GET", "POST"), Path: one(random, "/", "/a", "/A", "/a/b", "/A/B", "/b") + one(random, "", "?q=x", "?p=y&q=", "?q")}
	if random.Intn(2) == 0 {
		out.Headers = map[string]string{one(random, "h", "other"): one(random, "", "x", "y")}
	}
	return out
}

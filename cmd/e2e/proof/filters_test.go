package proof

import (
	"fmt"
	"slices"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The filters that routes enable.
const (
	csrfFilter  = "meshctl.csrf"
	limitFilter = "meshctl.local_ratelimit"
)

// filterFacts: the filters of a caller that have an effect only if a route enables
// them.
func filterFacts(plan *snapshot.Plan, p proxy) []fact {
	var want []string
	for _, f := range plan.Filters {
		if f.Mesh.Cluster != p.cluster {
			continue
		}
		if f.CSRF {
			want = append(want, csrfFilter+" idle")
		}
		if f.RateLimit {
			want = append(want, limitFilter+" idle")
		}
	}
	slices.Sort(want)
	return []fact{{name: "filters of callers", want: want, look: configuredOwnChain}}
}

// configuredOwnChain formats the filters that meshctl adds, which are in all outbound
// chains.
func configuredOwnChain(config *envoy.Config) []string {
	var first []string
	chains := config.OutboundHTTP()
	for i, chain := range chains {
		var names []string
		for _, f := range chain {
			if !strings.HasPrefix(f.Name, "meshctl.") {
				continue
			}
			c := f.TypedConfig
			if c.FilterEnabled.Percent()+c.ShadowEnabled.Percent() > 0 || c.TokenBucket != nil {
				f.Name += " busy"
			} else {
				f.Name += " idle"
			}
			names = append(names, f.Name)
		}
		slices.Sort(names)
		if i == 0 {
			first = names
		} else if !slices.Equal(first, names) {
			return append([]string{"chains differ:"}, append(first, names...)...)
		}
	}
	if len(chains) == 0 {
		return []string{"no chain"}
	}
	return first
}

func plannedFilters(a *snapshot.Action) string {
	out := ""
	if a.CSRF != nil {
		what := "refused"
		if a.CSRF.Value.Shadow {
			what = "counted"
		}
		var origins []string
		for _, o := range a.CSRF.Value.Origins {
			origins = append(origins, plannedString(o))
		}
		out += fmt.Sprintf(" forged %s %v%% but of %v", what, a.CSRF.Value.Percent, origins)
	}
	if a.RateLimit != nil {
		out += fmt.Sprintf(" limit %d each %s", a.RateLimit.Value.Requests, protoDuration(a.RateLimit.Value.Per))
	}
	return out
}

// plannedString formats a match for which the proxy has a field for each kind.
func plannedString(m commonv1.StringMatch) string {
	fold := ""
	if m.IgnoreCase {
		fold = " in any case"
	}
	switch {
	case m.Exact != "":
		return "= " + m.Exact + fold
	case m.Prefix != "":
		return "^ " + m.Prefix + fold
	case m.Suffix != "":
		return "$ " + m.Suffix + fold
	default:
		return "~ " + m.Regex
	}
}

// configuredOwnFilters formats the settings of a route for the filters of meshctl.
func configuredOwnFilters(r envoy.Route) string {
	out := ""
	if c, ok := decode[envoy.FilterConfig](r.TypedPerFilterConfig[csrfFilter]); ok {
		what, share := "refused", c.FilterEnabled.Percent()
		if share == 0 && c.ShadowEnabled.Percent() > 0 {
			what, share = "counted", c.ShadowEnabled.Percent()
		}
		var origins []string
		for _, o := range c.AdditionalOrigins {
			origins = append(origins, configuredString(o))
		}
		out += fmt.Sprintf(" forged %s %v%% but of %v", what, share, origins)
	}
	if c, ok := decode[envoy.FilterConfig](r.TypedPerFilterConfig[limitFilter]); ok {
		switch b := c.TokenBucket; {
		case b == nil:
			out += " limit of nothing"
		case c.FilterEnabled.Percent() != 100 || c.FilterEnforced.Percent() != 100:
			out += fmt.Sprintf(" limit for %v%%, in earnest for %v%%", c.FilterEnabled.Percent(), c.FilterEnforced.Percent())
		case b.MaxTokens != b.TokensPerFill:
			out += fmt.Sprintf(" limit %d of at most %d each %s", b.TokensPerFill, b.MaxTokens, b.FillInterval)
		default:
			out += fmt.Sprintf(" limit %d each %s", b.MaxTokens, b.FillInterval)
		}
	}
	return out
}

// filterMutations are about the settings of the filters of meshctl.
func filterMutations() map[string]mutation {
	return map[string]mutation{
		"forged requests": {fact: "routes to ", action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.CSRF] { return &a.CSRF }, func(c *snapshot.CSRF) { c.Shadow = !c.Shadow })},
		"share of forged": {fact: "routes to ", action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.CSRF] { return &a.CSRF }, func(c *snapshot.CSRF) { c.Percent /= 2 })},
		"origins": {fact: "routes to ", action: func(a *snapshot.Action) bool {
			return a.CSRF != nil && a.CSRF.Value.Origins != nil &&
				owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.CSRF] { return &a.CSRF }, func(c *snapshot.CSRF) { c.Origins = nil })(a)
		}},
		"limit":         {fact: "routes to ", action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.RateLimit] { return &a.RateLimit }, func(l *snapshot.RateLimit) { l.Requests++ })},
		"time of limit": {fact: "routes to ", action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.RateLimit] { return &a.RateLimit }, func(l *snapshot.RateLimit) { l.Per += time.Second })},
		"filters": {fact: "filters of callers", plan: func(p *snapshot.Plan) bool {
			had := len(p.Filters) > 0
			p.Filters = nil
			return had
		}},
	}
}

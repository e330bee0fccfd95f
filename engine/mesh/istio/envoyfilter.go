package istio

import (
	"hash/fnv"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Filters that sidecars do not have by default. All callers have them in their filter
// chains, under names of our own, so that no other filter of the same type is enabled
// or counts twice. They do nothing except where a route enables them.
const (
	csrfFilter      = "meshctl.csrf"
	rateLimitFilter = "meshctl.local_ratelimit"

	csrfType      = "type.googleapis.com/envoy.extensions.filters.http.csrf.v3.CsrfPolicy"
	rateLimitType = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
)

type object = map[string]any

// Filters renders the filters of the callers of a mesh.
func (Renderer) Filters(plan *snapshot.FilterPlan, namespace string) []*snapshot.Object {
	spec := &networking.EnvoyFilter{}
	if plan.CSRF {
		spec.ConfigPatches = append(spec.ConfigPatches, addFilter(csrfFilter, object{
			"@type": csrfType, "filter_enabled": share(0),
		}))
	}
	if plan.RateLimit {
		spec.ConfigPatches = append(spec.ConfigPatches, addFilter(rateLimitFilter, object{
			"@type": rateLimitType, "stat_prefix": rateLimitStats,
		}))
	}
	return []*snapshot.Object{{
		Ref: snapshot.Ref{
			Kind: snapshot.EnvoyFilter, Cluster: plan.Mesh.Cluster, Namespace: plan.Mesh.RootNamespace,
			Name: "meshctl-filters",
		},
		Content: render.NewContent(namespace, spec, []snapshot.Ref{plan.Mesh.Ref}, plan.Policies),
	}}
}

// rateLimitStats is the prefix of the names of the counters of the filter.
const rateLimitStats = "meshctl_rate_limit"

func addFilter(name string, config object) *networking.EnvoyFilter_EnvoyConfigObjectPatch {
	return &networking.EnvoyFilter_EnvoyConfigObjectPatch{
		ApplyTo: networking.EnvoyFilter_HTTP_FILTER,
		Match: &networking.EnvoyFilter_EnvoyConfigObjectMatch{
			Context: networking.EnvoyFilter_SIDECAR_OUTBOUND,
			ObjectTypes: &networking.EnvoyFilter_EnvoyConfigObjectMatch_Listener{Listener: &networking.EnvoyFilter_ListenerMatch{
				FilterChain: &networking.EnvoyFilter_ListenerMatch_FilterChainMatch{
					Filter: &networking.EnvoyFilter_ListenerMatch_FilterMatch{
						Name:      "envoy.filters.network.http_connection_manager",
						SubFilter: &networking.EnvoyFilter_ListenerMatch_SubFilterMatch{Name: "envoy.filters.http.router"},
					},
				},
			}},
		},
		Patch: &networking.EnvoyFilter_Patch{
			Operation: networking.EnvoyFilter_Patch_INSERT_BEFORE,
			Value:     toStruct(object{"name": name, "typed_config": config}),
		},
	}
}

// routeFilters renders the filters that the routes of a view enable. The object must
// be in the namespace for configuration of the whole mesh.
func (r *builder) routeFilters(view *snapshot.View, remote bool) {
	if len(routedPorts(r.plan.Destination.Spec.KubeService.Ports)) == 0 {
		return
	}
	spec := &networking.EnvoyFilter{}
	var policies []snapshot.Ref
	for _, route := range view.Routes {
		configs := object{}
		if c := route.Action.CSRF; c != nil {
			configs[csrfFilter] = csrfConfig(c.Value)
			policies = append(policies, c.Origin.Ref)
		}
		if l := route.Action.RateLimit; l != nil {
			configs[rateLimitFilter] = rateLimitConfig(l.Value)
			policies = append(policies, l.Origin.Ref)
		}
		if len(configs) > 0 {
			spec.ConfigPatches = append(spec.ConfigPatches, configureRoute(r.routeName(route), configs))
		}
	}
	ref := snapshot.Ref{Kind: snapshot.EnvoyFilter, Cluster: view.Mesh.Cluster, Namespace: view.Mesh.RootNamespace, Name: r.plan.Ref.Name}
	if len(spec.ConfigPatches) == 0 || r.filtered[ref] {
		return // of a revision beside this one, which has the same routes
	}
	if r.filtered == nil {
		r.filtered = map[snapshot.Ref]bool{}
	}
	r.filtered[ref] = true
	r.add(ref, r.content(spec, remote, r.parents(remote, policies...)))
}

func configureRoute(name string, configs object) *networking.EnvoyFilter_EnvoyConfigObjectPatch {
	return &networking.EnvoyFilter_EnvoyConfigObjectPatch{
		ApplyTo: networking.EnvoyFilter_HTTP_ROUTE,
		Match: &networking.EnvoyFilter_EnvoyConfigObjectMatch{
			Context: networking.EnvoyFilter_SIDECAR_OUTBOUND,
			ObjectTypes: &networking.EnvoyFilter_EnvoyConfigObjectMatch_RouteConfiguration{RouteConfiguration: &networking.EnvoyFilter_RouteConfigurationMatch{
				Vhost: &networking.EnvoyFilter_RouteConfigurationMatch_VirtualHostMatch{
					Route: &networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch{Name: name},
				},
			}},
		},
		Patch: &networking.EnvoyFilter_Patch{
			Operation: networking.EnvoyFilter_Patch_MERGE,
			Value:     toStruct(object{"typed_per_filter_config": configs}),
		},
	}
}

// routeName is the name by which an EnvoyFilter finds a route; empty if no EnvoyFilter
// needs it. It is derived from the match of the route, not from its position: filters
// then never apply to another route while only one of the two objects is updated.
func (r *builder) routeName(route *snapshot.Route) string {
	if route.Action.CSRF == nil && route.Action.RateLimit == nil {
		return ""
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(route.Key))
	return r.plan.Ref.Name + "-" + strconv.FormatUint(hash.Sum64(), 16)
}

// csrfConfig is an envoy.extensions.filters.http.csrf.v3.CsrfPolicy.
func csrfConfig(c snapshot.CSRF) object {
	out := object{"@type": csrfType, "filter_enabled": share(c.Percent)}
	if c.Shadow {
		out["filter_enabled"], out["shadow_enabled"] = share(0), share(c.Percent)
	}
	var origins []any
	for _, o := range c.Origins {
		origins = append(origins, stringMatcher(o))
	}
	if origins != nil {
		out["additional_origins"] = origins
	}
	return out
}

// rateLimitConfig is an envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit.
func rateLimitConfig(l snapshot.RateLimit) object {
	return object{
		"@type": rateLimitType, "stat_prefix": rateLimitStats,
		"token_bucket": object{
			"max_tokens": l.Requests, "tokens_per_fill": l.Requests,
			"fill_interval": strconv.FormatInt(int64(l.Per.Seconds()), 10) + "s",
		},
		"filter_enabled": share(100), "filter_enforced": share(100),
	}
}

// share is an envoy.config.core.v3.RuntimeFractionalPercent, which counts in
// whole millionths.
func share(percent float64) object {
	return object{"default_value": object{"numerator": uint32(percent*10000 + 0.5), "denominator": "MILLION"}}
}

// stringMatcher is an envoy.type.matcher.v3.StringMatcher.
func stringMatcher(m commonv1.StringMatch) object {
	out := object{}
	switch {
	case m.Exact != "":
		out["exact"] = m.Exact
	case m.Prefix != "":
		out["prefix"] = m.Prefix
	case m.Suffix != "":
		out["suffix"] = m.Suffix
	default:
		return object{"safe_regex": object{"regex": m.Regex}}
	}
	if m.IgnoreCase {
		out["ignore_case"] = true
	}
	return out
}

// toStruct turns plain values into a protobuf Struct.
func toStruct(fields object) *structpb.Struct {
	out, err := structpb.NewStruct(fields)
	if err != nil {
		return &structpb.Struct{} // only values of other types than those above could fail
	}
	return out
}

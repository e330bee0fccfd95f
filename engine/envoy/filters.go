package envoy

import (
	"fmt"
	"slices"
)

// Passage is what the filters of a chain do with a request, or a connection. The zero value refuses it.
type Passage struct {
	// Answer: they let it pass.
	Answer Answer
	// Filter is the one that refuses it, with what it decided by; empty if none does.
	Filter   string
	Decision Decision
	// Allowed are the policies that let it pass.
	Allowed []string
	// Abort answers a share of requests; nil if no filter does.
	Abort *FaultAbort
	// Doubts are what is not known and may decide otherwise.
	Doubts []string
}

// passive are the types of filters that let everything pass, or pass what they do not (envoyproxy.io: HTTP filters, network filters).
// Of a CORS filter, only answers to preflight requests are its own; a rate limit refuses by how much there is, not by what it is.
var passive = []string{
	"Router", "Cors", "LocalRateLimit", "FilterStats", "GrpcWeb", "AlpnFilter", "HeaderToMetadata", "StatefulSession", "Compressor", "Decompressor",
	"PeerMetadataConfig", "MetadataExchange", "MetadataExchangeConfig", "StatsConfig", "PluginConfig", "AccessLogPolicyConfig",
	"type.googleapis.com/envoy.extensions.filters.http.grpc_stats.v3.FilterConfig",
	"type.googleapis.com/envoy.extensions.filters.http.peer_metadata.v3.Config",
	"type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config",
	"type.googleapis.com/envoy.extensions.filters.network.set_filter_state.v3.Config",
	"type.googleapis.com/io.istio.http.peer_metadata.Config",
	"type.googleapis.com/stats.PluginConfig",
}

// pass runs a request through filters, in their order.
func pass(filters []Filter, r Request) Passage {
	out := Passage{Answer: Yes}
	for i := range filters {
		f := &filters[i]
		config := &f.TypedConfig
		if f.Disabled {
			continue
		}
		switch kind := config.Kind(); {
		case kind == "RBAC" && len(config.Matcher) > 0:
			out.doubt(f.Name + ": it decides by matchers")
		case kind == "RBAC":
			d := config.Rules.Decide(r)
			switch {
			case d.Answer == No:
				out.Answer, out.Filter, out.Decision = No, f.Name, d
				return out
			case d.Answer == Unknown:
				out.doubt(f.Name + ": " + d.Doubt)
			case d.Policy != "":
				out.Allowed = append(out.Allowed, d.Policy)
			}
		case kind == "HTTPFault":
			if config.Abort != nil && config.Abort.HTTPStatus != 0 {
				out.Abort = config.Abort
			}
		case kind == "CsrfPolicy":
			changes := !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method)
			if changes && config.FilterEnabled.Percent() > 0 {
				out.doubt(f.Name + ": the origin of requests that change something")
			}
		case kind == "JwtAuthentication" && config.Optional && r.Headers["authorization"] == "":
		case kind == "HttpConnectionManager", kind == "TcpProxy":
		case slices.Contains(passive, kind), slices.Contains(passive, config.Type):
		case kind == "":
			out.doubt("filter " + f.Name + ", whose configuration is elsewhere")
		default:
			out.doubt(fmt.Sprintf("filter %s (%s)", f.Name, kind))
		}
	}
	return out
}

// doubt adds what is not known. What refuses the request later does so all the same.
func (p *Passage) doubt(what string) {
	p.Answer = min(p.Answer, Unknown)
	p.Doubts = append(p.Doubts, what)
}

// perRoute adds what the settings of a route, by filter, change about the passage of a request.
func (p *Passage) perRoute(settings map[string]setting, r Request) {
	for _, name := range sorted(settings) {
		switch s := settings[name]; s.kind() {
		case "HTTPFault":
			if s.Abort != nil && s.Abort.HTTPStatus != 0 {
				p.Abort = s.Abort
			}
		case "RBACPerRoute":
			if s.RBAC == nil {
				continue
			}
			switch d := s.RBAC.Rules.Decide(r); {
			case d.Answer == No:
				p.Answer, p.Filter, p.Decision = No, name, d
				return
			case d.Answer == Unknown:
				p.doubt(name + ": " + d.Doubt)
			case d.Policy != "":
				p.Allowed = append(p.Allowed, d.Policy)
			}
		case "CorsPolicy", "LocalRateLimit", "StatefulSessionPerRoute", "CsrfPolicy", "GrpcStatsPerRoute":
		default:
			p.doubt("the route's own settings for filter " + name)
		}
	}
}

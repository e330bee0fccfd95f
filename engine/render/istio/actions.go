package istio

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// actions render the fields of an action, each one field of an HTTPRoute. A new
// field is a function and a line here.
var actions = []func(*snapshot.Action, *networking.HTTPRoute){
	renderTargets,
	renderTimeout,
	renderRetries,
	renderFault,
	renderCORS,
	renderMirror,
	renderHeaders,
}

func renderTargets(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Targets == nil {
		return
	}
	for _, t := range a.Targets.Value {
		out.Route = append(out.Route, &networking.HTTPRouteDestination{
			Destination: destination(t.Host, t.Port, t.Subset), Weight: int32(t.Weight),
		})
	}
}

func renderTimeout(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Timeout != nil {
		out.Timeout = seconds(a.Timeout.Value) // 0 is no timeout, and so is none
	}
}

func renderRetries(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Retries == nil {
		return
	}
	out.Retries = &networking.HTTPRetry{Attempts: a.Retries.Value.Attempts}
	if p := a.Retries.Value.PerTryTimeout; p != nil {
		out.Retries.PerTryTimeout = durationpb.New(p.Duration)
	}
}

func renderFault(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Fault == nil {
		return
	}
	fault := a.Fault.Value
	percent := &networking.Percent{Value: *fault.Percentage}
	out.Fault = &networking.HTTPFaultInjection{}
	if fault.FixedDelay != nil {
		out.Fault.Delay = &networking.HTTPFaultInjection_Delay{
			HttpDelayType: &networking.HTTPFaultInjection_Delay_FixedDelay{FixedDelay: durationpb.New(fault.FixedDelay.Duration)},
			Percentage:    percent,
		}
	}
	if fault.Abort != nil {
		out.Fault.Abort = &networking.HTTPFaultInjection_Abort{
			ErrorType:  &networking.HTTPFaultInjection_Abort_HttpStatus{HttpStatus: fault.Abort.HttpStatus},
			Percentage: percent,
		}
	}
}

func renderCORS(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.CORS == nil {
		return
	}
	cors := a.CORS.Value
	out.CorsPolicy = &networking.CorsPolicy{
		AllowMethods: cors.AllowMethods, AllowHeaders: cors.AllowHeaders, ExposeHeaders: cors.ExposeHeaders,
	}
	for _, origin := range cors.AllowOrigins {
		out.CorsPolicy.AllowOrigins = append(out.CorsPolicy.AllowOrigins, stringMatch(origin))
	}
	if cors.MaxAge != nil {
		out.CorsPolicy.MaxAge = durationpb.New(cors.MaxAge.Duration)
	}
	if cors.AllowCredentials != nil {
		out.CorsPolicy.AllowCredentials = wrapperspb.Bool(*cors.AllowCredentials)
	}
}

func renderMirror(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Mirror == nil {
		return
	}
	m := a.Mirror.Value
	out.Mirror = destination(m.Host, m.Port, "")
	out.MirrorPercentage = &networking.Percent{Value: m.Percent}
}

func renderHeaders(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Headers == nil {
		return
	}
	h := a.Headers.Value
	out.Headers = &networking.Headers{}
	if len(h.AppendRequestHeaders)+len(h.RemoveRequestHeaders) > 0 {
		out.Headers.Request = &networking.Headers_HeaderOperations{Add: h.AppendRequestHeaders, Remove: h.RemoveRequestHeaders}
	}
	if len(h.AppendResponseHeaders)+len(h.RemoveResponseHeaders) > 0 {
		out.Headers.Response = &networking.Headers_HeaderOperations{Add: h.AppendResponseHeaders, Remove: h.RemoveResponseHeaders}
	}
}

// seconds is nil for 0, which Istio reads as its own default.
func seconds(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

package istio

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// actions render the fields of an action, each one field of an HTTPRoute. A new
// field is a function and a line here. Retries come last, see retryRoutes.
var actions = []func(*snapshot.Action, *networking.HTTPRoute){
	renderTargets,
	renderTimeout,
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
			Destination: destination(t.Host, t.Port, t.Subset), Weight: int32(t.Weight), Headers: headers(t.Headers),
		})
	}
}

func renderTimeout(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Timeout != nil {
		out.Timeout = seconds(a.Timeout.Value) // 0 is no timeout, and so is none
	}
}

// retryRoutes adds the retries to a route. Where they depend on the method, the route
// becomes two: the first matches requests with an idempotent method, the second all
// others. Both have the name of the route, by which EnvoyFilters find it.
func retryRoutes(match snapshot.Match, a *snapshot.Action, out *networking.HTTPRoute) []*networking.HTTPRoute {
	if a.Retries == nil {
		return []*networking.HTTPRoute{out}
	}
	r := match.Retries(a.Retries.Value)
	if len(r.AlsoIdempotent) == 0 {
		out.Retries = httpRetry(r)
		return []*networking.HTTPRoute{out}
	}
	methods := snapshot.IdempotentMethods()
	idempotent := out.DeepCopy()
	for _, m := range idempotent.Match {
		m.Method = regex(strings.Join(methods, "|"))
	}
	idempotent.Retries, out.Retries = httpRetry(r.For(methods[0])), httpRetry(r)
	return []*networking.HTTPRoute{idempotent, out}
}

func httpRetry(r snapshot.Retries) *networking.HTTPRetry {
	on := make([]string, len(r.On))
	for i, condition := range r.On {
		on[i] = string(condition)
	}
	return &networking.HTTPRetry{Attempts: r.Attempts, PerTryTimeout: seconds(r.PerTry), RetryOn: strings.Join(on, ",")}
}

func renderFault(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Delay == nil && a.Abort == nil {
		return
	}
	out.Fault = &networking.HTTPFaultInjection{}
	if a.Delay != nil {
		out.Fault.Delay = &networking.HTTPFaultInjection_Delay{
			HttpDelayType: &networking.HTTPFaultInjection_Delay_FixedDelay{FixedDelay: durationpb.New(a.Delay.Value.Duration)},
			Percentage:    percent(a.Delay.Value.Percent),
		}
	}
	if a.Abort != nil {
		out.Fault.Abort = &networking.HTTPFaultInjection_Abort{
			ErrorType:  &networking.HTTPFaultInjection_Abort_HttpStatus{HttpStatus: a.Abort.Value.Status},
			Percentage: percent(a.Abort.Value.Percent),
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
	out.MirrorPercentage = percent(m.Percent)
}

func renderHeaders(a *snapshot.Action, out *networking.HTTPRoute) {
	if a.Headers != nil {
		out.Headers = headers(&a.Headers.Value)
	}
}

// headers is nil for nothing to change.
func headers(h *networkingv1.HeaderManipulation) *networking.Headers {
	if h == nil {
		return nil
	}
	out := &networking.Headers{}
	if len(h.AppendRequestHeaders)+len(h.RemoveRequestHeaders) > 0 {
		out.Request = &networking.Headers_HeaderOperations{Add: h.AppendRequestHeaders, Remove: h.RemoveRequestHeaders}
	}
	if len(h.AppendResponseHeaders)+len(h.RemoveResponseHeaders) > 0 {
		out.Response = &networking.Headers_HeaderOperations{Add: h.AppendResponseHeaders, Remove: h.RemoveResponseHeaders}
	}
	return out
}

// percent rounds to millionths, the unit in which proxies count. Istio multiplies by
// 10,000 and truncates, so that 33.3 would lose one millionth and 0.0003 a third of its
// value; the next float avoids that.
func percent(p float64) *networking.Percent {
	millionths := math.Round(p * 10_000)
	value := millionths / 10_000
	for value*10_000 < millionths {
		value = math.Nextafter(value, 101)
	}
	return &networking.Percent{Value: value}
}

// seconds is nil for 0, which Istio reads as its own default.
func seconds(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

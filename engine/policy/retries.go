package policy

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var retries = feature{
	field: "policy.retries",
	value: func(p *networkingv1.Policy) any { return has(p.Retries) },
	check: func(c *fieldContext) []snapshot.Issue {
		r := c.spec.Policy.Retries
		var issues []snapshot.Issue
		if r.PerTryTimeout != nil {
			issues = checkDuration("policy.retries.perTryTimeout", r.PerTryTimeout, time.Millisecond)
		}
		if r.Attempts == 0 && (r.PerTryTimeout != nil || len(r.RetryOn) > 0) {
			other := "perTryTimeout"
			if r.PerTryTimeout == nil {
				other = "retryOn"
			}
			issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "set policy.retries.attempts, or remove "+other,
				"policy.retries has a %s, but 0 attempts disable retries", other).At("policy.retries"))
		}
		return issues
	},
	route: func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action) {
		setIfUnset(&action.Retries, retriesOf(c.spec.Policy.Retries), origin)
	},
}

// retriesOf completes a RetryPolicy with the failures after which requests are retried
// by default. Left to Istio, only connect-failure, refused-stream, unavailable and
// cancelled would be retried, and 503 before version 1.24, whatever the method.
func retriesOf(r *networkingv1.RetryPolicy) snapshot.Retries {
	out := snapshot.Retries{Attempts: r.Attempts, PerTry: duration(r.PerTryTimeout), On: r.RetryOn}
	if r.Attempts > 0 && len(r.RetryOn) == 0 {
		out.On = []networkingv1.RetryCondition{
			networkingv1.RetryOnConnectFailure, networkingv1.RetryOnRefusedStream, networkingv1.RetryOnUnavailable, networkingv1.RetryOnCancelled,
		}
		out.AlsoIdempotent = []networkingv1.RetryCondition{networkingv1.RetryOnGatewayError, networkingv1.RetryOnReset}
	}
	return out
}

// perTryIssues warns of a perTryTimeout that is not shorter than the timeout of the
// whole request: proxies ignore it (Envoy x-envoy-upstream-rq-per-try-timeout-ms).
// Policies may set one each for the same requests: own are the fields of this one,
// owners those of older ones.
func perTryIssues(requests []string, own map[fieldKey]any, owners fieldOwners) []snapshot.Issue {
	for _, request := range requests {
		timeoutKey, retriesKey := fieldKey{request, requestTimeout.field}, fieldKey{request, retries.field}
		if own[timeoutKey] == nil && own[retriesKey] == nil {
			continue
		}
		whole, _ := cmp.Or(own[timeoutKey], owners[timeoutKey].value).(*metav1.Duration)
		tries, _ := cmp.Or(own[retriesKey], owners[retriesKey].value).(*networkingv1.RetryPolicy)
		if tries == nil || duration(whole) == 0 || duration(tries.PerTryTimeout) < duration(whole) {
			continue
		}
		field, other := retries.field, owners[timeoutKey].owner
		if own[retriesKey] == nil {
			field, other = requestTimeout.field, owners[retriesKey].owner
		} else if own[timeoutKey] != nil {
			other = snapshot.Ref{}
		}
		return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported, "set a perTryTimeout shorter than policy.requestTimeout",
			"policy.retries.perTryTimeout %s has no effect: it is not shorter than policy.requestTimeout %s, which limits all tries together",
			duration(tries.PerTryTimeout), duration(whole)).At(field).CausedBy(other)}
	}
	return nil
}

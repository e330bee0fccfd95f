package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// retrySettings say how often requests are retried, and after which failures.
func retrySettings(route *snapshot.Route) []Setting {
	if route.Action.Retries == nil {
		return nil
	}
	origin := route.Action.Retries.Origin
	r := route.Match.Retries(route.Action.Retries.Value)
	s := []Setting{{Name: "retries", Value: retryText(r, route.Action.Timeout), Origin: origin}}
	if r.Attempts > 0 {
		s = append(s, Setting{Name: "retried after", Value: conditionsText(r.On) + doubt(r, route.Match), Origin: origin})
	}
	if len(r.AlsoIdempotent) > 0 {
		s = append(s, Setting{
			Name: "retried if idempotent", Value: "also after " + conditionsText(r.AlsoIdempotent) + ": " + strings.Join(snapshot.IdempotentMethods(), ", "),
			Origin: origin,
		})
	}
	return s
}

func retryText(r snapshot.Retries, timeout *snapshot.WithOrigin[time.Duration]) string {
	if r.Attempts == 0 {
		return "none"
	}
	text := fmt.Sprintf("at most %d", r.Attempts)
	if within := perTryOf(r, timeout); within > 0 {
		text += ", each try within " + shortDuration(within)
	}
	if timeout != nil && timeout.Value > 0 {
		text += ", all tries within " + shortDuration(timeout.Value)
	}
	return text
}

// perTryOf is 0 if no try ends before the timeout of all tries.
func perTryOf(r snapshot.Retries, timeout *snapshot.WithOrigin[time.Duration]) time.Duration {
	if timeout != nil && timeout.Value > 0 && r.PerTry >= timeout.Value {
		return 0
	}
	return r.PerTry
}

// doubt says so if requests are retried that may have been processed and whose effect
// is then not the same as of one.
func doubt(r snapshot.Retries, match snapshot.Match) string {
	if !r.AfterProcessing() || match.Request != nil && slices.Contains(snapshot.IdempotentMethods(), match.Request.Method) {
		return ""
	}
	return "; a request that changes something may be processed twice"
}

func conditionsText(list []networkingv1.RetryCondition) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = string(c)
	}
	return strings.Join(texts, ", ")
}

package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// feature is one field of a TrafficPolicy: where it is, when it is invalid, and what
// it does. To add a field, add a feature in a file of its own and a line to the list
// below.
type feature struct {
	// field is the path below spec.
	field string
	// value is the field's content, nil if the policy does not set it. Two policies
	// may set it for the same requests if the contents are equal.
	value func(*networkingv1.Policy) any
	// check returns the issues with the field; nil if there can be none.
	check func(c *fieldContext) []snapshot.Issue
	// route sets the field on a route's action; nil if it is not about routes. It leaves
	// out targets that the viewer cannot reach.
	route func(c *fieldContext, origin snapshot.Origin, action *snapshot.Action)
	// view sets the field for all traffic of a view; nil if it is about routes.
	view func(c *fieldContext, origin snapshot.Origin, view *snapshot.View)
}

// fieldContext is where a feature is evaluated: a policy on a Destination, as seen
// from a mesh.
type fieldContext struct {
	env    *environment
	index  int
	spec   *networkingv1.TrafficPolicySpec
	viewer *snapshot.MeshPlan
	// lastAccepted is the policy's last accepted spec, for checks; nil if there is none.
	lastAccepted *networkingv1.TrafficPolicySpec
}

// features are all fields of a TrafficPolicy, in the order in which their issues are
// reported.
var features = []feature{
	trafficShift,
	faultDelay,
	faultAbort,
	requestTimeout,
	retries,
	corsPolicy,
	mirror,
	headerManipulation,
	outlierDetection,
	mtlsMode,
	csrf,
	rateLimit,
}

// has converts a pointer to a feature's value; a nil pointer becomes nil.
func has[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}

// setIfUnset sets a field unless an older policy has set it, to an equal value.
func setIfUnset[T any](slot **snapshot.WithOrigin[T], value T, origin snapshot.Origin) {
	if *slot == nil {
		*slot = &snapshot.WithOrigin[T]{Value: value, Origin: origin}
	}
}

// percentOrAll is 100 for an omitted percentage.
func percentOrAll(p *float64) float64 {
	if p == nil {
		return 100
	}
	return *p
}

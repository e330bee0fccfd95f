package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// feature is one field of a TrafficPolicy: where it stands, what makes it
// unusable, and what it does. A new field is a feature in a file of its own and
// a line in the list below.
type feature struct {
	// field is the path below spec.
	field string
	// value is the field's content, nil if the policy does not have it. Two
	// policies for the same requests may both have it if the contents are equal.
	value func(*networkingv1.Policy) any
	// check says what keeps the field from being used; nil if nothing can.
	check func(s *setting) []snapshot.Issue
	// route sets the field on a route's action; nil if it is not about routes.
	route func(s *setting, origin snapshot.Origin, action *snapshot.Action)
	// view sets the field for all traffic of a view; nil if it is about routes.
	view func(s *setting, origin snapshot.Origin, view *snapshot.View)
}

// setting is where a feature is looked at: a policy on a Destination, as seen
// from a mesh.
type setting struct {
	world  *world
	self   int
	spec   *networkingv1.TrafficPolicySpec
	viewer *snapshot.MeshPlan
}

// features are all fields of a TrafficPolicy, in the order in which their
// issues are told.
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

// has is a feature's value that is nil for a nil pointer.
func has[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}

// claim takes a slot for a value unless an older policy has taken it for an equal one.
func claim[T any](slot **snapshot.Owned[T], value T, origin snapshot.Origin) {
	if *slot == nil {
		*slot = &snapshot.Owned[T]{Value: value, Origin: origin}
	}
}

// percentOrAll reads a percentage whose absence means all.
func percentOrAll(p *float64) float64 {
	if p == nil {
		return 100
	}
	return *p
}

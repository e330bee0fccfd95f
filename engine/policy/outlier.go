package policy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Defaults of outlier detection, as documented for the field.
const (
	defaultConsecutiveErrors  = 5
	defaultOutlierInterval    = 10 * time.Second
	defaultBaseEjectionTime   = 30 * time.Second
	defaultMaxEjectionPercent = 100
)

// outlierDetection applies to all traffic of a mesh to the Destination: proxies eject
// endpoints for all callers.
var outlierDetection = feature{
	field: "policy.outlierDetection",
	value: func(p *networkingv1.Policy) any { return has(p.OutlierDetection) },
	check: func(c *fieldContext) []snapshot.Issue {
		o := c.spec.Policy.OutlierDetection
		issues := append(narrowIssues(c, "policy.outlierDetection"), gatewayIssues(c)...)
		issues = append(issues, checkStep("policy.outlierDetection.interval", o.Interval, time.Millisecond)...)
		return append(issues, checkStep("policy.outlierDetection.baseEjectionTime", o.BaseEjectionTime, time.Millisecond)...)
	},
	view: func(c *fieldContext, origin snapshot.Origin, view *snapshot.View) {
		setIfUnset(&view.Outlier, withDefaults(*c.spec.Policy.OutlierDetection), origin)
	},
}

// gatewayIssues warns of callers that see gateways instead of pods.
func gatewayIssues(c *fieldContext) []snapshot.Issue {
	if !c.env.topology.ThroughGateways(c.index, c.viewer) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
		"restrict sourceSelector to the service's own cluster, or use a flat network; to fail over between clusters, use a VirtualDestination",
		"for callers in other clusters policy.outlierDetection excludes only pods to which gateways cannot connect: the callers see gateways, and would exclude one with all its pods",
	).At("policy.outlierDetection")}
}

// withDefaults replaces zeros by the documented defaults.
func withDefaults(o networkingv1.OutlierDetection) networkingv1.OutlierDetection {
	if o.ConsecutiveErrors == 0 {
		o.ConsecutiveErrors = defaultConsecutiveErrors
	}
	if duration(o.Interval) == 0 {
		o.Interval = &metav1.Duration{Duration: defaultOutlierInterval}
	}
	if duration(o.BaseEjectionTime) == 0 {
		o.BaseEjectionTime = &metav1.Duration{Duration: defaultBaseEjectionTime}
	}
	if o.MaxEjectionPercent == 0 {
		o.MaxEjectionPercent = defaultMaxEjectionPercent
	}
	return o
}

// widenHint is for fields that apply to all requests and callers.
const widenHint = "move it to a policy without httpRequestMatchers, with a sourceSelector that names only clusters"

// isNarrow reports whether a policy selects only some requests or callers of a
// cluster.
func isNarrow(spec *networkingv1.TrafficPolicySpec) bool {
	return len(spec.HttpRequestMatchers) > 0 || slices.ContainsFunc(spec.SourceSelector, func(s commonv1.WorkloadSelector) bool {
		m := s.KubeWorkloadMatcher
		return m != nil && len(m.Labels)+len(m.Namespaces) > 0
	})
}

// narrowIssues warns of a field that applies to all requests, in a policy that
// selects some.
func narrowIssues(c *fieldContext, field string) []snapshot.Issue {
	if !isNarrow(c.spec) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported, widenHint,
		"%s applies to every request to the service, not only to those that the policy selects", field).At(field)}
}

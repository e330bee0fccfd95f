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

// outlierDetection holds for all traffic of a mesh to the Destination: proxies
// eject endpoints whoever calls.
var outlierDetection = feature{
	field: "policy.outlierDetection",
	value: func(p *networkingv1.Policy) any { return has(p.OutlierDetection) },
	check: func(s *setting) []snapshot.Issue {
		o := s.spec.Policy.OutlierDetection
		issues := wholeView(s, "policy.outlierDetection")
		issues = append(issues, checkStep("policy.outlierDetection.interval", o.Interval, time.Millisecond)...)
		return append(issues, checkStep("policy.outlierDetection.baseEjectionTime", o.BaseEjectionTime, time.Millisecond)...)
	},
	view: func(s *setting, origin snapshot.Origin, view *snapshot.View) {
		claim(&view.Outlier, withDefaults(*s.spec.Policy.OutlierDetection), origin)
	},
}

// withDefaults puts the field's documented defaults in the place of zeros.
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

// moveToWhole is the way out for a field that cannot tell requests or callers apart.
const moveToWhole = "move it to a policy without httpRequestMatchers and whose sourceSelector names clusters at most"

// narrow reports whether a policy is about some requests or callers of a cluster only.
func narrow(spec *networkingv1.TrafficPolicySpec) bool {
	return len(spec.HttpRequestMatchers) > 0 || slices.ContainsFunc(spec.SourceSelector, func(s commonv1.WorkloadSelector) bool {
		m := s.KubeWorkloadMatcher
		return m != nil && len(m.Labels)+len(m.Namespaces) > 0
	})
}

// wholeView warns where a field that cannot tell requests or callers apart
// stands in a policy that does.
func wholeView(s *setting, field string) []snapshot.Issue {
	if !narrow(s.spec) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported, moveToWhole,
		"%s holds for every request to the service, not only for those that the policy selects", field)}
}

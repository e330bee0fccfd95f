package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultInjection delays or fails requests on purpose.
//
// +kubebuilder:validation:XValidation:rule="[has(self.fixedDelay), has(self.abort)].filter(x, x).size() == 1",message="set exactly one of fixedDelay and abort; for both, write two policies"
type FaultInjection struct {
	// FixedDelay holds each request back for this long.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$') && duration(self) >= duration('1ms')`,message="must be a duration of at least 1ms: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	FixedDelay *metav1.Duration `json:"fixedDelay,omitempty"`
	// Abort answers requests with an error.
	Abort *Abort `json:"abort,omitempty"`
	// Percentage of the requests that are hit, from 0 to 100; omitted means all.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *float64 `json:"percentage,omitempty"`
}

// Abort answers requests with an error.
//
// +kubebuilder:validation:XValidation:rule="has(self.httpStatus)",message="httpStatus is needed: the status to answer with, for example 503"
type Abort struct {
	// HttpStatus is the HTTP status to answer with.
	// +kubebuilder:validation:Minimum=200
	// +kubebuilder:validation:Maximum=599
	HttpStatus int32 `json:"httpStatus,omitempty"`
}

// RetryPolicy says how often a failed request is tried again.
type RetryPolicy struct {
	// Attempts is the number of tries after the first; 0 turns retries off.
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`
	// PerTryTimeout is how long one try may take, at least 1ms.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$') && duration(self) >= duration('1ms')`,message="must be a duration of at least 1ms: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	PerTryTimeout *metav1.Duration `json:"perTryTimeout,omitempty"`
}

// OutlierDetection takes endpoints that keep failing out of the load balancing for a while. A value of 0 is the default.
type OutlierDetection struct {
	// ConsecutiveErrors is the number of errors in a row after which an endpoint is taken out; 5 if omitted.
	// +kubebuilder:validation:Minimum=0
	ConsecutiveErrors uint32 `json:"consecutiveErrors,omitempty"`
	// Interval is the time between two looks at the endpoints; 10s if omitted.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$') && duration(self) >= duration('1ms')`,message="must be a duration of at least 1ms: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// BaseEjectionTime is how long an endpoint stays out the first time; 30s if omitted.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$') && duration(self) >= duration('1ms')`,message="must be a duration of at least 1ms: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	BaseEjectionTime *metav1.Duration `json:"baseEjectionTime,omitempty"`
	// MaxEjectionPercent is the share of the endpoints that may be out at a time, from 0 to 100; 100 if omitted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxEjectionPercent uint32 `json:"maxEjectionPercent,omitempty"`
}

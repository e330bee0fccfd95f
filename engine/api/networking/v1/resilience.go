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

// RetryPolicy says how often a failed request is retried, and after which failures.
type RetryPolicy struct {
	// Attempts is the number of retries after the first try, so that a request is sent at most attempts + 1 times; 0 turns
	// retries off.
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`
	// PerTryTimeout is how long each try may take, the first one included, at least 1ms. A request that takes longer gets
	// a 504 unless it is retried. It has no effect unless it is shorter than requestTimeout, which limits all tries
	// together.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$') && duration(self) >= duration('1ms')`,message="must be a duration of at least 1ms: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	PerTryTimeout *metav1.Duration `json:"perTryTimeout,omitempty"`
	// RetryOn are the failures after which a request is retried, whatever its method: with 5xx, gateway-error or reset, a
	// POST may be processed twice. If omitted, every request is retried after connect-failure, refused-stream, unavailable
	// and cancelled. Requests with an idempotent method (GET, HEAD, OPTIONS, TRACE, PUT, DELETE; RFC 9110, section 9.2.2)
	// are then also retried after gateway-error and reset; others are not, because they may have been processed.
	// +kubebuilder:validation:MaxItems=11
	RetryOn []RetryCondition `json:"retryOn,omitempty"`
}

// RetryCondition is a failure after which a request is retried, by the name that Envoy has for it.
//
// +kubebuilder:validation:Enum="5xx";gateway-error;reset;connect-failure;refused-stream;retriable-4xx;cancelled;deadline-exceeded;internal;resource-exhausted;unavailable
type RetryCondition string

const (
	// RetryOn5xx is a response with a status of 500 or higher, a reset, or a try that exceeds perTryTimeout.
	RetryOn5xx RetryCondition = "5xx"
	// RetryOnGatewayError is a 502, 503 or 504, a reset, or a try that exceeds perTryTimeout.
	RetryOnGatewayError RetryCondition = "gateway-error"
	// RetryOnReset is a connection or stream that ends before the response, or a try that exceeds perTryTimeout.
	RetryOnReset RetryCondition = "reset"
	// RetryOnConnectFailure is a connection that could not be established.
	RetryOnConnectFailure RetryCondition = "connect-failure"
	// RetryOnRefusedStream is an HTTP/2 stream that the service refused before it processed the request.
	RetryOnRefusedStream RetryCondition = "refused-stream"
	// RetryOnRetriable4xx is a 409.
	RetryOnRetriable4xx RetryCondition = "retriable-4xx"
	// RetryOnCancelled is the gRPC status CANCELLED.
	RetryOnCancelled RetryCondition = "cancelled"
	// RetryOnDeadlineExceeded is the gRPC status DEADLINE_EXCEEDED.
	RetryOnDeadlineExceeded RetryCondition = "deadline-exceeded"
	// RetryOnInternal is the gRPC status INTERNAL.
	RetryOnInternal RetryCondition = "internal"
	// RetryOnResourceExhausted is the gRPC status RESOURCE_EXHAUSTED.
	RetryOnResourceExhausted RetryCondition = "resource-exhausted"
	// RetryOnUnavailable is the gRPC status UNAVAILABLE.
	RetryOnUnavailable RetryCondition = "unavailable"
)

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

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// CorsPolicy answers the cross-origin checks of browsers.
type CorsPolicy struct {
	// AllowOrigins are the origins that may make requests.
	// +kubebuilder:validation:MaxItems=100
	AllowOrigins []commonv1.StringMatch `json:"allowOrigins,omitempty"`
	// AllowMethods are the methods that may be used.
	AllowMethods []string `json:"allowMethods,omitempty"`
	// AllowHeaders are the request headers that may be sent.
	AllowHeaders []string `json:"allowHeaders,omitempty"`
	// ExposeHeaders are the response headers that scripts may read.
	ExposeHeaders []string `json:"exposeHeaders,omitempty"`
	// MaxAge is how long a browser may remember the answer.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$')`,message="must be a duration: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
	// AllowCredentials says whether requests may carry credentials; omitted leaves the header out of the answer.
	AllowCredentials *bool `json:"allowCredentials,omitempty"`
}

// CsrfPolicy checks the origin of requests that change something.
type CsrfPolicy struct {
	// FilterEnabled refuses requests that fail the check.
	FilterEnabled bool `json:"filterEnabled,omitempty"`
	// ShadowEnabled only counts requests that fail the check; it has no effect if filterEnabled is set.
	ShadowEnabled bool `json:"shadowEnabled,omitempty"`
	// Percentage of the requests that are checked, from 0 to 100; omitted means all.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *float64 `json:"percentage,omitempty"`
	// AdditionalOrigins are valid besides the request's own host.
	// +kubebuilder:validation:MaxItems=100
	AdditionalOrigins []commonv1.StringMatch `json:"additionalOrigins,omitempty"`
}

// HeaderManipulation adds and removes headers.
type HeaderManipulation struct {
	// RemoveResponseHeaders are taken off the response.
	RemoveResponseHeaders []string `json:"removeResponseHeaders,omitempty"`
	// AppendResponseHeaders are added to the response.
	AppendResponseHeaders map[string]string `json:"appendResponseHeaders,omitempty"`
	// RemoveRequestHeaders are taken off the request.
	RemoveRequestHeaders []string `json:"removeRequestHeaders,omitempty"`
	// AppendRequestHeaders are added to the request.
	AppendRequestHeaders map[string]string `json:"appendRequestHeaders,omitempty"`
}

// MTLS sets how callers encrypt.
type MTLS struct {
	// Istio sets it for Istio.
	Istio *IstioMTLS `json:"istio,omitempty"`
}

// IstioMTLS sets the TLS mode of Istio's DestinationRules.
//
// +kubebuilder:validation:XValidation:rule="has(self.tlsMode)",message="tlsMode is needed: ISTIO_MUTUAL, SIMPLE or DISABLE; without it requests would go unencrypted"
type IstioMTLS struct {
	// TlsMode is how sidecars encrypt what they send.
	TlsMode TLSMode `json:"tlsMode,omitempty"`
}

// TLSMode is how a caller encrypts.
//
// +kubebuilder:validation:Enum=DISABLE;SIMPLE;ISTIO_MUTUAL
type TLSMode string

const (
	// TLSModeDisable does not encrypt.
	TLSModeDisable TLSMode = "DISABLE"
	// TLSModeSimple encrypts; the caller shows no certificate.
	TLSModeSimple TLSMode = "SIMPLE"
	// TLSModeIstioMutual encrypts; both sides show the certificates that Istio gave them.
	TLSModeIstioMutual TLSMode = "ISTIO_MUTUAL"
)

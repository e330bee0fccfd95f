package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HTTPRoute routes requests of HTTP.
//
// +kubebuilder:object:root=true
type HTTPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec HTTPRouteSpec `json:"spec,omitempty,omitzero"`
}

// HTTPRouteList is a list of HTTPRoutes.
//
// +kubebuilder:object:root=true
type HTTPRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HTTPRoute `json:"items"`
}

// GRPCRoute routes calls of gRPC.
//
// +kubebuilder:object:root=true
type GRPCRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec GRPCRouteSpec `json:"spec,omitempty,omitzero"`
}

// GRPCRouteList is a list of GRPCRoutes.
//
// +kubebuilder:object:root=true
type GRPCRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GRPCRoute `json:"items"`
}

// TCPRoute routes connections.
//
// +kubebuilder:object:root=true
type TCPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec TCPRouteSpec `json:"spec,omitempty,omitzero"`
}

// TCPRouteList is a list of TCPRoutes.
//
// +kubebuilder:object:root=true
type TCPRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TCPRoute `json:"items"`
}

// TLSRoute routes connections by the name that they ask for (SNI).
//
// +kubebuilder:object:root=true
type TLSRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec TLSRouteSpec `json:"spec,omitempty,omitzero"`
}

// TLSRouteList is a list of TLSRoutes.
//
// +kubebuilder:object:root=true
type TLSRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TLSRoute `json:"items"`
}

// HTTPRouteSpec says which requests go where.
type HTTPRouteSpec struct {
	ParentRefs []ParentReference `json:"parentRefs,omitempty"`
	Hostnames  []string          `json:"hostnames,omitempty"`
	Rules      []HTTPRouteRule   `json:"rules,omitempty"`
}

// GRPCRouteSpec says which calls go where.
type GRPCRouteSpec struct {
	ParentRefs []ParentReference `json:"parentRefs,omitempty"`
	Hostnames  []string          `json:"hostnames,omitempty"`
	Rules      []GRPCRouteRule   `json:"rules,omitempty"`
}

// TCPRouteSpec says where connections go.
type TCPRouteSpec struct {
	ParentRefs []ParentReference `json:"parentRefs,omitempty"`
	Rules      []Connections     `json:"rules,omitempty"`
}

// TLSRouteSpec says which connections go where.
type TLSRouteSpec struct {
	ParentRefs []ParentReference `json:"parentRefs,omitempty"`
	Hostnames  []string          `json:"hostnames,omitempty"`
	Rules      []Connections     `json:"rules,omitempty"`
}

// ParentReference names what a route is attached to: a Gateway, or a Service or ServiceEntry, of which it routes the requests in the
// mesh. Without a group and kind, it is a Gateway.
type ParentReference struct {
	Group       *string `json:"group,omitempty"`
	Kind        *string `json:"kind,omitempty"`
	Namespace   *string `json:"namespace,omitempty"`
	Name        string  `json:"name"`
	SectionName *string `json:"sectionName,omitempty"`
	Port        *int32  `json:"port,omitempty"`
}

// HTTPRouteRule is a rule of an HTTPRoute. Without matches, it is for all requests.
type HTTPRouteRule struct {
	Matches     []HTTPRouteMatch `json:"matches,omitempty"`
	Filters     []Filter         `json:"filters,omitempty"`
	BackendRefs []BackendRef     `json:"backendRefs,omitempty"`
	Timeouts    *Timeouts        `json:"timeouts,omitempty"`
	// Retry: only matters that there is one.
	Retry *Retry `json:"retry,omitempty"`
}

// Retry is how often requests are sent again.
type Retry struct{}

// Timeouts have durations as Go writes them. None, and zero, is no limit.
type Timeouts struct {
	Request        string `json:"request,omitempty"`
	BackendRequest string `json:"backendRequest,omitempty"`
}

// HTTPRouteMatch is a condition on requests. All of it must hold.
type HTTPRouteMatch struct {
	Path        *PathMatch   `json:"path,omitempty"`
	Headers     []ValueMatch `json:"headers,omitempty"`
	QueryParams []ValueMatch `json:"queryParams,omitempty"`
	Method      string       `json:"method,omitempty"`
}

// Types of matches.
const (
	Exact             = "Exact"
	PathPrefix        = "PathPrefix"
	RegularExpression = "RegularExpression"
)

// PathMatch is a condition on the path. The type is PathPrefix if it is empty, and the value "/".
type PathMatch struct {
	Type  string  `json:"type,omitempty"`
	Value *string `json:"value,omitempty"`
}

// ValueMatch is a condition on a header or parameter. The type is Exact if it is empty.
type ValueMatch struct {
	Type  string `json:"type,omitempty"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// GRPCRouteRule is a rule of a GRPCRoute. Without matches, it is for all calls.
type GRPCRouteRule struct {
	Matches     []GRPCRouteMatch `json:"matches,omitempty"`
	Filters     []Filter         `json:"filters,omitempty"`
	BackendRefs []BackendRef     `json:"backendRefs,omitempty"`
}

// GRPCRouteMatch is a condition on calls. All of it must hold.
type GRPCRouteMatch struct {
	Method  *GRPCMethodMatch `json:"method,omitempty"`
	Headers []ValueMatch     `json:"headers,omitempty"`
}

// GRPCMethodMatch is a condition on the service and method of gRPC. The type is Exact if it is empty.
type GRPCMethodMatch struct {
	Type    string `json:"type,omitempty"`
	Service string `json:"service,omitempty"`
	Method  string `json:"method,omitempty"`
}

// Connections is a rule for connections.
type Connections struct {
	BackendRefs []BackendRef `json:"backendRefs,omitempty"`
}

// Types of filters of which more is read than that they are there.
const (
	RequestHeaderModifier  = "RequestHeaderModifier"
	ResponseHeaderModifier = "ResponseHeaderModifier"
)

// Filter changes or answers requests.
type Filter struct {
	Type                   string        `json:"type"`
	RequestHeaderModifier  *HeaderFilter `json:"requestHeaderModifier,omitempty"`
	ResponseHeaderModifier *HeaderFilter `json:"responseHeaderModifier,omitempty"`
}

// HeaderFilter changes headers.
type HeaderFilter struct {
	Set    []Header `json:"set,omitempty"`
	Add    []Header `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Header of a request or response.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// BackendRef names where requests go: a Service if it has no group and kind. The weight is 1 if it is nil.
type BackendRef struct {
	Group     *string  `json:"group,omitempty"`
	Kind      *string  `json:"kind,omitempty"`
	Namespace *string  `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Port      *int32   `json:"port,omitempty"`
	Weight    *int32   `json:"weight,omitempty"`
	Filters   []Filter `json:"filters,omitempty"`
}

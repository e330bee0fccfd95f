package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gateway is where requests and connections enter.
//
// +kubebuilder:object:root=true
type Gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec GatewaySpec `json:"spec,omitempty,omitzero"`
	// Status is what was last seen of it.
	Status GatewayStatus `json:"status,omitempty,omitzero"`
}

// GatewayList is a list of Gateways.
//
// +kubebuilder:object:root=true
type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gateway `json:"items"`
}

// GatewaySpec says where it listens.
type GatewaySpec struct {
	GatewayClassName string     `json:"gatewayClassName"`
	Listeners        []Listener `json:"listeners,omitempty"`
	Addresses        []Address  `json:"addresses,omitempty"`
	// AllowedListeners says whose ListenerSets add listeners: nobody's if it is nil.
	AllowedListeners *AllowedListeners `json:"allowedListeners,omitempty"`
}

// Address of a Gateway. The type is IPAddress if it is nil.
type Address struct {
	Type  *string `json:"type,omitempty"`
	Value string  `json:"value"`
}

// AllowedListeners is a choice of namespaces.
type AllowedListeners struct {
	Namespaces *FromNamespaces `json:"namespaces,omitempty"`
}

// Whose objects are taken, see FromNamespaces.
const (
	FromAll      = "All"
	FromSame     = "Same"
	FromSelector = "Selector"
)

// FromNamespaces is a choice of namespaces: All, Same, None, or those of a selector.
type FromNamespaces struct {
	From     *string               `json:"from,omitempty"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Protocols of listeners.
const (
	ProtocolHTTP  = "HTTP"
	ProtocolHTTPS = "HTTPS"
	ProtocolTLS   = "TLS"
	ProtocolTCP   = "TCP"
	ProtocolUDP   = "UDP"
)

// Listener is a port and a name by which requests or connections enter. The name is any if it is nil or empty.
type Listener struct {
	Name     string       `json:"name"`
	Hostname *string      `json:"hostname,omitempty"`
	Port     int32        `json:"port,omitempty"`
	Protocol string       `json:"protocol"`
	TLS      *ListenerTLS `json:"tls,omitempty"`
	// AllowedRoutes says which routes are taken: those of the same namespace if it is nil.
	AllowedRoutes *AllowedRoutes `json:"allowedRoutes,omitempty"`
}

// Passthrough is the mode of a listener that passes TLS on as it comes.
const Passthrough = "Passthrough"

// ListenerTLS has the mode Terminate if it is nil.
type ListenerTLS struct {
	Mode *string `json:"mode,omitempty"`
}

// AllowedRoutes is a choice of routes. Without kinds, it is of those that fit the protocol.
type AllowedRoutes struct {
	Namespaces *FromNamespaces `json:"namespaces,omitempty"`
	Kinds      []RouteKind     `json:"kinds,omitempty"`
}

// RouteKind is one of the Gateway API if it has no group.
type RouteKind struct {
	Group *string `json:"group,omitempty"`
	Kind  string  `json:"kind"`
}

// GatewayStatus is what its controller says of it.
type GatewayStatus struct {
	Addresses  []Address          `json:"addresses,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Listeners  []ListenerStatus   `json:"listeners,omitempty"`
}

// ListenerStatus is what the controller says of a listener.
type ListenerStatus struct {
	Name       string             `json:"name"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Programmed is the condition of listeners that the controller has configured.
const Programmed = "Programmed"

// ListenerSet adds listeners to a Gateway.
//
// +kubebuilder:object:root=true
type ListenerSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec ListenerSetSpec `json:"spec,omitempty,omitzero"`
	// Status is what was last seen of it.
	Status ListenerSetStatus `json:"status,omitempty,omitzero"`
}

// ListenerSetList is a list of ListenerSets.
//
// +kubebuilder:object:root=true
type ListenerSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ListenerSet `json:"items"`
}

// ListenerSetSpec says where it listens.
type ListenerSetSpec struct {
	ParentRef ParentReference `json:"parentRef"`
	Listeners []Listener      `json:"listeners,omitempty"`
}

// ListenerSetStatus is what the controller says of its listeners.
type ListenerSetStatus struct {
	Listeners []ListenerStatus `json:"listeners,omitempty"`
}

// ReferenceGrant lets objects of other namespaces refer to those of its own.
//
// +kubebuilder:object:root=true
type ReferenceGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec ReferenceGrantSpec `json:"spec,omitempty,omitzero"`
}

// ReferenceGrantList is a list of ReferenceGrants.
//
// +kubebuilder:object:root=true
type ReferenceGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReferenceGrant `json:"items"`
}

// ReferenceGrantSpec lets each of the former refer to each of the latter.
type ReferenceGrantSpec struct {
	From []GrantFrom `json:"from,omitempty"`
	To   []GrantTo   `json:"to,omitempty"`
}

// GrantFrom are the objects of a kind in a namespace.
type GrantFrom struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
}

// GrantTo is an object of a kind, or all of them if it has no name.
type GrantTo struct {
	Group string  `json:"group"`
	Kind  string  `json:"kind"`
	Name  *string `json:"name,omitempty"`
}

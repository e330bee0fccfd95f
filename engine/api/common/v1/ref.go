package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Empty is a message without fields. Its presence is what says something.
type Empty struct{}

// ObjectRef names an object of the management cluster. The kind follows from where the reference stands.
type ObjectRef struct {
	// Name of the object.
	Name string `json:"name,omitempty"`
	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`
}

// ObjectRefList is a list of references.
type ObjectRefList struct {
	// Refs are the objects referred to.
	Refs []ObjectRef `json:"refs,omitempty"`
}

// ClusterObjectRef names an object of one registered cluster.
type ClusterObjectRef struct {
	// Name of the object.
	Name string `json:"name,omitempty"`
	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`
	// ClusterName is the name under which the cluster is registered (its KubernetesCluster).
	ClusterName string `json:"clusterName,omitempty"`
}

// TypedObjectRef names an object together with its kind.
type TypedObjectRef struct {
	// ApiGroup of the kind; empty for the core group.
	ApiGroup string `json:"apiGroup,omitempty"`
	// Kind of the object.
	Kind string `json:"kind,omitempty"`
	// Name of the object.
	Name string `json:"name,omitempty"`
	// Namespace of the object; empty for kinds without a namespace.
	Namespace string `json:"namespace,omitempty"`
}

// GrpcServer is the address of a gRPC server and how to connect to it.
type GrpcServer struct {
	// Address is host:port of the server.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches('^.+:[0-9]{1,5}$')`,message="must be host:port, for example extensions.gloo-mesh:8080"
	Address string `json:"address,omitempty"`
	// Insecure connects without TLS.
	Insecure bool `json:"insecure,omitempty"`
	// ReconnectOnNetworkFailures keeps trying to connect again after the connection broke.
	ReconnectOnNetworkFailures bool `json:"reconnectOnNetworkFailures,omitempty"`
}

// TCPKeepalive sets the keep-alive probes of TCP connections.
type TCPKeepalive struct {
	// Probes is the number of unanswered probes after which the connection counts as dead.
	// +kubebuilder:validation:Minimum=0
	Probes uint32 `json:"probes,omitempty"`
	// Time is how long a connection is idle before the first probe.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$')`,message="must be a duration: numbers with a unit (h, m, s, ms, us, ns), for example 75s"
	Time *metav1.Duration `json:"time,omitempty"`
	// Interval is the time between two probes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$')`,message="must be a duration: numbers with a unit (h, m, s, ms, us, ns), for example 75s"
	Interval *metav1.Duration `json:"interval,omitempty"`
}

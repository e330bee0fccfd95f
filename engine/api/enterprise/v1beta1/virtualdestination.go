package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// VirtualDestination is one host name for Destinations of several clusters, with failover among them. One in a registered cluster
// counts where the Settings name its namespace (workloadClusterPolicies): behind it are services of that namespace, and callers there
// alone see it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=virtualdestinations,scope=Namespaced,shortName=vdest,categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.spec.hostname`,description="The name by which it is called"
// +kubebuilder:printcolumn:name="VirtualMesh",type=string,JSONPath=`.spec.virtualMesh.name`,description="Where it is visible"
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.spec.port.number`,description="The port by which it is called"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why it is not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualDestination struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec VirtualDestinationSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status VirtualDestinationStatus `json:"status,omitempty,omitzero"`

	// InCluster is the registered cluster in which the object was found; empty for one of the management cluster. Who reads it says so:
	// it is no part of the object.
	InCluster string `json:"-"`
}

// FoundIn returns InCluster.
func (v *VirtualDestination) FoundIn() string { return v.InCluster }

// VirtualDestinationSpec is a host name and what stands behind it.
//
// +kubebuilder:validation:XValidation:rule="has(self.hostname)",message="hostname is needed: the name by which the VirtualDestination is called, for example reviews.global"
// +kubebuilder:validation:XValidation:rule="has(self.port)",message="port is needed: the port by which the VirtualDestination is called"
// +kubebuilder:validation:XValidation:rule="[has(self.virtualMesh), has(self.meshList)].filter(x, x).size() == 1",message="say where it is visible: set exactly one of virtualMesh and meshList"
// +kubebuilder:validation:XValidation:rule="[has(self.static), has(self.localized)].filter(x, x).size() == 1",message="say what stands behind it: set exactly one of static and localized"
type VirtualDestinationSpec struct {
	// Hostname by which it is called; it must be the only one of its name in the meshes where it is visible, and no
	// name for Services of their clusters, such as db.default.svc.cluster.local.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case without a dot at either end, for example reviews.global"
	Hostname string `json:"hostname,omitempty"`
	// Port by which it is called.
	Port *VirtualDestinationPort `json:"port,omitempty"`
	// VirtualMesh whose members see it.
	VirtualMesh *commonv1.ObjectRef `json:"virtualMesh,omitempty"`
	// MeshList are meshes that see it.
	MeshList *MeshList `json:"meshList,omitempty"`
	// Static lists the Destinations behind it, in the order in which they take over from each other. An endpoint counts as
	// failing by the outlier detection that TrafficPolicies ask for on the first of them that has any; if none has, after 10
	// errors in a row, looked at every 5s, for 120s.
	Static *StaticDestinations `json:"static,omitempty"`
	// Localized selects the Destinations behind it; callers get the nearest.
	Localized *LocalizedDestinations `json:"localized,omitempty"`
}

// VirtualDestinationPort is the port by which a VirtualDestination is called. Every Service behind it must have it.
//
// +kubebuilder:validation:XValidation:rule="has(self.number)",message="number is needed: the port by which the VirtualDestination is called"
// +kubebuilder:validation:XValidation:rule="!(has(self.targetName) && has(self.targetNumber))",message="set targetName or targetNumber, not both"
type VirtualDestinationPort struct {
	// Number of the port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number uint32 `json:"number,omitempty"`
	// Protocol spoken on it: HTTP, HTTPS, GRPC, HTTP2, MONGO, TCP or TLS, in upper or lower case; HTTP if omitted.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.upperAscii() in ['HTTP', 'HTTPS', 'GRPC', 'HTTP2', 'MONGO', 'TCP', 'TLS']",message="must be one of HTTP, HTTPS, GRPC, HTTP2, MONGO, TCP and TLS, in upper or lower case"
	Protocol string `json:"protocol,omitempty"`
	// TargetName is the name of the port of the Services behind it.
	TargetName string `json:"targetName,omitempty"`
	// TargetNumber is the number of the port of the Services behind it; number if omitted.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetNumber uint32 `json:"targetNumber,omitempty"`
}

// MeshList names meshes.
type MeshList struct {
	// Meshes are the Meshes.
	Meshes []commonv1.ObjectRef `json:"meshes,omitempty"`
}

// StaticDestinations are Destinations in the order in which they take over from each other.
//
// +kubebuilder:validation:XValidation:rule="has(self.destinations) && size(self.destinations) > 0",message="destinations is empty, so calls would have nowhere to go; name at least one Service"
type StaticDestinations struct {
	// Destinations, the preferred one first.
	// +kubebuilder:validation:MaxItems=200
	Destinations []BackingDestination `json:"destinations,omitempty"`
}

// BackingDestination is what stands behind a VirtualDestination.
type BackingDestination struct {
	// KubeService is a Service of a registered cluster.
	KubeService *commonv1.ClusterObjectRef `json:"kubeService,omitempty"`
}

// LocalizedDestinations are Destinations of which each caller gets the nearest.
//
// +kubebuilder:validation:XValidation:rule="has(self.destinationSelectors) && size(self.destinationSelectors) > 0",message="destinationSelectors is needed: it selects the Services behind the VirtualDestination, one in each cluster"
type LocalizedDestinations struct {
	// DestinationSelectors select the Destinations; at most one in each cluster.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelectors []commonv1.DestinationSelector `json:"destinationSelectors,omitempty"`
	// FailoverDirectives say which region takes over from which, and in which order. The Destination of the caller's own
	// cluster always comes first, those of its region next, and last those of regions that no directive names.
	FailoverDirectives []FailoverDirective `json:"failoverDirectives,omitempty"`
	// OutlierDetection says when an endpoint counts as failing; if omitted, after 10 errors in a row, looked at every 5s,
	// for 120s.
	OutlierDetection *networkingv1.OutlierDetection `json:"outlierDetection,omitempty"`
}

// FailoverDirective says which places take over from one.
type FailoverDirective struct {
	// From is the place that fails.
	From *Locality `json:"from,omitempty"`
	// To are the places that take over, the preferred one first.
	To []Locality `json:"to,omitempty"`
}

// Locality is a place.
type Locality struct {
	// Region of the nodes.
	Region string `json:"region,omitempty"`
	// Zone of the nodes; it has no effect.
	Zone string `json:"zone,omitempty"`
	// SubZone of the nodes; it has no effect.
	SubZone string `json:"subZone,omitempty"`
}

// VirtualDestinationStatus is the observed state of a VirtualDestination.
type VirtualDestinationStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is ACCEPTED only if it is accepted in every mesh.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Address is the virtual IP of its host name, the same in all meshes; it stays as long as it is visible in one. Not part of
	// Gloo Mesh 1.x.
	Address string `json:"address,omitempty"`
	// Meshes is the result in each mesh, by key name.namespace.cluster.
	Meshes map[string]commonv1.ApprovalStatus `json:"meshes,omitempty"`
	// SelectedDestinations are the Destinations behind it.
	SelectedDestinations []SelectedDestination `json:"selectedDestinations,omitempty"`
	// Errors are the reasons why it is not accepted, and what to do about each.
	Errors []string `json:"errors,omitempty"`
	// Warnings are what a mesh cannot express, or what has no effect.
	Warnings []string `json:"warnings,omitempty"`
	// RequiredSubsets are the TrafficPolicies that shift requests to subsets of it.
	RequiredSubsets []discoveryv1.RequiredSubsets `json:"requiredSubsets,omitempty"`
	// Conditions say the same in the words that all tools know: Ready, Accepted and InForce always; Conflicted, Reconciling and
	// Stalled if they are True. Not part of Gloo Mesh 1.x.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SelectedDestination is a Destination behind a VirtualDestination.
type SelectedDestination struct {
	// Ref is the Destination.
	Ref commonv1.ClusterObjectRef `json:"ref,omitempty,omitzero"`
	// Destination is what it stands for.
	Destination *BackingDestination `json:"destination,omitempty"`
}

// VirtualDestinationList is a list of VirtualDestinations.
//
// +kubebuilder:object:root=true
type VirtualDestinationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []VirtualDestination `json:"items"`
}

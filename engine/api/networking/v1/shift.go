package v1

import commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"

// MultiDestination is a set of targets among which requests are split.
//
// If a target can no longer be reached after the policy was accepted, the others take its share until it is back; if
// none with a weight is left, requests go to the service itself. The status says so. A target without ready pods keeps
// its share.
//
// +kubebuilder:validation:XValidation:rule="has(self.destinations) && size(self.destinations) > 0",message="destinations is empty, so requests would have nowhere to go; name at least one, or leave trafficShift out"
// +kubebuilder:validation:XValidation:rule="!has(self.destinations) || size(self.destinations) < 2 || self.destinations.exists(d, has(d.weight) && d.weight > 0)",message="no destination has a weight above 0, so none would get requests; with several destinations give each its share, for example 75 and 25"
type MultiDestination struct {
	// Destinations are the targets with their weights.
	// +kubebuilder:validation:MaxItems=100
	Destinations []WeightedDestination `json:"destinations,omitempty"`
}

// WeightedDestination is one target and its share of the requests.
//
// +kubebuilder:validation:XValidation:rule="[has(self.kubeService), has(self.virtualDestination), has(self.staticDestination), has(self.clusterHeader)].filter(x, x).size() == 1",message="set exactly one of kubeService, virtualDestination, staticDestination and clusterHeader"
type WeightedDestination struct {
	// Weight is the share, relative to the sum of all weights. With one destination it can be left out.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight uint32 `json:"weight,omitempty"`
	// KubeService is a Service of a registered cluster.
	KubeService *KubeDestination `json:"kubeService,omitempty"`
	// VirtualDestination is a VirtualDestination of the management cluster.
	VirtualDestination *VirtualDestinationRef `json:"virtualDestination,omitempty"`
	// StaticDestination is a Destination of kind externalService.
	StaticDestination *commonv1.ObjectRef `json:"staticDestination,omitempty"`
	// ClusterHeader is a request header that names the upstream cluster of the proxy. No mesh here can express it.
	// +kubebuilder:validation:MinLength=1
	ClusterHeader string `json:"clusterHeader,omitempty"`
	// Options hold for this target only.
	Options *WeightedDestinationOptions `json:"options,omitempty"`
}

// KubeDestination is a Service, or a subset of its pods.
//
// +kubebuilder:validation:XValidation:rule=`has(self.name) && self.name != "" && has(self.namespace) && self.namespace != "" && has(self.clusterName) && self.clusterName != ""`,message="name, namespace and clusterName are all needed to refer to a Service"
type KubeDestination struct {
	// Name of the Service.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Namespace of the Service.
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// ClusterName is the name under which the Service's cluster is registered.
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`
	// Subset narrows the target to pods that have all of these labels.
	Subset map[string]string `json:"subset,omitempty"`
	// Port of the Service; needed only if it has several.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
}

// VirtualDestinationRef is a VirtualDestination, or a subset of the pods behind it.
//
// +kubebuilder:validation:XValidation:rule=`has(self.name) && self.name != "" && has(self.namespace) && self.namespace != ""`,message="name and namespace are both needed to refer to a VirtualDestination"
type VirtualDestinationRef struct {
	// Name of the VirtualDestination.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Namespace of the VirtualDestination.
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// Subset narrows the target to pods that have all of these labels.
	Subset map[string]string `json:"subset,omitempty"`
}

// WeightedDestinationOptions hold for one target of a shift.
type WeightedDestinationOptions struct {
	// HeaderManipulation adds and removes headers of requests that go to this target.
	HeaderManipulation *HeaderManipulation `json:"headerManipulation,omitempty"`
}

// Mirror copies requests to another Service. While that one can no longer be reached, nothing is copied.
//
// +kubebuilder:validation:XValidation:rule="has(self.kubeService)",message="kubeService is needed: the Service that gets the copies"
type Mirror struct {
	// KubeService gets the copies.
	// +kubebuilder:validation:XValidation:rule=`has(self.name) && self.name != "" && has(self.namespace) && self.namespace != "" && has(self.clusterName) && self.clusterName != ""`,message="name, namespace and clusterName are all needed to refer to a Service"
	KubeService *commonv1.ClusterObjectRef `json:"kubeService,omitempty"`
	// Percentage of the requests that are copied, from 0 to 100; omitted means all.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *float64 `json:"percentage,omitempty"`
	// Port of the Service; needed only if it has several.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
}

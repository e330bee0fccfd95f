package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// WasmDeployment puts WebAssembly filters into the proxies of workloads.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=wasmdeployments,scope=Namespaced,shortName=wasmd,categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="First-Image",type=string,JSONPath=`.spec.filters[0].wasmImageSource.wasmImageTag`,description="Image of its first filter"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.error`,description="Why it is not in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WasmDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec WasmDeploymentSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status WasmDeploymentStatus `json:"status,omitempty,omitzero"`
}

// WasmDeploymentSpec says which filters go where.
type WasmDeploymentSpec struct {
	// WorkloadSelector selects the workloads; omitted means all.
	// +kubebuilder:validation:MaxItems=100
	WorkloadSelector []commonv1.WorkloadSelector `json:"workloadSelector,omitempty"`
	// Filters are put into each proxy, in this order.
	// +kubebuilder:validation:MaxItems=100
	Filters []WasmFilter `json:"filters,omitempty"`
	// Weight orders the filters of several WasmDeployments on a workload: the higher come first.
	// +kubebuilder:validation:Minimum=0
	Weight uint32 `json:"weight,omitempty"`
}

// WasmFilter is a WebAssembly filter and its configuration.
//
// +kubebuilder:validation:XValidation:rule="[has(self.localPathSource), has(self.httpUriSource), has(self.wasmImageSource)].filter(x, x).size() == 1",message="say where the filter comes from: set exactly one of localPathSource, httpUriSource and wasmImageSource"
// +kubebuilder:validation:XValidation:rule="!(has(self.staticFilterConfig) && has(self.dynamicFilterConfig))",message="set staticFilterConfig or dynamicFilterConfig, not both"
// +kubebuilder:validation:XValidation:rule="has(self.wasmImageSource) || (has(self.rootId) && size(self.rootId) > 0)",message="rootId is needed unless the filter comes from an image: it names the entry point in the module"
type WasmFilter struct {
	// LocalPathSource is a file in the proxy's container.
	LocalPathSource string `json:"localPathSource,omitempty"`
	// HttpUriSource is a file on a server.
	HttpUriSource *WasmHttpSource `json:"httpUriSource,omitempty"`
	// WasmImageSource is an OCI image.
	WasmImageSource *WasmImageSource `json:"wasmImageSource,omitempty"`
	// StaticFilterConfig is the filter's configuration: a message with its type in "@type".
	// +kubebuilder:pruning:PreserveUnknownFields
	StaticFilterConfig *runtime.RawExtension `json:"staticFilterConfig,omitempty"`
	// DynamicFilterConfig names a configuration that is fetched. It is not available.
	DynamicFilterConfig string `json:"dynamicFilterConfig,omitempty"`
	// RootId names the entry point in the module; images bring their own.
	// +kubebuilder:validation:MaxLength=1024
	RootId string `json:"rootId,omitempty"`
	// VmId lets filters that have the same share a virtual machine.
	VmId string `json:"vmId,omitempty"`
	// FilterContext says in which proxies, and in which direction, the filter works.
	FilterContext FilterContext `json:"filterContext,omitempty"`
	// InsertBeforeFilter is the proxy's filter before which this one stands; envoy.router if omitted.
	InsertBeforeFilter string `json:"insertBeforeFilter,omitempty"`
}

// WasmHttpSource is a file on a server.
//
// +kubebuilder:validation:XValidation:rule="has(self.uri) && has(self.sha)",message="uri and sha are both needed: proxies run a fetched file only if its SHA-256 is this one"
type WasmHttpSource struct {
	// Uri of the file.
	Uri string `json:"uri,omitempty"`
	// Sha is the file's SHA-256, in hexadecimal digits.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-fA-F]{64}$')",message="must be a SHA-256 as 64 hexadecimal digits; sha256sum prints it"
	Sha string `json:"sha,omitempty"`
}

// WasmImageSource is an OCI image.
//
// +kubebuilder:validation:XValidation:rule="has(self.wasmImageTag) && size(self.wasmImageTag) > 0",message="wasmImageTag is needed: registry, image and tag, for example registry.example.com/team/filter:v1"
type WasmImageSource struct {
	// WasmImageTag is the image with its registry and tag.
	// +kubebuilder:validation:MaxLength=2048
	WasmImageTag string `json:"wasmImageTag,omitempty"`
}

// FilterContext says in which proxies, and in which direction, a filter works.
//
// +kubebuilder:validation:Enum=ANY;SIDECAR_INBOUND;SIDECAR_OUTBOUND;GATEWAY
type FilterContext string

const (
	// FilterContextAny is everywhere. This is also what an omitted value means.
	FilterContextAny FilterContext = "ANY"
	// FilterContextSidecarInbound is what sidecars receive.
	FilterContextSidecarInbound FilterContext = "SIDECAR_INBOUND"
	// FilterContextSidecarOutbound is what sidecars send.
	FilterContextSidecarOutbound FilterContext = "SIDECAR_OUTBOUND"
	// FilterContextGateway is gateways.
	FilterContextGateway FilterContext = "GATEWAY"
)

// WasmWorkloadState is the state of the filters on a workload.
//
// +kubebuilder:validation:Enum=DEPLOYMENT_PENDING;FILTERS_DEPLOYED;DEPLOYMENT_FAILED
type WasmWorkloadState string

const (
	// WasmDeploymentPending: not put in place yet.
	WasmDeploymentPending WasmWorkloadState = "DEPLOYMENT_PENDING"
	// WasmFiltersDeployed: in place.
	WasmFiltersDeployed WasmWorkloadState = "FILTERS_DEPLOYED"
	// WasmDeploymentFailed: could not be put in place.
	WasmDeploymentFailed WasmWorkloadState = "DEPLOYMENT_FAILED"
)

// WasmDeploymentStatus is the observed state of a WasmDeployment.
type WasmDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Error says why it is not in force, and what to do.
	Error string `json:"error,omitempty"`
	// WorkloadStates is the state of the filters on each workload, by key name.namespace.cluster.
	WorkloadStates map[string]WasmWorkloadState `json:"workloadStates,omitempty"`
}

// WasmDeploymentList is a list of WasmDeployments.
//
// +kubebuilder:object:root=true
type WasmDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []WasmDeployment `json:"items"`
}

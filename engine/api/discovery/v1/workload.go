package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// Workload is a Deployment, DaemonSet or StatefulSet, or what else owns pods, whose pods are part of a mesh.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workloads,scope=Namespaced,shortName=mwl,categories={meshctl,mesh-discovery}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.kubernetes.controller.clusterName`,description="Where it runs"
// +kubebuilder:printcolumn:name="Workload-Namespace",type=string,JSONPath=`.spec.kubernetes.controller.namespace`,description="Its namespace there"
// +kubebuilder:printcolumn:name="Service-Account",type=string,JSONPath=`.spec.kubernetes.serviceAccountName`,description="The identity of its pods"
// +kubebuilder:printcolumn:name="Mesh",type=string,JSONPath=`.spec.mesh.name`,description="The Mesh that it is part of"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what was found.
	Spec WorkloadSpec `json:"spec,omitempty,omitzero"`
	// Status is what policies made of it.
	Status WorkloadStatus `json:"status,omitempty,omitzero"`
}

// WorkloadSpec is what was found of a workload.
type WorkloadSpec struct {
	// Kubernetes is the controller of the pods.
	Kubernetes *KubernetesWorkload `json:"kubernetes,omitempty"`
	// Mesh that the pods are part of.
	Mesh commonv1.ObjectRef `json:"mesh,omitempty,omitzero"`
	// AppMesh is what AWS App Mesh knows of the workload.
	AppMesh *AppMeshWorkload `json:"appMesh,omitempty"`
}

// Values of KubernetesWorkload.ProxyDNS.
const (
	ProxyDNSOn  = "ON"
	ProxyDNSOff = "OFF"
)

// KubernetesWorkload is a controller of pods.
type KubernetesWorkload struct {
	// Controller is the Deployment, DaemonSet or StatefulSet, or what else owns the pods.
	Controller commonv1.ClusterObjectRef `json:"controller,omitempty,omitzero"`
	// ControllerKind is the kind of the controller if it is none of these: Rollout, Job, or Pod if nothing owns the pod.
	ControllerKind string `json:"controllerKind,omitempty"`
	// PodLabels are the labels of its pod template; of another kind, those that all of its pods have.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// OtherPodLabels are those of pods that differ from PodLabels in a label by which a Service of the namespace selects pods, such
	// as the one of a database's primary. Of each, only such labels are listed, and each combination once.
	OtherPodLabels []map[string]string `json:"otherPodLabels,omitempty"`
	// Gateway: its pods are proxies by themselves, and not beside an application. Not part of Gloo Mesh 1.x.
	Gateway bool `json:"gateway,omitempty"`
	// DataPlaneMode is how its pods take part in the mesh; omitted if each has a proxy of its own. Not part of Gloo Mesh 1.x.
	DataPlaneMode DataPlaneMode `json:"dataPlaneMode,omitempty"`
	// Capture is which connections that its pods open their proxies see; omitted if they see all. Not part of Gloo Mesh 1.x.
	Capture *Capture `json:"capture,omitempty"`
	// ProxyDNS is whether the proxies of its pods answer DNS for the hosts that the mesh knows, where the pods themselves say it: ON or
	// OFF. Omitted if it is as the settings of the mesh say. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:Enum=ON;OFF
	ProxyDNS string `json:"proxyDns,omitempty"`
	// ServiceAccountName is that of its pod template; empty means default.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// AppMeshWorkload is a virtual node of AWS App Mesh.
type AppMeshWorkload struct {
	// VirtualNodeName is its name in App Mesh.
	VirtualNodeName string `json:"virtualNodeName,omitempty"`
	// Ports on which it listens.
	Ports []AppMeshPort `json:"ports,omitempty"`
}

// AppMeshPort is a port of a virtual node.
type AppMeshPort struct {
	// Port number.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// Protocol spoken on it.
	Protocol string `json:"protocol,omitempty"`
}

// WorkloadStatus is what policies made of a workload.
type WorkloadStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// AppliedAccessLogRecords are the AccessLogRecords in force.
	AppliedAccessLogRecords []AppliedAccessLogRecord `json:"appliedAccessLogRecords,omitempty"`
	// AppliedWasmDeployments are the WasmDeployments in force.
	AppliedWasmDeployments []AppliedWasmDeployment `json:"appliedWasmDeployments,omitempty"`
	// ServiceDependencies say what the workload is known to call.
	ServiceDependencies *WorkloadServiceDependencies `json:"serviceDependencies,omitempty"`
}

// AppliedAccessLogRecord is an AccessLogRecord in force.
type AppliedAccessLogRecord struct {
	// Ref is the AccessLogRecord.
	Ref commonv1.ObjectRef `json:"ref,omitempty,omitzero"`
	// ClusterName is the registered cluster in which it is; omitted for one of the management cluster. Not part of Gloo Mesh 1.x.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedGeneration is the generation of its spec.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Errors met in applying it.
	Errors []string `json:"errors,omitempty"`
}

// AppliedWasmDeployment is a WasmDeployment in force.
type AppliedWasmDeployment struct {
	// Ref is the WasmDeployment.
	Ref commonv1.ObjectRef `json:"ref,omitempty,omitzero"`
	// ObservedGeneration is the generation of its spec.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Errors met in applying it.
	Errors []string `json:"errors,omitempty"`
}

// WorkloadServiceDependencies say what a workload is known to call.
type WorkloadServiceDependencies struct {
	// AppliedServiceDependencies are the ServiceDependencies that say so.
	AppliedServiceDependencies []AppliedServiceDependency `json:"appliedServiceDependencies,omitempty"`
	// DestinationHostnames are the host names of what it calls.
	DestinationHostnames []string `json:"destinationHostnames,omitempty"`
}

// AppliedServiceDependency is a ServiceDependency in force.
type AppliedServiceDependency struct {
	// ServiceDependencyRef is the ServiceDependency.
	ServiceDependencyRef commonv1.ObjectRef `json:"serviceDependencyRef,omitempty,omitzero"`
	// ClusterName is the registered cluster in which it is; omitted for one of the management cluster. Not part of Gloo Mesh 1.x.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedGeneration is the generation of its spec.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// WorkloadList is a list of Workloads.
//
// +kubebuilder:object:root=true
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Workload `json:"items"`
}

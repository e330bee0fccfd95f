package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// PodBounceDirective lists pods that must restart to pick up a new certificate, in the order in which they are to do so.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=podbouncedirectives,scope=Namespaced,shortName=pbd,categories={meshctl,mesh-certs}
// +kubebuilder:printcolumn:name="First-Namespace",type=string,JSONPath=`.spec.podsToBounce[0].namespace`,description="Where pods restart first"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodBounceDirective struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec lists the pods.
	Spec PodBounceDirectiveSpec `json:"spec,omitempty,omitzero"`
	// Status says which have been restarted.
	Status PodBounceDirectiveStatus `json:"status,omitempty,omitzero"`
}

// PodBounceDirectiveSpec lists the pods to restart.
//
// Only pods of the mesh are restarted, and of these only those that hold up a new certificate. They are not deleted: their
// controller replaces them, as after `kubectl rollout restart`.
type PodBounceDirectiveSpec struct {
	// PodsToBounce are restarted one entry after the other. A pod belongs to the first entry that selects it; one that none
	// selects is not restarted.
	// +kubebuilder:validation:MaxItems=10000
	PodsToBounce []PodSelector `json:"podsToBounce,omitempty"`
}

// PodSelector selects pods of one namespace to restart together.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespace) && size(self.namespace) > 0",message="namespace is needed; without labels all pods of the mesh in it are restarted"
type PodSelector struct {
	// Namespace of the pods.
	Namespace string `json:"namespace,omitempty"`
	// Labels that the pods must all have; omitted for all pods of the mesh in the namespace.
	Labels map[string]string `json:"labels,omitempty"`
	// WaitForReplicas is how many new pods must be ready before the next entry is taken up; 0 does not wait.
	// +kubebuilder:validation:Minimum=0
	WaitForReplicas uint32 `json:"waitForReplicas,omitempty"`
	// RootCertSync holds the restart back until the new root has reached the pods' namespace.
	RootCertSync *RootCertSync `json:"rootCertSync,omitempty"`
}

// RootCertSync names a Secret's value and the ConfigMap's value that must become equal to it.
type RootCertSync struct {
	// SecretRef is the Secret that has the root.
	SecretRef commonv1.ObjectRef `json:"secretRef,omitempty,omitzero"`
	// SecretKey is the key in the Secret.
	SecretKey string `json:"secretKey,omitempty"`
	// ConfigMapRef is the ConfigMap through which pods learn the root.
	ConfigMapRef commonv1.ObjectRef `json:"configMapRef,omitempty,omitzero"`
	// ConfigMapKey is the key in the ConfigMap.
	ConfigMapKey string `json:"configMapKey,omitempty"`
}

// PodBounceDirectiveStatus is written by the agent.
type PodBounceDirectiveStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// PodsBounced has an entry for each entry of the spec that has been dealt with, in the same order.
	PodsBounced []BouncedPodSet `json:"podsBounced,omitempty"`
	// Rolling are the controllers that the agent restarts, until their rollout is complete. It is how an agent that starts
	// knows them: marks on a controller are written by whoever may edit it. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=1000
	Rolling []RollingController `json:"rolling,omitempty"`
}

// RollingController is a controller whose pods are being replaced.
type RollingController struct {
	// Kind is Deployment, DaemonSet or StatefulSet.
	Kind string `json:"kind"`
	// Namespace of the controller.
	Namespace string `json:"namespace"`
	// Name of the controller.
	Name string `json:"name"`
	// UID of the controller: another one of the same name is not being restarted.
	UID types.UID `json:"uid"`
	// Wave is with which others it restarts; the next wave begins when this one is complete.
	Wave string `json:"wave,omitempty"`
	// Cause is what it restarts for, as in the annotation of its template.
	Cause string `json:"cause,omitempty"`
}

// BouncedPodSet are the pods restarted for one entry of the spec.
type BouncedPodSet struct {
	// BouncedPods are the names of the first pods that were restarted.
	BouncedPods []string `json:"bouncedPods,omitempty"`
}

// PodBounceDirectiveList is a list of PodBounceDirectives.
//
// +kubebuilder:object:root=true
type PodBounceDirectiveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []PodBounceDirective `json:"items"`
}

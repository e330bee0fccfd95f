package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DefaultClusterDomain is the DNS domain of a cluster that does not say otherwise.
const DefaultClusterDomain = "cluster.local"

// KubernetesCluster is a registered cluster. Its name is the cluster name that selectors and references use.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=kubernetesclusters,scope=Namespaced,shortName=kcluster,categories={meshctl,mesh-clusters}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.status[0].state`,description="Whether it can be worked with"
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.secretName`,description="Its kubeconfig"
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.clusterDomain`,description="Its DNS domain; empty means cluster.local"
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.status.connection.state`,priority=1,description="How far the connection of its agent is; empty if it has none"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.status[0].message`,priority=1,description="Why it is in its state"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a cluster becomes a label value on everything that is found or written there, so it may have 63 characters at most; choose a shorter one"
type KubernetesCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster is reached.
	Spec KubernetesClusterSpec `json:"spec,omitempty,omitzero"`
	// Status says whether it could be.
	Status KubernetesClusterStatus `json:"status,omitempty,omitzero"`
}

// KubernetesClusterSpec says how a cluster is reached.
type KubernetesClusterSpec struct {
	// SecretName is the Secret with the cluster's kubeconfig, in the same namespace. A cluster that connects by relay
	// needs none.
	SecretName string `json:"secretName,omitempty"`
	// ClusterDomain is the cluster's DNS domain; cluster.local if omitted.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case without a dot at either end, for example cluster.local"
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// ProviderInfo is what is known of the cluster's provider.
	ProviderInfo *ProviderInfo `json:"providerInfo,omitempty"`
	// Telemetry says how meshctl gets what the proxies of the cluster count. If omitted, the agent of a cluster that
	// connects by relay reads them, and meshctl serve those of other clusters. Not part of Gloo Mesh 1.x.
	Telemetry *Telemetry `json:"telemetry,omitempty"`
}

// ProviderInfo is what is known of a cluster's provider.
type ProviderInfo struct {
	// Eks is Amazon's.
	Eks *EksInfo `json:"eks,omitempty"`
}

// EksInfo identifies a cluster of Amazon EKS.
type EksInfo struct {
	// Arn is the cluster's AWS resource name.
	Arn string `json:"arn,omitempty"`
	// AccountId is the AWS account that owns it.
	AccountId string `json:"accountId,omitempty"`
	// Region of AWS.
	Region string `json:"region,omitempty"`
	// Name of the cluster in AWS.
	Name string `json:"name,omitempty"`
}

// ClusterState says whether a cluster can be worked with.
//
// +kubebuilder:validation:Enum=PENDING;PROCESSING;INVALID;FAILED;ACCEPTED
type ClusterState string

const (
	// ClusterStatePending: not looked at yet.
	ClusterStatePending ClusterState = "PENDING"
	// ClusterStateProcessing: being connected to.
	ClusterStateProcessing ClusterState = "PROCESSING"
	// ClusterStateInvalid: the registration is wrong.
	ClusterStateInvalid ClusterState = "INVALID"
	// ClusterStateFailed: the cluster cannot be reached, or refuses.
	ClusterStateFailed ClusterState = "FAILED"
	// ClusterStateAccepted: connected.
	ClusterStateAccepted ClusterState = "ACCEPTED"
)

// KubernetesClusterStatus says whether a cluster could be reached, and what may be done there.
type KubernetesClusterStatus struct {
	// Status has an entry for each component that works with the cluster.
	Status []ClusterStatus `json:"status,omitempty"`
	// Namespace is where on the cluster the agent and the service account live.
	Namespace string `json:"namespace,omitempty"`
	// PolicyRules are the permissions granted on the cluster.
	PolicyRules []PolicyRule `json:"policyRules,omitempty"`
	// Server is the meshctl server that wrote this status last.
	Server *Server `json:"server,omitempty"`
	// Connection is that of the cluster's agent. A cluster whose API server meshctl dials has none.
	Connection *Connection `json:"connection,omitempty"`
	// ObservedGeneration is the generation of the spec that Conditions are about. Not part of Gloo Mesh 1.x.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions say the same in the words that all tools know: Ready always; Reconciling and Stalled
	// if they are True. Not part of Gloo Mesh 1.x.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Server says with what a meshctl server runs, as far as that changes what follows from the objects: commands that
// translate for themselves use the same.
type Server struct {
	// Version of meshctl.
	Version string `json:"version,omitempty"`
	// DisallowIntersectingConfig is its flag of that name: policies with which hand-written objects intersect are
	// refused.
	DisallowIntersectingConfig bool `json:"disallowIntersectingConfig,omitempty"`
	// KeptNamespaces are its own, and those of the management cluster in which something was in force before a version that
	// asks the Settings for them (policyNamespaces). Earlier versions do not say any.
	// +kubebuilder:validation:MaxItems=10000
	KeptNamespaces []string `json:"keptNamespaces,omitempty"`
}

// ClusterStatus is what one component says of a cluster.
type ClusterStatus struct {
	// State of the cluster.
	State ClusterState `json:"state,omitempty"`
	// Message says why, and what to do: all of Reasons, joined.
	Message string `json:"message,omitempty"`
	// Reasons say why, and what to do, for programs. Earlier versions say none.
	// +kubebuilder:validation:MaxItems=16
	Reasons []ClusterReason `json:"reasons,omitempty"`
	// ObservedGeneration is the generation of the spec that this is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Credential is the fingerprint of the stored credential that this is about.
	Credential string `json:"credential,omitempty"`
	// ProcessingTime is when the state last changed.
	ProcessingTime *metav1.Time `json:"processingTime,omitempty"`
	// Owner is the component that says so.
	Owner string `json:"owner,omitempty"`
}

// ClusterReason is why a cluster is in its state.
type ClusterReason struct {
	// Code is a word for programs.
	Code string `json:"code"`
	// Cause is why a cluster cannot be read, as a word for programs, where code is ClusterFrozen: CredentialRefused,
	// ServerUnanswered, NameUnresolved and others. Where code is ClusterLeaving, it is what is waited for: LeavingObjects,
	// LeavingMeshes, LeavingAgent, LeavingStays, LeavingDone or why the cluster cannot be read.
	Cause string `json:"cause,omitempty"`
	// What is the case. The wording may change with each version.
	What string `json:"what,omitempty"`
	// Hint is the next step.
	Hint string `json:"hint,omitempty"`
	// ReleaseCode is what `meshctl cluster release --code` takes, while a deletion is held.
	ReleaseCode string `json:"releaseCode,omitempty"`
}

// PolicyRule is a set of permissions, as in Kubernetes RBAC.
type PolicyRule struct {
	// Verbs that are allowed.
	Verbs []string `json:"verbs,omitempty"`
	// ApiGroups of the resources.
	ApiGroups []string `json:"apiGroups,omitempty"`
	// Resources that the rule is about.
	Resources []string `json:"resources,omitempty"`
	// ResourceNames that the rule is limited to.
	ResourceNames []string `json:"resourceNames,omitempty"`
	// NonResourceUrls that the rule is about.
	NonResourceUrls []string `json:"nonResourceUrls,omitempty"`
}

// KubernetesClusterList is a list of KubernetesClusters.
//
// +kubebuilder:object:root=true
type KubernetesClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []KubernetesCluster `json:"items"`
}

package v1

// DestinationSelector selects Destinations of kind kubeService. A Destination is selected if either part matches it; an
// element with neither part selects nothing. A list of selectors is a disjunction, and an empty list selects everything.
type DestinationSelector struct {
	// KubeServiceMatcher selects Services by labels, namespaces and clusters.
	KubeServiceMatcher *KubeServiceMatcher `json:"kubeServiceMatcher,omitempty"`
	// KubeServiceRefs selects Services by exact reference.
	KubeServiceRefs *KubeServiceRefs `json:"kubeServiceRefs,omitempty"`
}

// KubeServiceMatcher selects Services; all parts that are given must match. In an RBAC Role nothing is implied: there
// "*" has to be written for "any".
type KubeServiceMatcher struct {
	// Labels that a Service must all have; omitted means any.
	Labels map[string]string `json:"labels,omitempty"`
	// Namespaces that a Service may be in; omitted means any.
	Namespaces []string `json:"namespaces,omitempty"`
	// Clusters (registered names) that a Service may be in; omitted means any.
	Clusters []string `json:"clusters,omitempty"`
}

// KubeServiceRefs selects Services by name.
type KubeServiceRefs struct {
	// Services are the exact references. Each needs name, namespace and clusterName.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:XValidation:rule=`has(self.name) && self.name != "" && has(self.namespace) && self.namespace != "" && has(self.clusterName) && self.clusterName != ""`,message="name, namespace and clusterName are all needed to refer to a Service; to select by only some of them use kubeServiceMatcher"
	Services []ClusterObjectRef `json:"services,omitempty"`
}

// WorkloadSelector selects Workloads. A list of selectors is a disjunction; an empty list, and an element without
// kubeWorkloadMatcher, selects everything.
type WorkloadSelector struct {
	// KubeWorkloadMatcher selects Kubernetes workloads by pod labels, namespaces and clusters.
	KubeWorkloadMatcher *KubeWorkloadMatcher `json:"kubeWorkloadMatcher,omitempty"`
}

// KubeWorkloadMatcher selects Kubernetes workloads; all parts that are given must match. In an RBAC Role nothing is
// implied: there "*" has to be written for "any".
type KubeWorkloadMatcher struct {
	// Labels that the workload's pod template must all have; omitted means any.
	Labels map[string]string `json:"labels,omitempty"`
	// Namespaces that the workload may be in; omitted means any.
	Namespaces []string `json:"namespaces,omitempty"`
	// Clusters (registered names) that the workload may be in; omitted means any.
	Clusters []string `json:"clusters,omitempty"`
}

// IdentitySelector selects callers by their identity. If both parts are given, callers that match either are selected;
// but namespaces that are given without clusters limit the service accounts beside them, and an empty kubeIdentityMatcher
// beside service accounts adds nobody.
// A list of selectors is a disjunction; an empty list selects every caller.
type IdentitySelector struct {
	// KubeIdentityMatcher selects all identities of namespaces and clusters.
	KubeIdentityMatcher *KubeIdentityMatcher `json:"kubeIdentityMatcher,omitempty"`
	// KubeServiceAccountRefs selects identities by service account.
	KubeServiceAccountRefs *KubeServiceAccountRefs `json:"kubeServiceAccountRefs,omitempty"`
}

// KubeIdentityMatcher selects identities by where they live; all parts that are given must match.
type KubeIdentityMatcher struct {
	// Namespaces of the callers; omitted means any.
	Namespaces []string `json:"namespaces,omitempty"`
	// Clusters (registered names) of the callers; omitted means any.
	Clusters []string `json:"clusters,omitempty"`
}

// KubeServiceAccountRefs selects identities by service account.
type KubeServiceAccountRefs struct {
	// ServiceAccounts are the references. An omitted field of a reference is a wildcard.
	ServiceAccounts []ClusterObjectRef `json:"serviceAccounts,omitempty"`
}

// IngressGatewaySelector selects the Destinations that serve as a mesh's ingress for traffic from other meshes.
type IngressGatewaySelector struct {
	// DestinationSelectors select the gateway Services. Omitted means the mesh's own default: for Istio the Services
	// whose selector has istio: eastwestgateway or istio: ingressgateway.
	// +kubebuilder:validation:MaxItems=32
	DestinationSelectors []DestinationSelector `json:"destinationSelectors,omitempty"`
	// PortName is the name of the gateway Service's port that takes mTLS traffic; "tls" if omitted.
	PortName string `json:"portName,omitempty"`
}

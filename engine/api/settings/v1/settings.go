package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Settings are the defaults of the management plane. Without the object, every default holds.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=settings,scope=Namespaced,shortName=gmsettings,categories={meshctl,mesh-settings}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Istio-TLS",type=string,JSONPath=`.spec.mtls.istio.tlsMode`,description="Default TLS mode"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why they are not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Settings struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec SettingsSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status SettingsStatus `json:"status,omitempty,omitzero"`
}

// SettingsSpec are the defaults of the management plane.
type SettingsSpec struct {
	// Mtls is the default TLS mode of requests.
	Mtls *networkingv1.MTLS `json:"mtls,omitempty"`
	// NetworkingExtensionServers may change the translated objects; they are asked in this order, and later ones win.
	// +kubebuilder:validation:MaxItems=32
	NetworkingExtensionServers []commonv1.GrpcServer `json:"networkingExtensionServers,omitempty"`
	// Discovery sets how meshes are found.
	Discovery *DiscoverySettings `json:"discovery,omitempty"`
	// Federation sets when to warn of what VirtualMeshes add to proxies, and the limits. It is not part of Gloo Mesh 1.x.
	Federation *FederationSettings `json:"federation,omitempty"`
	// PolicyNamespaces are the namespaces of the management cluster, beside the management plane's own, in which policies,
	// VirtualMeshes, VirtualDestinations and ServiceDependencies count; * for all. Elsewhere they are reported, and have no
	// effect. If omitted, only the management plane's own counts, and those in which something was in force when this was
	// introduced. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	PolicyNamespaces []string `json:"policyNamespaces,omitempty"`
	// WorkloadClusterPolicies are the namespaces of registered clusters in which TrafficPolicies, AccessPolicies,
	// VirtualDestinations and ServiceDependencies count, beside those of the management cluster. Such an object is about the
	// services and the callers of its own namespace in its own cluster, whatever its selectors say; one of the management cluster
	// that decides about the same, or has the same host name, has precedence. AccessLogRecords count there as well, for the
	// workloads of their own namespace in their own cluster. None counts if omitted. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=1000
	WorkloadClusterPolicies []WorkloadClusterPolicies `json:"workloadClusterPolicies,omitempty"`
	// Withdrawals bound what is deleted in clusters without an edit that explains it. It is not part of Gloo Mesh 1.x.
	Withdrawals *WithdrawalSettings `json:"withdrawals,omitempty"`
	// Trust bounds what holds up the exchange of a root. It is not part of Gloo Mesh 1.x.
	Trust *TrustSettings `json:"trust,omitempty"`
	// Relay has clusters connect to the management plane instead of the other way round.
	Relay *RelaySettings `json:"relay,omitempty"`
}

// WorkloadClusterPolicies are namespaces of registered clusters in which policies count.
type WorkloadClusterPolicies struct {
	// Clusters are the names of registered clusters; * for all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	Clusters []string `json:"clusters"`
	// Namespaces in those clusters; * for all. In each, the 100 oldest policies of a kind count.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	Namespaces []string `json:"namespaces"`
}

// WithdrawalSettings bound what is deleted in clusters without an edit that explains it. What a user deletes goes at once.
type WithdrawalSettings struct {
	// GracePeriod is how long objects stay after what they followed from has gone, such as a Service or a control plane,
	// which may come back. 5m if omitted.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="must be between 0s and 24h"
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`
	// MaxPercent is how much of what meshctl has in a cluster may go in a grace period. If more would, or what denies
	// requests by default, nothing is deleted there until `meshctl cluster release` says so. 50 if omitted; 100 for no
	// bound.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxPercent *int32 `json:"maxPercent,omitempty"`
}

// TrustSettings bound what holds up the exchange of a root.
type TrustSettings struct {
	// NamespaceTimeout is how long the exchange of a root waits for a namespace of a member, whose workloads could have what
	// their control plane gives them, and do not have it: they were not restarted, or they are no workloads. Then it goes on
	// without them, and they lose their connections. The VirtualMesh says for whom it waits and until when, and names whom it
	// has left out. 48h, twice the
	// life of Istio's certificates, if omitted. The namespace of a control plane is always waited for.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be between 1m and 8760h"
	NamespaceTimeout *metav1.Duration `json:"namespaceTimeout,omitempty"`
}

// DiscoverySettings set how meshes are found.
type DiscoverySettings struct {
	// Istio sets how Istio is found.
	Istio *IstioDiscovery `json:"istio,omitempty"`
	// ControlPlanes are namespaces in which every Deployment that looks like the control plane of a mesh is one. Others
	// need evidence that an editor of their namespace cannot write: the webhook configuration of Istio's injector, or the
	// MeshConfig of Open Service Mesh. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=1000
	ControlPlanes []ClusterNamespace `json:"controlPlanes,omitempty"`
	// Limits bound what one namespace adds to the management cluster; the defaults are far above real use. Not part of Gloo
	// Mesh 1.x.
	Limits *DiscoveryLimits `json:"limits,omitempty"`
}

// DiscoveryLimits bound what is discovered in each namespace of each cluster, so that nobody who may create objects in one
// namespace fills the management cluster. Beyond a limit, those with the latest creationTimestamp are left out: no policy
// applies to them. What was discovered before stays, also when a limit is lowered.
type DiscoveryLimits struct {
	// ServicesPerNamespace is the highest number of Destinations; 10000, twice what Kubernetes supports, if omitted or 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	ServicesPerNamespace uint32 `json:"servicesPerNamespace,omitempty"`
	// WorkloadsPerNamespace is the highest number of Workloads; 10000, five times the Deployments that Kubernetes supports,
	// if omitted or 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	WorkloadsPerNamespace uint32 `json:"workloadsPerNamespace,omitempty"`
}

// IstioDiscovery sets how Istio is found.
type IstioDiscovery struct {
	// IngressGatewayDetectors say what an ingress gateway is, by registered cluster or * for all. Deprecated: use the
	// VirtualMesh's federation.eastWestIngressGatewaySelectors.
	IngressGatewayDetectors map[string]IngressGatewayDetector `json:"ingressGatewayDetectors,omitempty"`
	// GatewayNamespaces are namespaces, beside that of the control plane, whose Services are gateways if they are labelled so.
	// Other clusters send their requests there, and globalAccessPolicy leaves them open. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=1000
	GatewayNamespaces []ClusterNamespace `json:"gatewayNamespaces,omitempty"`
}

// ClusterNamespace is a namespace of a cluster.
type ClusterNamespace struct {
	// ClusterName is the name of a registered cluster; omitted or * means each of them.
	ClusterName string `json:"clusterName,omitempty"`
	// Namespace in that cluster.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
}

// IngressGatewayDetector says what an ingress gateway is. Deprecated.
type IngressGatewayDetector struct {
	// GatewayWorkloadLabels of its pods; istio: ingressgateway if omitted.
	GatewayWorkloadLabels map[string]string `json:"gatewayWorkloadLabels,omitempty"`
	// GatewayTlsPortName is the name of the port that takes mTLS traffic; tls if omitted.
	GatewayTlsPortName string `json:"gatewayTlsPortName,omitempty"`
}

// FederationSettings set when to warn of what VirtualMeshes add to proxies, and what they may add at most: every proxy of a
// mesh receives all services that are federated to the mesh, and needs memory for each. VirtualMesh.status.proxyLoads has
// the present numbers.
type FederationSettings struct {
	// WarnServiceEntriesPerProxy is how many services of other meshes a proxy may receive without a warning on the
	// VirtualMesh; no warning if omitted.
	WarnServiceEntriesPerProxy *uint32 `json:"warnServiceEntriesPerProxy,omitempty"`
	// WarnEndpointsPerProxy is how many endpoints of such services a proxy may receive without a warning on the
	// VirtualMesh; no warning if omitted.
	WarnEndpointsPerProxy *uint32 `json:"warnEndpointsPerProxy,omitempty"`
	// Limits bound what one namespace or cluster adds to the others; the defaults are far above real use.
	Limits *FederationLimits `json:"limits,omitempty"`
}

// FederationLimits bound what VirtualMeshes federate. Beyond a limit, services that are federated keep their place, and of
// the others those with the latest creationTimestamp are left out. What one namespace adds takes no place from another: at
// the limit of a cluster, the places that are left go to the namespaces with the fewest federated services. A limit that is
// lowered holds at once, and one that is raised lets in at once what was left out.
type FederationLimits struct {
	// ServicesPerNamespace is the highest number of federated services of one namespace of a cluster; 5000, which is what
	// Kubernetes supports, if omitted or 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	ServicesPerNamespace uint32 `json:"servicesPerNamespace,omitempty"`
	// ServicesPerCluster is the highest number of federated services of one cluster; 10000, which is what Kubernetes
	// supports, if omitted or 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	ServicesPerCluster uint32 `json:"servicesPerCluster,omitempty"`
	// EndpointsPerNamespace is the highest number of pods behind the federated services of one namespace of a cluster, each
	// counted once for every service; 30000, ten times the pods that Kubernetes supports, if omitted or 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	EndpointsPerNamespace uint32 `json:"endpointsPerNamespace,omitempty"`
}

// RelaySettings have clusters connect to the management plane.
type RelaySettings struct {
	// Enabled switches the relay on.
	Enabled bool `json:"enabled,omitempty"`
	// Server has no effect; it is there so that older manifests apply.
	Server *commonv1.GrpcServer `json:"server,omitempty"`
}

// SettingsStatus is the observed state of the settings.
type SettingsStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State of the settings.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Errors are the reasons why they are not accepted, and what to do about each.
	Errors []string `json:"errors,omitempty"`
	// Warnings say what in them has no effect. They are not part of Gloo Mesh 1.x.
	Warnings []string `json:"warnings,omitempty"`
	// Conditions say the same in the words that all tools know: Ready, Accepted and InForce always; Conflicted, Reconciling and
	// Stalled if they are True. Not part of Gloo Mesh 1.x.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SettingsList is a list of Settings.
//
// +kubebuilder:object:root=true
type SettingsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Settings `json:"items"`
}

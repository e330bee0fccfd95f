package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Mesh is a service mesh found in a registered cluster: one control plane with all that it controls.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=meshes,scope=Namespaced,shortName=gmesh,categories={meshctl,mesh-discovery}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels.cluster\.discovery\.mesh\.gloo\.solo\.io`,description="Where it is installed"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.*.installation.version`,description="Version of its control plane"
// +kubebuilder:printcolumn:name="VirtualMesh",type=string,JSONPath=`.status.appliedVirtualMesh.ref.name`,description="The VirtualMesh that it is a member of"
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.appliedEastWestIngressGateways[0].destinationRef.name`,priority=1,description="The first gateway through which other meshes reach it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Mesh struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what was found.
	Spec MeshSpec `json:"spec,omitempty,omitzero"`
	// Status is what policies made of it.
	Status MeshStatus `json:"status,omitempty,omitzero"`
}

// MeshSpec is what was found of a mesh.
//
// +kubebuilder:validation:XValidation:rule="[has(self.istio), has(self.awsAppMesh), has(self.linkerd), has(self.consulConnect), has(self.osm)].filter(x, x).size() <= 1",message="a Mesh is of one sort: set only one of istio, awsAppMesh, linkerd, consulConnect and osm"
type MeshSpec struct {
	// Istio mesh.
	Istio *IstioMesh `json:"istio,omitempty"`
	// AwsAppMesh is an AWS App Mesh.
	AwsAppMesh *AwsAppMesh `json:"awsAppMesh,omitempty"`
	// Linkerd mesh.
	Linkerd *LinkerdMesh `json:"linkerd,omitempty"`
	// ConsulConnect mesh.
	ConsulConnect *ConsulConnectMesh `json:"consulConnect,omitempty"`
	// Osm is an Open Service Mesh.
	Osm *OSMMesh `json:"osm,omitempty"`
	// AgentInfo is read and not written: what is there is of Gloo Mesh 1.x, which took any pod with a label for the agent.
	// `meshctl cluster list` and the KubernetesCluster say where the agent is.
	AgentInfo *AgentInfo `json:"agentInfo,omitempty"`
}

// AnyTrustDomain among peerTrustDomains means any.
const AnyTrustDomain = "*"

// IstioMesh is an istiod and what it controls.
type IstioMesh struct {
	// Installation is where the control plane runs.
	Installation MeshInstallation `json:"installation,omitempty,omitzero"`
	// RootNamespace is where configuration holds for the whole mesh; empty means that of the installation. It is not part
	// of Gloo Mesh 1.x.
	RootNamespace string `json:"rootNamespace,omitempty"`
	// TrustDomain is the SPIFFE trust domain; empty means cluster.local.
	TrustDomain string `json:"trustDomain,omitempty"`
	// TrustDomainAliases are trust domains whose identities the mesh takes for the same as its own. It is not part of
	// Gloo Mesh 1.x.
	TrustDomainAliases []string `json:"trustDomainAliases,omitempty"`
	// PeerTrustDomains are further trust domains whose callers the mesh accepts, and knows from its own; * for any. It is
	// not part of Gloo Mesh 1.x.
	PeerTrustDomains []string `json:"peerTrustDomains,omitempty"`
	// IstiodServiceAccount is the service account of istiod, which is the identity in the CA certificate issued to it.
	IstiodServiceAccount string `json:"istiodServiceAccount,omitempty"`
	// IngressGateways are the gateways of the mesh. Deprecated: they are now chosen by the VirtualMesh.
	IngressGateways []IstioIngressGateway `json:"ingressGateways,omitempty"`
	// SmartDnsProxyingEnabled says that sidecars answer DNS for any host name that the mesh knows.
	SmartDnsProxyingEnabled bool `json:"smartDnsProxyingEnabled,omitempty"`
	// DefaultExportTo says who sees objects that have no exportTo; omitted if everybody does. It is not part of Gloo Mesh 1.x.
	DefaultExportTo *IstioExportTo `json:"defaultExportTo,omitempty"`
	// PathNormalization is what proxies do to the path of a request before they compare it: NONE, BASE, MERGE_SLASHES or
	// DECODE_AND_MERGE_SLASHES, as in the MeshConfig; empty means Istio's default, which is BASE. It is not part of Gloo
	// Mesh 1.x.
	PathNormalization string `json:"pathNormalization,omitempty"`
	// OutboundTrafficPolicy is what proxies do with requests for hosts that they do not know: REGISTRY_ONLY refuses them,
	// ALLOW_ANY_DYNAMIC_DNS sends them where DNS says; empty means Istio's default, ALLOW_ANY, which sends them on as they are. A
	// Sidecar may say something else for its pods. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxLength=64
	OutboundTrafficPolicy string `json:"outboundTrafficPolicy,omitempty"`
	// DiscoverySelectors select the namespaces of which the control plane reads anything; omitted for all. It is not part of
	// Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=64
	DiscoverySelectors []metav1.LabelSelector `json:"discoverySelectors,omitempty"`
	// IgnoresOwn are those of the namespace of the installation and the root namespace that DiscoverySelectors leave out: what is
	// written there for the whole mesh has no effect. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=2
	IgnoresOwn []string `json:"ignoresOwn,omitempty"`
	// ServiceEntryVisibility is who knows the ServiceEntries in the namespace of the installation: NAMESPACE for its own callers,
	// NONE for nobody; empty means what their exportTo says. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:Enum=NAMESPACE;NONE
	ServiceEntryVisibility string `json:"serviceEntryVisibility,omitempty"`
	// DefaultTrafficPolicy are the parts of defaultTrafficPolicy that are set for all services whose DestinationRule does not set
	// them: connectionPool, outlierDetection. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=2
	DefaultTrafficPolicy []string `json:"defaultTrafficPolicy,omitempty"`
	// EndpointSettings are the settings by which proxies get other endpoints than all that a service has: localityLbSetting, if it
	// distributes, and meshNetworks, if they name any. They are not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=8
	EndpointSettings []string `json:"endpointSettings,omitempty"`
	// PlainByDefault says that callers present no identity unless a DestinationRule says so (enableAutoMtls is false). It is not
	// part of Gloo Mesh 1.x.
	PlainByDefault bool `json:"plainByDefault,omitempty"`
	// Ingress says which Ingresses of Kubernetes the control plane takes; omitted for Istio's defaults. It is not part of Gloo
	// Mesh 1.x.
	Ingress *IstioIngress `json:"ingress,omitempty"`
	// Network is that of the control plane's own pods, as the label topology.istio.io/network of its namespace says it; it is
	// there where a control plane is installed to know the endpoints of other clusters by itself. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxLength=63
	Network string `json:"network,omitempty"`
	// ClusterID is the name by which the control plane knows its own cluster (CLUSTER_ID); empty if it has been given none. One that
	// knows pods of other clusters by itself needs it. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxLength=253
	ClusterID string `json:"clusterId,omitempty"`
	// LocalHosts are the host names of services whose endpoints in other clusters the control plane leaves out (clusterLocal in its
	// serviceSettings); a * at the beginning stands for anything, and the most specific one of these and of SharedHosts decides. It
	// is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=256
	LocalHosts []string `json:"localHosts,omitempty"`
	// SharedHosts are those of which the serviceSettings say that the control plane does not leave them out. It is not part of
	// Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=256
	SharedHosts []string `json:"sharedHosts,omitempty"`
	// WithoutALPN: proxies of callers do not say what they send (PILOT_ENABLE_ALPN_FILTER is false), so that those of pods do not detect
	// requests in what comes with mutual TLS. It is not part of Gloo Mesh 1.x.
	WithoutALPN bool `json:"withoutAlpn,omitempty"`
	// InboundTrafficPolicy is how proxies pass connections on to their applications: LOCALHOST to 127.0.0.1; empty means Istio's
	// default, PASSTHROUGH, which is the address that callers have used. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxLength=64
	InboundTrafficPolicy string `json:"inboundTrafficPolicy,omitempty"`
	// ForeignCA says because of which setting somebody else than the control plane signs the certificates of proxies; empty if it
	// signs them. It is not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxLength=256
	ForeignCA string `json:"foreignCA,omitempty"`
	// Ambient is set if the mesh also has the data plane without sidecars. It is not part of Gloo Mesh 1.x.
	Ambient *IstioAmbient `json:"ambient,omitempty"`
	// RootFingerprints are the SHA-256 fingerprints of the root certificates that proxies of the mesh trust, in lower-case
	// hexadecimal digits, ascending; omitted if they are not known. They are read from the ConfigMap istio-ca-root-cert in
	// the namespace of the control plane. It is not part of Gloo Mesh 1.x.
	RootFingerprints []string `json:"rootFingerprints,omitempty"`
}

// IstioExportTo are the namespaces whose callers see objects that have no exportTo: names, or . for the object's own, *
// for all, and ~ for none. They are those of the MeshConfig (https://istio.io/latest/docs/reference/config/istio.mesh.v1alpha1/).
type IstioExportTo struct {
	// Services are the namespaces that see Services and ServiceEntries: defaultServiceExportTo. Omitted means all.
	Services []string `json:"services,omitempty"`
	// VirtualServices are the namespaces that see VirtualServices: defaultVirtualServiceExportTo. Omitted means all.
	VirtualServices []string `json:"virtualServices,omitempty"`
	// DestinationRules are the namespaces that see DestinationRules: defaultDestinationRuleExportTo. Omitted means all.
	DestinationRules []string `json:"destinationRules,omitempty"`
}

// IstioIngress says which Ingresses of Kubernetes a control plane takes, and at which pods
// (https://istio.io/latest/docs/reference/config/istio.mesh.v1alpha1/).
type IstioIngress struct {
	// Mode is ingressControllerMode: OFF for none, DEFAULT for those without a class, too; empty means STRICT, for those of the
	// class alone.
	// +kubebuilder:validation:Enum=OFF;DEFAULT
	Mode string `json:"mode,omitempty"`
	// Class is ingressClass, the value of the annotation kubernetes.io/ingress.class; empty means istio.
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class,omitempty"`
	// Gateway is the value of the label istio of the pods where they are entered: ingressSelector, or else ingressService; empty
	// means ingressgateway.
	// +kubebuilder:validation:MaxLength=253
	Gateway string `json:"gateway,omitempty"`
}

// IstioIngressGateway is a gateway Service. Deprecated.
type IstioIngressGateway struct {
	// Name of the Service.
	Name string `json:"name,omitempty"`
	// Namespace of the Service.
	Namespace string `json:"namespace,omitempty"`
	// WorkloadLabels of the gateway's pods; istio: ingressgateway if omitted.
	WorkloadLabels map[string]string `json:"workloadLabels,omitempty"`
	// ExternalAddress of the gateway. Deprecated: use dnsName or ip.
	ExternalAddress string `json:"externalAddress,omitempty"`
	// DnsName by which the gateway is reached.
	DnsName string `json:"dnsName,omitempty"`
	// Ip by which the gateway is reached.
	Ip string `json:"ip,omitempty"`
	// ExternalTlsPort is the port that takes mTLS traffic, as seen from outside.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	ExternalTlsPort uint32 `json:"externalTlsPort,omitempty"`
	// TlsContainerPort is the port that takes mTLS traffic, in the pod.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	TlsContainerPort uint32 `json:"tlsContainerPort,omitempty"`
}

// AwsAppMesh is an AWS App Mesh.
type AwsAppMesh struct {
	// AwsName is the mesh's name in AWS.
	AwsName string `json:"awsName,omitempty"`
	// Region of AWS.
	Region string `json:"region,omitempty"`
	// AwsAccountId is the account that owns the mesh.
	AwsAccountId string `json:"awsAccountId,omitempty"`
	// Arn is the mesh's AWS resource name.
	Arn string `json:"arn,omitempty"`
	// Clusters are the registered clusters that have workloads in it.
	Clusters []string `json:"clusters,omitempty"`
}

// LinkerdMesh is a Linkerd control plane.
type LinkerdMesh struct {
	// Installation is where the control plane runs.
	Installation MeshInstallation `json:"installation,omitempty,omitzero"`
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string `json:"clusterDomain,omitempty"`
}

// ConsulConnectMesh is a Consul Connect control plane.
type ConsulConnectMesh struct {
	// Installation is where the control plane runs.
	Installation MeshInstallation `json:"installation,omitempty,omitzero"`
}

// OSMMesh is an Open Service Mesh control plane.
type OSMMesh struct {
	// Installation is where the control plane runs.
	Installation MeshInstallation `json:"installation,omitempty,omitzero"`
	// MeshName is what namespaces of the mesh are labelled with.
	MeshName string `json:"meshName,omitempty"`
	// TrustDomain ends the names in certificates; empty means cluster.local.
	TrustDomain string `json:"trustDomain,omitempty"`
	// PermissiveTrafficPolicyMode says that everybody in the mesh may call everybody, whatever policies say.
	PermissiveTrafficPolicyMode bool `json:"permissiveTrafficPolicyMode,omitempty"`
}

// MeshInstallation is where and what a control plane is.
type MeshInstallation struct {
	// Namespace of the control plane.
	Namespace string `json:"namespace,omitempty"`
	// Cluster is the registered name of the control plane's cluster.
	Cluster string `json:"cluster,omitempty"`
	// PodLabels of the control plane's pods.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// Version is the tag of the control plane's image.
	Version string `json:"version,omitempty"`
	// Region that the control plane runs in.
	Region string `json:"region,omitempty"`
}

// AgentInfo says where the certificate agent runs.
type AgentInfo struct {
	// AgentNamespace is its namespace on the mesh's cluster.
	AgentNamespace string `json:"agentNamespace,omitempty"`
}

// MeshStatus is what policies made of a mesh.
type MeshStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// AppliedVirtualMesh is the VirtualMesh that the mesh is a member of.
	AppliedVirtualMesh *AppliedVirtualMesh `json:"appliedVirtualMesh,omitempty"`
	// AppliedVirtualDestinations are the VirtualDestinations visible in the mesh; those of registered clusters, which callers in one
	// namespace alone see, are not listed.
	AppliedVirtualDestinations []AppliedVirtualDestination `json:"appliedVirtualDestinations,omitempty"`
	// AppliedEastWestIngressGateways are the gateways through which other meshes reach this one or, while there is none, reached
	// it last.
	AppliedEastWestIngressGateways []AppliedEastWestIngressGateway `json:"appliedEastWestIngressGateways,omitempty"`
}

// AppliedVirtualMesh is a VirtualMesh in force.
type AppliedVirtualMesh struct {
	// Ref is the VirtualMesh.
	Ref commonv1.ObjectRef `json:"ref,omitempty,omitzero"`
	// ObservedGeneration is the generation of its spec.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Spec is the last one accepted; it has the fields of a VirtualMesh's spec.
	//
	// It is left out if it has more than 128 KiB.
	// It is a copy of what the API server had already checked, and is not checked again.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec networkingv1.VirtualMeshSpec `json:"spec,omitempty,omitzero"`
}

// AppliedVirtualDestination is a VirtualDestination in force.
type AppliedVirtualDestination struct {
	// Ref is the VirtualDestination.
	Ref commonv1.ObjectRef `json:"ref,omitempty,omitzero"`
	// ObservedGeneration is the generation of its spec.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Errors met in applying it.
	Errors []string `json:"errors,omitempty"`
}

// AppliedEastWestIngressGateway is a gateway through which other meshes reach a mesh.
type AppliedEastWestIngressGateway struct {
	// DestinationRef is the gateway's Destination.
	DestinationRef commonv1.ObjectRef `json:"destinationRef,omitempty,omitzero"`
	// ExternalAddresses are the DNS names or IPs by which it is reached, the first 200 of them.
	ExternalAddresses []string `json:"externalAddresses,omitempty"`
	// DestinationPort is the port as seen from outside.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	DestinationPort uint32 `json:"destinationPort,omitempty"`
	// ContainerPort is the port in the gateway's pods.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	ContainerPort uint32 `json:"containerPort,omitempty"`
}

// MeshList is a list of Meshes.
//
// +kubebuilder:object:root=true
type MeshList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Mesh `json:"items"`
}

// The values of IstioMesh.EndpointSettings.
const (
	EndpointsByLocality = "localityLbSetting"
	EndpointsByNetwork  = "meshNetworks"
)

package v1

import commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"

// KubeService is a Service of a registered cluster.
type KubeService struct {
	// Ref is the Service.
	Ref commonv1.ClusterObjectRef `json:"ref,omitempty,omitzero"`
	// WorkloadSelectorLabels are the Service's selector.
	WorkloadSelectorLabels map[string]string `json:"workloadSelectorLabels,omitempty"`
	// Labels are the Service's labels; kubeServiceMatcher.labels is compared with them.
	Labels map[string]string `json:"labels,omitempty"`
	// Ports of the Service.
	Ports []KubeServicePort `json:"ports,omitempty"`
	// Subsets are the pod labels in which the workloads behind the Service differ, with the values that occur.
	Subsets map[string]KubeServiceSubsets `json:"subsets,omitempty"`
	// Region that the Service's pods run in.
	Region string `json:"region,omitempty"`
	// EndpointSubsets are the ready endpoints.
	EndpointSubsets []EndpointSubset `json:"endpointSubsets,omitempty"`
	// ServiceAccounts are those of the pods that may answer for the Service, sorted; they are in its namespace. Callers in
	// other meshes accept no other identity. Empty if they are not all known: such callers then accept every certificate of
	// a root that they trust. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=32
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// Headless: the Service has no address, so that callers in its cluster resolve its pods. Not part of Gloo Mesh 1.x.
	Headless bool `json:"headless,omitempty"`
	// NodeLocal: only pods on the node of a caller answer (internalTrafficPolicy Local). Not part of Gloo Mesh 1.x.
	NodeLocal bool `json:"nodeLocal,omitempty"`
	// UseWaypoint is the waypoint that labels of the Service, or of its namespace, ask for, as NAMESPACE/NAME, in a mesh with ambient
	// mode; whether its pods are in that mode or not. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxLength=507
	UseWaypoint string `json:"useWaypoint,omitempty"`
	// IngressUseWaypoint: gateways send requests for the Service through that waypoint, too. Not part of Gloo Mesh 1.x.
	IngressUseWaypoint bool `json:"ingressUseWaypoint,omitempty"`
	// ExportTo are the namespaces whose callers know the Service, as its own annotation says: names, "." for its own, "*" for all
	// or "~" for none. Empty means what the settings of its mesh say. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=256
	ExportTo []string `json:"exportTo,omitempty"`
	// NoProxies: nothing that answers for the Service is a pod with a proxy of the mesh. Callers in other clusters then cannot
	// reach it, and no policy protects it. Not part of Gloo Mesh 1.x.
	NoProxies bool `json:"noProxies,omitempty"`
	// Ambient is set if pods that answer for the Service, or may do so, are in ambient mode or part of its data plane. Not part of
	// Gloo Mesh 1.x.
	Ambient *AmbientService `json:"ambient,omitempty"`
	// ExternalAddresses by which the Service is reached from outside its cluster.
	ExternalAddresses []ExternalAddress `json:"externalAddresses,omitempty"`
	// ExternalIPs are what the Service's own spec claims: they are used for gateways that an administrator named. Not part of
	// Gloo Mesh 1.x, which has them among externalAddresses.
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// ServiceType is the Service's type; omitted means CLUSTER_IP.
	ServiceType ServiceType `json:"serviceType,omitempty"`
}

// ServiceType is the type of a Service.
//
// +kubebuilder:validation:Enum=CLUSTER_IP;NODE_PORT;LOAD_BALANCER;EXTERNAL_NAME
type ServiceType string

const (
	// ServiceTypeClusterIP is reached within its cluster only. An empty ServiceType means the same.
	ServiceTypeClusterIP ServiceType = "CLUSTER_IP"
	// ServiceTypeNodePort is reached through a port of every node.
	ServiceTypeNodePort ServiceType = "NODE_PORT"
	// ServiceTypeLoadBalancer is reached through a load balancer.
	ServiceTypeLoadBalancer ServiceType = "LOAD_BALANCER"
	// ServiceTypeExternalName is an alias of a DNS name.
	ServiceTypeExternalName ServiceType = "EXTERNAL_NAME"
)

// KubeServicePort is a port of a Service.
type KubeServicePort struct {
	// Port number.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// Name of the port.
	Name string `json:"name,omitempty"`
	// Protocol of the transport: TCP, UDP or SCTP.
	Protocol string `json:"protocol,omitempty"`
	// AppProtocol is the application protocol, if the Service says so.
	AppProtocol string `json:"appProtocol,omitempty"`
	// TargetPortName is the name of the pods' port; at most one of targetPortName and targetPortNumber is set.
	TargetPortName string `json:"targetPortName,omitempty"`
	// TargetPortNumber is the number of the pods' port.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	TargetPortNumber uint32 `json:"targetPortNumber,omitempty"`
	// NodePort is the port of every node, for Services that have one.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	NodePort uint32 `json:"nodePort,omitempty"`
}

// KubeServiceSubsets are the values that a pod label takes.
type KubeServiceSubsets struct {
	// Values that occur, sorted.
	Values []string `json:"values,omitempty"`
}

// EndpointSubset are endpoints that have the same ports.
type EndpointSubset struct {
	// Endpoints that are ready.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Ports of each of them.
	Ports []EndpointPort `json:"ports,omitempty"`
	// NoProxy: they run no proxy of the mesh. No policy protects them, and callers in other clusters, which come with the mutual
	// TLS of the mesh, cannot reach them. Not part of Gloo Mesh 1.x.
	NoProxy bool `json:"noProxy,omitempty"`
	// Machines: they are no pods, but WorkloadEntries, such as virtual machines. Policies hold for them if they run a proxy. Callers
	// in other clusters do not get their addresses, which whoever writes a WorkloadEntry chooses. Not part of Gloo Mesh 1.x.
	Machines bool `json:"machines,omitempty"`
	// Ambient: they are in ambient mode: the proxy of their node stands in front of them. NoProxy is set, too. Not part of Gloo Mesh 1.x.
	Ambient bool `json:"ambient,omitempty"`
}

// Endpoint is a pod behind a Service.
type Endpoint struct {
	// IpAddress of the pod.
	IpAddress string `json:"ipAddress,omitempty"`
	// OtherAddresses are those of the same pod in other IP families. Not part of Gloo Mesh 1.x.
	// +kubebuilder:validation:MaxItems=8
	OtherAddresses []string `json:"otherAddresses,omitempty"`
	// Labels of the pod.
	Labels map[string]string `json:"labels,omitempty"`
	// SubLocality is where in the region the pod runs.
	SubLocality *SubLocality `json:"subLocality,omitempty"`
}

// SubLocality is a place in a region.
type SubLocality struct {
	// Zone of the node.
	Zone string `json:"zone,omitempty"`
	// SubZone of the node.
	SubZone string `json:"subZone,omitempty"`
}

// EndpointPort is a port of an endpoint.
type EndpointPort struct {
	// Port number.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// Name of the port.
	Name string `json:"name,omitempty"`
	// Protocol of the transport: TCP, UDP or SCTP.
	Protocol string `json:"protocol,omitempty"`
	// AppProtocol is the application protocol, if known.
	AppProtocol string `json:"appProtocol,omitempty"`
	// PastProxy says that connections to it reach the pod past its proxy, so that no policy holds for them: EXCLUDED for certain, as
	// annotations of Istio say it, or UNCAPTURED unless the proxy listens there by itself (interception mode NONE). Not part of Gloo
	// Mesh 1.x.
	// +kubebuilder:validation:Enum=EXCLUDED;UNCAPTURED
	PastProxy string `json:"pastProxy,omitempty"`
}

// ExternalAddress is a DNS name or an IP; exactly one is set.
type ExternalAddress struct {
	// DnsName of the address.
	DnsName string `json:"dnsName,omitempty"`
	// Ip of the address.
	Ip string `json:"ip,omitempty"`
}

package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a type of Kubernetes object that the engine reads or writes. The
// zero Kind is none. It is small so that a Ref compares and hashes fast, and
// lists by kind are arrays, which copies of a Cluster do not share. So the kinds
// of meshes have their rows here, too; all else about them is in the folders of
// their meshes (engine/mesh), and nobody else names them.
type Kind uint8

// The kinds, in the order in which objects are applied: what others refer to
// comes first. Garbage collection goes the other way.
const (
	NoKind Kind = iota
	Mesh
	Workload
	Destination
	KubernetesCluster
	Settings
	VirtualMesh
	TrafficPolicy
	AccessPolicy
	VirtualDestination
	ServiceDependency
	WasmDeployment
	AccessLogRecord
	Role
	RoleBinding
	PodBounceDirective
	IssuedCertificate
	CertificateRequest
	Deployment
	DaemonSet
	StatefulSet
	ReplicaSet
	Pod
	Service
	EndpointSlice
	Node
	Namespace
	ConfigMap
	Secret
	MutatingWebhookConfiguration
	MeshConfig
	ServiceEntry
	Gateway
	DestinationRule
	VirtualService
	Sidecar
	EnvoyFilter
	AuthorizationPolicy
	PeerAuthentication
	RequestAuthentication
	WasmPlugin
	TrafficExtension
	Telemetry
	HTTPRoute
	GRPCRoute
	GatewayTCPRoute
	TLSRoute
	KubeGateway
	ListenerSet
	ReferenceGrant
	BackendTLSPolicy
	Ingress
	IngressClass
	NetworkPolicy
	WorkloadEntry
	HTTPRouteGroup
	TCPRoute
	TrafficTarget
	TrafficSplit
	kindCount
)

// Side says on which API server an object of a kind lives.
type Side uint8

const (
	// ManagementSide is the one cluster that holds the custom resources users write.
	ManagementSide Side = iota
	// ManagedSide is every registered cluster.
	ManagedSide
)

// Access is what the engine does with a kind in the clusters of its Side.
// Least-privilege roles are derived from it.
type Access uint8

const (
	// Watch: objects are listed and watched, never written.
	Watch Access = 1 << iota
	// Write: objects are applied and collected (and watched, to see drift).
	Write
	// WriteStatus: only the status subresource is applied.
	WriteStatus
	// InClusters: users write objects of this kind of the management plane in registered clusters, too. There they are watched, and
	// their status is applied.
	InClusters
)

// Effect is what the objects of a kind do to traffic.
type Effect uint8

const (
	// Relates: they may have Relations to others.
	Relates Effect = 1 << iota
	// Routes: they say where requests go. They are withdrawn at once: a route that nothing asks for any more must not stay in effect.
	Routes
	// Guards: they say who may call.
	Guards
	// Hosts: they name the hosts that they are about, in spec.host or spec.hosts.
	Hosts
	// Aged: of two for the same, the mesh uses the older one.
	Aged
	// Counts: they say what proxies count, and nothing about requests.
	Counts
)

// KindInfo describes a Kind to the world outside the engine.
type KindInfo struct {
	schema.GroupVersionKind
	// Resource is the plural name in URLs and roles.
	Resource string
	Side     Side
	Access   Access
	// ClusterScoped objects have no namespace.
	ClusterScoped bool
	// Optional kinds come with a mesh: an API server that serves none of the
	// kind is a healthy one that has none.
	Optional bool
	// Later marks kinds that were added after the first release. The account of a cluster that an older meshctl registered may
	// lack the permission to read them; that does not freeze the cluster.
	Later bool
	// ByHand: users write them for a mesh, and what they wrote is read (Cluster.OfMeshes).
	ByHand bool
	// Effect is what objects of the kind do to traffic.
	Effect Effect
}

const (
	discoveryGroup    = "discovery.mesh.gloo.solo.io"
	networkingGroup   = "networking.mesh.gloo.solo.io"
	enterpriseGroup   = "networking.enterprise.mesh.gloo.solo.io"
	rbacGroup         = "rbac.enterprise.mesh.gloo.solo.io"
	certificatesGroup = "certificates.mesh.gloo.solo.io"
	istioDomain       = ".istio.io"
	istioNetworking   = "networking" + istioDomain
	istioSecurity     = "security" + istioDomain
	istioExtensions   = "extensions" + istioDomain
	istioTelemetry    = "telemetry" + istioDomain
	gatewayAPI        = "gateway.networking.k8s.io"
	kubeNetworking    = "networking.k8s.io"
	smiSplit          = "split.smi-spec.io"
	smiAccess         = "access.smi-spec.io"
	smiSpecs          = "specs.smi-spec.io"
	osmConfig         = "config.openservicemesh.io"
)

func kind(group, version, name, resource string, side Side, access Access) KindInfo {
	return KindInfo{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name},
		Resource:         resource, Side: side, Access: access,
		ClusterScoped: name == "Node" || name == "Namespace" || name == "IngressClass" || name == "MutatingWebhookConfiguration",
	}
}

// optional is the row of a kind that a mesh brings along.
func optional(group, version, name, resource string, access Access) KindInfo {
	info := kind(group, version, name, resource, ManagedSide, access)
	info.Optional = true
	info.Later = group == certificatesGroup
	return info
}

// with returns the row of a kind whose objects have an effect.
func (i KindInfo) with(effect Effect) KindInfo {
	i.Effect = effect
	return i
}

// later returns the row of a kind that was added after the first release.
func (i KindInfo) later() KindInfo {
	i.Later = true
	return i
}

// byHand returns the row of a kind that users write, too.
func (i KindInfo) byHand() KindInfo {
	i.ByHand = true
	return i
}

// kinds is read-only. A kind that the engine learns to read or write is one row.
var kinds = [kindCount]KindInfo{
	Mesh:               kind(discoveryGroup, "v1", "Mesh", "meshes", ManagementSide, Write|WriteStatus),
	Workload:           kind(discoveryGroup, "v1", "Workload", "workloads", ManagementSide, Write|WriteStatus),
	Destination:        kind(discoveryGroup, "v1", "Destination", "destinations", ManagementSide, Write|WriteStatus),
	KubernetesCluster:  kind("multicluster.solo.io", "v1alpha1", "KubernetesCluster", "kubernetesclusters", ManagementSide, Watch|WriteStatus),
	Settings:           kind("settings.mesh.gloo.solo.io", "v1", "Settings", "settings", ManagementSide, Watch|WriteStatus),
	VirtualMesh:        kind(networkingGroup, "v1", "VirtualMesh", "virtualmeshes", ManagementSide, Watch|WriteStatus),
	TrafficPolicy:      kind(networkingGroup, "v1", "TrafficPolicy", "trafficpolicies", ManagementSide, Watch|WriteStatus|InClusters),
	AccessPolicy:       kind(networkingGroup, "v1", "AccessPolicy", "accesspolicies", ManagementSide, Watch|WriteStatus|InClusters),
	VirtualDestination: kind(enterpriseGroup, "v1beta1", "VirtualDestination", "virtualdestinations", ManagementSide, Watch|WriteStatus|InClusters),
	ServiceDependency:  kind(enterpriseGroup, "v1beta1", "ServiceDependency", "servicedependencies", ManagementSide, Watch|WriteStatus|InClusters),
	WasmDeployment:     kind(enterpriseGroup, "v1beta1", "WasmDeployment", "wasmdeployments", ManagementSide, Watch),
	AccessLogRecord:    kind("observability.enterprise.mesh.gloo.solo.io", "v1", "AccessLogRecord", "accesslogrecords", ManagementSide, Watch|WriteStatus|InClusters),
	Role:               kind(rbacGroup, "v1", "Role", "roles", ManagementSide, Watch),
	RoleBinding:        kind(rbacGroup, "v1", "RoleBinding", "rolebindings", ManagementSide, Watch),

	// Their types are installed where a cluster is registered.
	PodBounceDirective: optional(certificatesGroup, "v1", "PodBounceDirective", "podbouncedirectives", Write),
	IssuedCertificate:  optional(certificatesGroup, "v1", "IssuedCertificate", "issuedcertificates", Write),
	CertificateRequest: optional(certificatesGroup, "v1", "CertificateRequest", "certificaterequests", Watch),

	Deployment:    kind("apps", "v1", "Deployment", "deployments", ManagedSide, Watch),
	DaemonSet:     kind("apps", "v1", "DaemonSet", "daemonsets", ManagedSide, Watch),
	StatefulSet:   kind("apps", "v1", "StatefulSet", "statefulsets", ManagedSide, Watch),
	ReplicaSet:    kind("apps", "v1", "ReplicaSet", "replicasets", ManagedSide, Watch),
	Pod:           kind("", "v1", "Pod", "pods", ManagedSide, Watch),
	Service:       kind("", "v1", "Service", "services", ManagedSide, Watch),
	EndpointSlice: kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", ManagedSide, Watch),
	Node:          kind("", "v1", "Node", "nodes", ManagedSide, Watch),
	Namespace:     kind("", "v1", "Namespace", "namespaces", ManagedSide, Watch),
	ConfigMap:     kind("", "v1", "ConfigMap", "configmaps", ManagedSide, Watch),
	Secret:        kind("", "v1", "Secret", "secrets", ManagementSide, 0),

	MutatingWebhookConfiguration: kind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ManagedSide, Watch),

	MeshConfig:            optional(osmConfig, "v1alpha2", "MeshConfig", "meshconfigs", Watch).byHand(),
	ServiceEntry:          optional(istioNetworking, "v1", "ServiceEntry", "serviceentries", Write).with(Relates | Hosts | Aged).byHand(),
	Gateway:               optional(istioNetworking, "v1", "Gateway", "gateways", Write).with(Relates).byHand(),
	DestinationRule:       optional(istioNetworking, "v1", "DestinationRule", "destinationrules", Write).with(Relates | Hosts).byHand(),
	VirtualService:        optional(istioNetworking, "v1", "VirtualService", "virtualservices", Write).with(Relates | Routes | Hosts | Aged).byHand(),
	Sidecar:               optional(istioNetworking, "v1", "Sidecar", "sidecars", Write).with(Aged).byHand(),
	EnvoyFilter:           optional(istioNetworking, "v1alpha3", "EnvoyFilter", "envoyfilters", Write).byHand(),
	AuthorizationPolicy:   optional(istioSecurity, "v1", "AuthorizationPolicy", "authorizationpolicies", Write).with(Guards).byHand(),
	PeerAuthentication:    optional(istioSecurity, "v1", "PeerAuthentication", "peerauthentications", Watch).later().byHand(),
	WorkloadEntry:         optional(istioNetworking, "v1", "WorkloadEntry", "workloadentries", Watch).later().byHand(),
	RequestAuthentication: optional(istioSecurity, "v1", "RequestAuthentication", "requestauthentications", Watch).later().byHand(),
	WasmPlugin:            optional(istioExtensions, "v1alpha1", "WasmPlugin", "wasmplugins", Watch).later().byHand(),
	TrafficExtension:      optional(istioExtensions, "v1alpha1", "TrafficExtension", "trafficextensions", Watch).later().byHand(),
	Telemetry:             optional(istioTelemetry, "v1", "Telemetry", "telemetries", Watch).with(Counts).later().byHand(),

	HTTPRoute:       optional(gatewayAPI, "v1", "HTTPRoute", "httproutes", Watch).later().byHand(),
	GRPCRoute:       optional(gatewayAPI, "v1", "GRPCRoute", "grpcroutes", Watch).later().byHand(),
	GatewayTCPRoute: optional(gatewayAPI, "v1", "TCPRoute", "tcproutes", Watch).later().byHand(),
	TLSRoute:        optional(gatewayAPI, "v1", "TLSRoute", "tlsroutes", Watch).later().byHand(),
	KubeGateway:     optional(gatewayAPI, "v1", "Gateway", "gateways", Watch).later().byHand(),
	ListenerSet:     optional(gatewayAPI, "v1", "ListenerSet", "listenersets", Watch).later().byHand(),
	ReferenceGrant:  optional(gatewayAPI, "v1beta1", "ReferenceGrant", "referencegrants", Watch).later().byHand(),

	BackendTLSPolicy: optional(gatewayAPI, "v1", "BackendTLSPolicy", "backendtlspolicies", Watch).later().byHand(),

	Ingress:      optional(kubeNetworking, "v1", "Ingress", "ingresses", Watch).later().byHand(),
	IngressClass: optional(kubeNetworking, "v1", "IngressClass", "ingressclasses", Watch).later().byHand(),

	NetworkPolicy: kind(kubeNetworking, "v1", "NetworkPolicy", "networkpolicies", ManagedSide, Watch).later(),

	// The versions are those that Open Service Mesh 1.2 serves and reads.
	HTTPRouteGroup: optional(smiSpecs, "v1alpha4", "HTTPRouteGroup", "httproutegroups", Write),
	TCPRoute:       optional(smiSpecs, "v1alpha4", "TCPRoute", "tcproutes", Write),
	TrafficTarget:  optional(smiAccess, "v1alpha3", "TrafficTarget", "traffictargets", Write),
	TrafficSplit:   optional(smiSplit, "v1alpha2", "TrafficSplit", "trafficsplits", Write),
}

// sameFields are the versions of groups that have the same fields as the one that is read: their CustomResourceDefinitions have one
// schema for all versions (istio.io/api, kubernetes/customresourcedefinitions.gen.yaml). It is read-only.
var sameFields = map[string][]string{
	istioNetworking: {"v1alpha3", "v1beta1"},
	istioSecurity:   {"v1beta1"},
	istioTelemetry:  {"v1alpha1"},
}

// Has reports whether objects of the kind can be written in a version of its group, and mean the same.
func (i KindInfo) Has(version string) bool {
	return version == i.Version || slices.Contains(sameFields[i.Group], version)
}

// Info returns what Kubernetes calls k.
func (k Kind) Info() KindInfo { return kinds[k] }

// GroupVersionResource is the kind as clients name it in requests.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return kinds[k].GroupVersion().WithResource(kinds[k].Resource)
}

// String returns the kind's name, as in "VirtualService".
func (k Kind) String() string { return kinds[k].Kind }

// KindOf finds the Kind of an API type; false if the engine knows none. The
// version is not looked at: served versions of a type are one type.
func KindOf(gk schema.GroupKind) (Kind, bool) {
	for k := NoKind + 1; k < kindCount; k++ {
		if kinds[k].GroupKind() == gk {
			return k, true
		}
	}
	return NoKind, false
}

// Kinds lists, in apply order, the kinds of a side with any of the given accesses. Those of the management plane that users write in
// registered clusters, too, are of both sides there if InClusters is asked for.
func Kinds(side Side, access Access) []Kind {
	var out []Kind
	for k := NoKind + 1; k < kindCount; k++ {
		if kinds[k].Side == side && kinds[k].Access&access != 0 || kinds[k].Access&access&InClusters != 0 {
			out = append(out, k)
		}
	}
	return out
}

package discovery

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Detector is all that discovery knows about one kind of mesh.
type Detector struct {
	// Name is the mesh's, as in messages.
	Name string
	// ControlPlanes finds the control planes of a cluster, ascending by namespace
	// and name.
	ControlPlanes func(*Index) []*ControlPlane
	// Sidecar reports whether a pod runs the mesh's proxy, and what the pod or its
	// namespace says about the control plane of that proxy.
	Sidecar func(*Index, *corev1.Pod) (Claim, bool)
	// Namespace is what a namespace says about the control plane of the pods in it;
	// false if nothing. Nil if namespaces never say anything.
	Namespace func(*corev1.Namespace) (Claim, bool)
	// Template is what a namespace, which may be nil, and a template say about the
	// control plane of pods that do not exist at present; false if they would have no
	// sidecar. Nil if that cannot be told.
	Template func(*corev1.Namespace, *corev1.PodTemplateSpec) (Claim, bool)
	// Stored is what a stored mesh and the name of its Deployment say about its control
	// plane's revision, and whether that is the default; false if the mesh is of another
	// kind. Nil if meshes go with their control plane.
	Stored func(spec *discoveryv1.MeshSpec, deployment string) (revision string, standard, ok bool)
	// Gateway reports whether pods are proxies by themselves, and not beside an application. Nil if there are no such pods.
	Gateway func(*corev1.PodSpec) bool
	// ExportTo is what a Service says about the namespaces whose callers know it, as its mesh writes that; nil if nothing. Nil if
	// Services never say that.
	ExportTo func(*corev1.Service) []string
	// Ambient finds pods that need no proxy of their own; nil if all do.
	Ambient *AmbientDetector
	// Machines are what users added to the meshes of a cluster with some control planes that is no pod. Nil if there is no such thing.
	Machines func(*snapshot.Cluster, []*ControlPlane) []Machine
	// Inbound says how connections to a port of a pod pass its proxy by, as EndpointPort.PastProxy has it; empty if they do not. Outbound
	// is which connections of a pod its proxy sees; nil if it sees all. Nil if proxies see all.
	Inbound  func(pod *corev1.Pod, port uint32) string
	Outbound func(*corev1.Pod) *discoveryv1.Capture
	// ProxyDNS is whether the proxy of a pod answers DNS, as KubernetesWorkload.ProxyDNS has it; nil if no pod says that by itself.
	ProxyDNS func(*corev1.Pod) string
	// Identities is equal for two meshes of the kind that give a service account the same
	// identity. Nil if no two do.
	Identities func(*discoveryv1.MeshSpec) string
	// InjectedLabels are labels that the mesh adds to pods by itself; no policy routes by them.
	InjectedLabels []string
	// SubzoneLabel is that of nodes for what is smaller than a zone; empty if there is none.
	SubzoneLabel string
	// OptIn: a control plane serves only namespaces that name it.
	OptIn bool
	// RevisionName is what messages call a control plane's Revision.
	RevisionName string
	// Fix is the hint for a sidecar whose control plane is not certain.
	Fix string
	// Reads are parts of objects that the functions above read, and a source would
	// otherwise drop.
	Reads Reads
}

// Detectors are kinds of mesh. A pod that runs the proxies of several belongs to the
// first.
type Detectors []Detector

// ControlPlane is one control plane of a cluster.
type ControlPlane struct {
	// Mesh is made by Index.NewMesh; the detector fills in its spec.
	Mesh *discoveryv1.Mesh
	// Revision tells several control planes of a cluster apart.
	Revision string
	// Default: Revision is that of an installation that was given none.
	Default bool
	// Debounce is how long it collects changes; nil for snapshot.UsualDebounce.
	Debounce *snapshot.Debounce
	// Ignores reports whether it reads nothing of a namespace; nil if it reads all. ReadHint says how to make it read one.
	Ignores  func(*corev1.Namespace) bool
	ReadHint string
	// Ambient: its mesh has a data plane for pods without a proxy of their own.
	Ambient bool
	// Nodes: the proxies of nodes are known to take their configuration from it.
	Nodes bool
	// Unread: its settings cannot be read and never were, so that its mesh is left out.
	Unread bool

	// identities are equal if two control planes give a service account the same identity;
	// empty if no other one does.
	identities string
	// ignored are the namespaces with workloads that would be its own, if it did not ignore them.
	ignored []string
}

func (c *ControlPlane) ref() commonv1.ObjectRef {
	return commonv1.ObjectRef{Name: c.Mesh.Name, Namespace: c.Mesh.Namespace}
}

// Machine is what answers for Services that select its labels, and is no pod, such as a virtual machine.
type Machine struct {
	Namespace, Name, Address string
	Labels                   map[string]string
	// Ports are where it listens, by the name of a Service's port, or of its target port.
	Ports map[string]uint32
	// Mutual: callers come with the mutual TLS of the mesh.
	Mutual bool
}

// Claim is what a sidecar or a namespace says about its control plane.
type Claim struct {
	// Revision is empty if it is not known.
	Revision string
	// Requested is true if a user wrote Revision, which may then be a revision tag,
	// and false if the control plane that injected the sidecar wrote it.
	Requested bool
	// Doubt is why the control plane may not serve the pod, and Cause the object
	// that it is due to; empty if the control plane serves it.
	Doubt string
	Cause snapshot.Ref
}

// NewMesh makes the Mesh of a control plane's Deployment, with an empty spec.
func (x *Index) NewMesh(d *appsv1.Deployment) *discoveryv1.Mesh {
	name := x.name(x.meshNames, objectName(d.Name, d.Namespace, x.Cluster), x.Ref(snapshot.Deployment, d))
	return &discoveryv1.Mesh{ObjectMeta: x.meta(name)}
}

// Installation says where a control plane's Deployment runs.
func (x *Index) Installation(d *appsv1.Deployment, version string) discoveryv1.MeshInstallation {
	out := discoveryv1.MeshInstallation{Namespace: d.Namespace, Cluster: x.Cluster, Version: version}
	if d.Spec.Selector != nil {
		out.PodLabels = d.Spec.Selector.MatchLabels
	}
	return out
}

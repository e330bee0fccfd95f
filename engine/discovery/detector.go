package discovery

import (
	"slices"

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

// Reads lists parts of objects that a source keeps only if they are listed here,
// because they are large or may contain secrets. Names, labels, owners, images and
// service accounts are always kept.
type Reads struct {
	// Annotations are the names of those that are read among the given ones, of
	// workloads and pods. Nil for none.
	Annotations func(map[string]string) []string
	// Env are the names of environment variables. Those whose value is elsewhere are
	// kept without a value, and with a ValueFrom that does not say where.
	Env []string
	// Args are the arguments of a container that are read, in a form that Args
	// returns unchanged. Nil for none.
	Args func(*corev1.Container) []string
	// ConfigMaps are those of the control planes of a cluster, of which its Deployments
	// and MutatingWebhookConfigurations suffice. See ConfigMaps. Nil if none are read.
	ConfigMaps func(*snapshot.Cluster) []snapshot.Ref
	// ConfigMap is the key that is read of ConfigMaps of that name, empty for none,
	// and how many bytes of its text at most. Nil if none are read.
	ConfigMap func(name string) (key string, most int)
}

var detectors = []Detector{Istio(), OSM()}

// Detectors lists the kinds of mesh. A pod that runs the proxies of several
// belongs to the first.
func Detectors() []Detector { return slices.Clone(detectors) }

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
	// Unread: its settings cannot be read and never were, so that its mesh is left out.
	Unread bool
}

func (c *ControlPlane) ref() commonv1.ObjectRef {
	return commonv1.ObjectRef{Name: c.Mesh.Name, Namespace: c.Mesh.Namespace}
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

// ConfigMaps are those that hold the settings of what looks like a control plane in a
// cluster, of which Deployments and MutatingWebhookConfigurations are looked at. First
// come those for which there is evidence: anyone who may edit a namespace can add others.
func ConfigMaps(c *snapshot.Cluster) []snapshot.Ref {
	var out []snapshot.Ref
	for _, d := range detectors {
		if d.Reads.ConfigMaps != nil {
			out = append(out, d.Reads.ConfigMaps(c)...)
		}
	}
	return out
}

// ReadConfigMap is what is read of a ConfigMap; nil if nothing is.
func ReadConfigMap(cm *corev1.ConfigMap) map[string]string {
	for _, d := range detectors {
		if d.Reads.ConfigMap == nil {
			continue
		}
		key, most := d.Reads.ConfigMap(cm.Name)
		if text, ok := cm.Data[key]; ok && key != "" {
			return map[string]string{key: text[:min(len(text), most)]}
		}
	}
	return nil
}

// ReadAnnotations are the names of the annotations of a workload or pod that are read.
func ReadAnnotations(annotations map[string]string) []string {
	var out []string
	for _, d := range detectors {
		if d.Reads.Annotations != nil {
			out = append(out, d.Reads.Annotations(annotations)...)
		}
	}
	return out
}

// ReadEnv reports whether an environment variable of a container is read.
func ReadEnv(name string) bool {
	return slices.ContainsFunc(detectors, func(d Detector) bool { return slices.Contains(d.Reads.Env, name) })
}

// ReadArgs are the arguments of a container that are read.
func ReadArgs(c *corev1.Container) []string {
	var out []string
	for _, d := range detectors {
		if d.Reads.Args != nil {
			out = append(out, d.Reads.Args(c)...)
		}
	}
	return out
}

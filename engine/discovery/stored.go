package discovery

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// FromStored is what was discovered of a cluster when it could last be read,
// as the management plane stores it. It looks like the result of Discover,
// without issues: no statuses, no metadata of the API server, no labels but
// the two that discovery owns. What belongs to another owner, or lies outside
// the management namespace, or lacks what discovery always fills in, was not
// discovered here and is left out.
func FromStored(cluster string, m *snapshot.Management) *snapshot.Discovered {
	s := newStored(cluster, m.Namespace)
	out := &snapshot.Discovered{Cluster: cluster, Meshes: s.meshes(m)}
	for _, o := range m.Workloads {
		if s.has(&o.ObjectMeta) && o.Spec.Kubernetes != nil {
			out.Workloads = append(out.Workloads, &discoveryv1.Workload{ObjectMeta: s.meta(o.Name), Spec: o.Spec})
		}
	}
	for _, o := range m.Destinations {
		if s.has(&o.ObjectMeta) && o.Spec.KubeService != nil && o.Spec.Mesh != nil {
			d := &discoveryv1.Destination{ObjectMeta: s.meta(o.Name), Spec: o.Spec}
			d.CreationTimestamp = o.CreationTimestamp // that of the Service is not known
			out.Destinations = append(out.Destinations, d)
		}
	}
	slices.SortFunc(out.Meshes, byName)
	slices.SortFunc(out.Workloads, byName)
	slices.SortFunc(out.Destinations, byName)
	return out
}

// SameMeshes reports whether all that discovery reads of the stored Meshes of a cluster is the
// same in two Managements. It costs little where only statuses changed.
func SameMeshes(cluster string, a, b *snapshot.Management) bool {
	if snapshot.SameSlice(a.Meshes, b.Meshes) {
		return true
	}
	s := newStored(cluster, a.Namespace)
	return reflect.DeepEqual(s.meshes(a), s.meshes(b))
}

// StoredMesh is a mesh of the cluster as it was last; nil if there was none.
func (x *Index) StoredMesh(name, namespace string) *discoveryv1.Mesh {
	if x.stored == nil {
		return nil
	}
	s := stored{namespace: x.namespace, labels: x.labels}
	for _, o := range x.stored.Meshes {
		if _, at := snapshot.MeshType(&o.Spec); o.Name == name && s.has(&o.ObjectMeta) && at.Namespace == namespace {
			return o
		}
	}
	return nil
}

// stored picks the objects of one cluster.
type stored struct {
	namespace string
	labels    map[string]string
}

func newStored(cluster, namespace string) *stored {
	namespace = Options{Namespace: namespace}.namespace()
	return &stored{namespace, discoveredLabels(namespace, cluster)}
}

func (s *stored) meshes(m *snapshot.Management) []*discoveryv1.Mesh {
	var out []*discoveryv1.Mesh
	for _, o := range m.Meshes {
		if s.has(&o.ObjectMeta) {
			out = append(out, &discoveryv1.Mesh{ObjectMeta: s.meta(o.Name), Spec: o.Spec})
		}
	}
	return out
}

func (s *stored) has(o *metav1.ObjectMeta) bool {
	return o.Namespace == s.namespace && contains(o.Labels, s.labels)
}

func (s *stored) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.namespace, Labels: s.labels}
}

// discoveredLabels are the labels of every object discovered in a cluster.
func discoveredLabels(namespace, cluster string) map[string]string {
	return map[string]string{
		snapshot.DiscoveryOwnerLabel:   namespace,
		snapshot.DiscoveryClusterLabel: cluster,
	}
}

package offline

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// object is what all kinds have in common.
type object interface {
	metav1.Object
	runtime.Object
}

// list is one list of an Input, whatever its objects are.
type list interface {
	// decode reads a document and appends the object.
	decode(doc document, strict bool) (object, error)
	// sort brings the objects in the order that an Input promises.
	sort()
}

// typed is a list that knows the type of its objects.
type typed[T any, P interface {
	*T
	object
}] struct{ objects *[]P }

func (l typed[T, P]) decode(doc document, strict bool) (object, error) {
	o := P(new(T))
	if err := decode(doc, o, strict); err != nil {
		return nil, err
	}
	// As an informer gives it.
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	*l.objects = append(*l.objects, o)
	return o, nil
}

func (l typed[T, P]) sort() {
	slices.SortStableFunc(*l.objects, func(a, b P) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

func of[T any, P interface {
	*T
	object
}](objects *[]P) list {
	return typed[T, P]{objects: objects}
}

// clusterLists are the lists of a cluster.
func clusterLists(c *snapshot.Cluster) map[snapshot.Kind]list {
	return map[snapshot.Kind]list{
		snapshot.Deployment:          of(&c.Deployments),
		snapshot.DaemonSet:           of(&c.DaemonSets),
		snapshot.StatefulSet:         of(&c.StatefulSets),
		snapshot.ReplicaSet:          of(&c.ReplicaSets),
		snapshot.Pod:                 of(&c.Pods),
		snapshot.Service:             of(&c.Services),
		snapshot.EndpointSlice:       of(&c.EndpointSlices),
		snapshot.Node:                of(&c.Nodes),
		snapshot.Namespace:           of(&c.Namespaces),
		snapshot.ConfigMap:           of(&c.ConfigMaps),
		snapshot.VirtualService:      of(&c.VirtualServices),
		snapshot.ServiceEntry:        of(&c.ServiceEntries),
		snapshot.DestinationRule:     of(&c.DestinationRules),
		snapshot.AuthorizationPolicy: of(&c.AuthorizationPolicies),
		snapshot.Sidecar:             of(&c.Sidecars),
		snapshot.MeshConfig:          of(&c.MeshConfigs),
	}
}

// managementLists are the lists of the management plane.
func managementLists(m *snapshot.Management) map[snapshot.Kind]list {
	return map[snapshot.Kind]list{
		snapshot.Mesh:               of(&m.Meshes),
		snapshot.Workload:           of(&m.Workloads),
		snapshot.Destination:        of(&m.Destinations),
		snapshot.KubernetesCluster:  of(&m.KubernetesClusters),
		snapshot.Settings:           of(&m.Settings),
		snapshot.VirtualMesh:        of(&m.VirtualMeshes),
		snapshot.TrafficPolicy:      of(&m.TrafficPolicies),
		snapshot.AccessPolicy:       of(&m.AccessPolicies),
		snapshot.VirtualDestination: of(&m.VirtualDestinations),
		snapshot.ServiceDependency:  of(&m.ServiceDependencies),
		snapshot.WasmDeployment:     of(&m.WasmDeployments),
		snapshot.AccessLogRecord:    of(&m.AccessLogRecords),
		snapshot.Role:               of(&m.Roles),
		snapshot.RoleBinding:        of(&m.RoleBindings),
	}
}

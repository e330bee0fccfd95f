package serve

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// uidOf is the UID of an object that users write; empty if there is none.
func uidOf(m *snapshot.Management, ref snapshot.Ref) types.UID {
	switch ref.Kind {
	case snapshot.TrafficPolicy:
		return findUID(m.TrafficPolicies, ref)
	case snapshot.AccessPolicy:
		return findUID(m.AccessPolicies, ref)
	case snapshot.VirtualMesh:
		return findUID(m.VirtualMeshes, ref)
	case snapshot.VirtualDestination:
		return findUID(m.VirtualDestinations, ref)
	case snapshot.ServiceDependency:
		return findUID(m.ServiceDependencies, ref)
	case snapshot.KubernetesCluster:
		return findUID(m.KubernetesClusters, ref)
	}
	return ""
}

// findUID looks in a list that is ascending by namespace and name.
func findUID[T listed](list []T, ref snapshot.Ref) types.UID {
	at, found := slices.BinarySearchFunc(list, ref, func(o T, ref snapshot.Ref) int {
		return cmp.Or(strings.Compare(o.GetNamespace(), ref.Namespace), strings.Compare(o.GetName(), ref.Name))
	})
	if !found {
		return ""
	}
	return list[at].GetUID()
}

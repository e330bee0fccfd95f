package virtualmesh

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Viewers are the meshes that see a Destination, its own first.
func (t *Topology) Viewers(i int) []*snapshot.MeshPlan {
	own := t.MeshOf(t.inv.Destinations[i])
	if own == nil {
		return nil
	}
	if f := t.federations[i]; f != nil {
		return append([]*snapshot.MeshPlan{own}, f.To...)
	}
	return []*snapshot.MeshPlan{own}
}

// Host is the name under which a mesh calls a Destination; false if the mesh
// cannot reach it.
func (t *Topology) Host(i int, viewer *snapshot.MeshPlan) (string, bool) {
	service := t.inv.Destinations[i].Spec.KubeService.Ref
	if service.ClusterName == viewer.Cluster {
		return t.inv.LocalFQDN(service), true
	}
	if f := t.federations[i]; f != nil {
		if at, found := slices.BinarySearchFunc(f.To, viewer, CompareMeshes); found && f.To[at] == viewer {
			return f.Hostname, true
		}
	}
	return "", false
}

// ThroughGateways reports whether a mesh reaches a Destination through gateways only.
func (t *Topology) ThroughGateways(i int, viewer *snapshot.MeshPlan) bool {
	f := t.federations[i]
	return f != nil && !f.Flat && viewer.Cluster != t.inv.Destinations[i].Spec.KubeService.Ref.ClusterName
}

// ServiceNamed finds the index of the service that a mesh knows by a host name; false if there is none.
func (t *Topology) ServiceNamed(hostname string, mesh *snapshot.MeshPlan) (int, bool) {
	name, rest, _ := strings.Cut(hostname, ".")
	namespace, rest, _ := strings.Cut(rest, ".")
	service := commonv1.ClusterObjectRef{Name: name, Namespace: namespace, ClusterName: mesh.Cluster}
	if at, ok := t.inv.IndexOfService(service); ok && (rest == "" || rest == "svc" || hostname == t.inv.LocalFQDN(service)) {
		return at, true
	}
	for _, cluster := range t.inv.Clusters() {
		if !strings.HasPrefix(rest, "svc."+cluster+".") {
			continue
		}
		service.ClusterName = cluster
		at, ok := t.inv.IndexOfService(service)
		if !ok {
			continue
		}
		f := t.federations[at]
		if f != nil && f.Hostname == hostname && (cluster == mesh.Cluster || slices.Contains(f.To, mesh)) {
			return at, true
		}
	}
	return 0, false
}

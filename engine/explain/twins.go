package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about pods of other clusters behind the name that a service has in its own: a control plane with remote secrets adds
// those of the services of the same name and namespace (istio.io: Install Multicluster).

// twins says that other clusters have a service of the name of a Destination, whose pods its control plane may know; nothing if the
// control plane shows no sign of that.
func twins(x *Index, d *snapshot.DestinationPlan) []string {
	k := d.Destination.Spec.KubeService
	if k == nil || d.Mesh == nil || d.Mesh.ClusterID == "" || d.Mesh.MayKnowOthers != "" || keptInCluster(d) {
		return nil
	}
	var clusters []string
	if x.unread {
		for _, other := range x.destinations {
			if o := other.Destination.Spec.KubeService; o != nil && o.Ref.ClusterName != k.Ref.ClusterName && o.Ref.Name == k.Ref.Name && o.Ref.Namespace == k.Ref.Namespace {
				clusters = append(clusters, o.Ref.ClusterName)
			}
		}
	}
	for name, c := range x.clusters {
		if name != k.Ref.ClusterName && snapshot.FindService(c.Services, k.Ref.Namespace, k.Ref.Name) != nil {
			clusters = append(clusters, name)
		}
	}
	if len(clusters) == 0 {
		return nil
	}
	slices.Sort(clusters)
	return []string{"whether the control plane of mesh " + d.Mesh.Ref.Name + " knows the pods of service " + k.Ref.Name + "." + k.Ref.Namespace + " in " + firstOf(slices.Compact(clusters)) +
		" by remote secrets (" + d.Mesh.ClusterID + "), which are not read: requests would also go there"}
}

// keptInCluster reports that callers of the mesh of a Destination get none of its pods in other clusters, whatever its control plane
// knows.
func keptInCluster(d *snapshot.DestinationPlan) bool {
	if k := d.Destination.Spec.KubeService; k != nil && k.NodeLocal { // Istio, EndpointBuilder.snapshotShards
		return true
	}
	return len(d.Views) > 0 && d.Mesh.KeepsInCluster(d.Views[0].Host)
}

// otherNetworks says that pods of a Destination are in another network than the callers, as far as labels say it.
func otherNetworks(q *query, d *snapshot.DestinationPlan) []string {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return nil
	}
	own := traitsOf(d.Mesh, k.PodLabels).Network
	var networks []string
	for _, e := range endpointsOf(d, nil) {
		if network := traitsOf(d.Mesh, e.Labels).Network; network != own {
			networks = append(networks, network)
		}
	}
	if len(networks) == 0 {
		return nil
	}
	slices.Sort(networks)
	return []string{"whether callers reach the pods of " + d.Ref.Name + " that are in network " + firstOf(slices.Compact(networks)) +
		", and not in their own: through a gateway that the control plane knows, or at their addresses"}
}

package virtualmesh

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// closedAmbient warns that a global access policy closes the workloads of a mesh in ambient mode: its AuthorizationPolicy without
// rules in the root namespace holds for ztunnel, too (Istio, ambient.convertAuthorizationPolicy), and what would open them is not
// translated.
func closedAmbient(t *Topology, mesh *snapshot.MeshPlan) []snapshot.Issue {
	if mesh.DenyByDefault == nil || mesh.AccessSetting != nil {
		return nil
	}
	var closed, pending []string
	for _, k := range t.inv.AmbientWorkloads(commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}) {
		if k.DataPlaneMode == discoveryv1.ModePending {
			pending = append(pending, k.Controller.Namespace)
		} else {
			closed = append(closed, k.Controller.Namespace)
		}
	}
	const hint = "write AuthorizationPolicies there that allow the callers, by identities and ports; or have sidecars injected into the pods"
	var issues []snapshot.Issue
	if len(closed) > 0 {
		issues = append(issues, snapshot.Warnf(snapshot.AmbientClosed, hint,
			"it also closes %s in ambient mode of cluster %s (%s), and no AccessPolicy opens them: nothing is translated for ambient mode yet",
			snapshot.Count(len(closed), "workload"), mesh.Cluster, snapshot.NamespacesText(closed)).At("globalAccessPolicy"))
	}
	if len(pending) > 0 {
		issues = append(issues, snapshot.Warnf(snapshot.AmbientClosed, hint,
			"it will also close %s of cluster %s (%s) as soon as they are in ambient mode, for which their labels ask, and no AccessPolicy opens them: nothing is translated for ambient mode yet",
			snapshot.Count(len(pending), "workload"), mesh.Cluster, snapshot.NamespacesText(pending)).At("globalAccessPolicy"))
	}
	return issues
}

// reportAmbient warns of the services of each member that a VirtualMesh would federate, if their pods were not in ambient mode.
func reportAmbient(t *Topology) {
	left := map[*snapshot.MeshPlan][]string{}
	for i := range t.unanswered {
		if d := t.inv.Destinations[i]; snapshot.AllAmbient(d.Spec.KubeService) {
			mesh := t.MeshOf(d)
			left[mesh] = append(left[mesh], d.Spec.KubeService.Ref.Namespace)
		}
	}
	if len(left) == 0 {
		return
	}
	for _, vm := range t.VirtualMeshes {
		for _, m := range vm.Members {
			if namespaces := left[m]; len(namespaces) > 0 {
				vm.Issues = append(vm.Issues, snapshot.Warnf(snapshot.AmbientMode,
					"do not select them; or "+m.Ambient().Federation,
					"%s of cluster %s in ambient mode (%s): not federated, as their pods do not take the mutual TLS of callers in other clusters",
					snapshot.Count(len(namespaces), "service"), m.Cluster, snapshot.NamespacesText(namespaces)).At("federation").On(vm.Ref, m.Ref))
			}
		}
	}
}

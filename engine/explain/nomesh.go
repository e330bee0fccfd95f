package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	endpointv1 "k8s.io/api/discovery/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// inNoMesh lists the Services with pods that are in no mesh, although workloads of their namespace are: no policy protects them. Those of
// other namespaces, and of control planes, are only counted; others names their namespaces. Both are ascending.
func inNoMesh(x *Index) (beside []snapshot.Ref, elsewhere int, others []string) {
	known, meshed := map[snapshot.Ref]bool{}, map[snapshot.Ref]bool{}
	for _, d := range x.destinations {
		if k := d.Destination.Spec.KubeService; k != nil && d.Mesh != nil {
			known[snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name}] = true
		}
	}
	for _, w := range x.workloads {
		if k := w.Spec.Kubernetes; k != nil && x.meshOf(w) != nil {
			meshed[snapshot.Ref{Cluster: k.Controller.ClusterName, Namespace: k.Controller.Namespace}] = true
		}
	}
	for _, m := range x.state.Plan.Meshes {
		delete(meshed, snapshot.Ref{Cluster: m.Cluster, Namespace: m.Namespace})
	}
	namespaces := map[string]bool{}
	for _, c := range x.state.Input.Clusters {
		backed := servicesWithPods(c)
		for _, s := range c.Services {
			ref := snapshot.Ref{Kind: snapshot.Service, Cluster: c.Name, Namespace: s.Namespace, Name: s.Name}
			switch {
			case known[ref] || !backed[ref]:
			case meshed[snapshot.Ref{Cluster: c.Name, Namespace: s.Namespace}]:
				beside = append(beside, ref)
			default:
				elsewhere++
				namespaces[s.Namespace] = true
			}
		}
	}
	slices.SortFunc(beside, snapshot.Ref.Compare)
	return beside, elsewhere, slices.Sorted(maps.Keys(namespaces))
}

// servicesWithPods are the Services of a cluster that some pod answers for.
func servicesWithPods(c *snapshot.Cluster) map[snapshot.Ref]bool {
	out := map[snapshot.Ref]bool{}
	for _, slice := range c.EndpointSlices {
		service := slice.Labels[endpointv1.LabelServiceName]
		if service != "" && slices.ContainsFunc(slice.Endpoints, func(e endpointv1.Endpoint) bool {
			return e.TargetRef != nil && e.TargetRef.Kind == snapshot.Pod.String() && (e.Conditions.Ready == nil || *e.Conditions.Ready)
		}) {
			out[snapshot.Ref{Kind: snapshot.Service, Cluster: c.Name, Namespace: slice.Namespace, Name: service}] = true
		}
	}
	return out
}

// elsewhereNote says how many services are in no mesh besides those that are listed; empty if none are.
func elsewhereNote(count int, namespaces []string) string {
	if count == 0 {
		return ""
	}
	const most = 3
	text := strings.Join(namespaces[:min(most, len(namespaces))], ", ")
	if more := len(namespaces) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s, in namespaces without workloads of a mesh or with its control plane (%s), %s in no mesh: no policy is for them",
		snapshot.Count(count, "service"), text, verb(count, "is", "are"))
}

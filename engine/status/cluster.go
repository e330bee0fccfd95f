package status

import (
	"fmt"
	"reflect"
	"slices"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// clusterOwner is the component that a KubernetesCluster's status names.
const clusterOwner = "meshctl"

// clusterStatuses are the statuses of KubernetesClusters, ascending by Ref: whether
// the clusters can be read.
type clusterStatuses []*snapshot.Status

func (s *clusterStatuses) update(in *snapshot.Input) bool {
	states := make(map[string]*snapshot.Cluster, len(in.Clusters))
	for _, c := range in.Clusters {
		states[c.Name] = c
	}
	server := serverOf(in)
	broken, held := map[string][]snapshot.Failure{}, map[string]string{}
	for _, f := range in.Failures {
		if f.Code == snapshot.SecretRefused || f.Code == snapshot.WithdrawalHeld && held[f.Ref.Name] == "" {
			held[f.Ref.Name] = f.Message
		}
		if f.Code == snapshot.ObjectUnreadable && f.Ref.Cluster != "" {
			broken[f.Ref.Cluster] = append(broken[f.Ref.Cluster], f)
		}
	}
	before := *s
	now := make(clusterStatuses, 0, len(in.Management.KubernetesClusters))
	for i, o := range in.Management.KubernetesClusters {
		status := clusterStatus(o, states[o.Name], broken[o.Name], held[o.Name], server)
		if i < len(before) && reflect.DeepEqual(before[i], status) {
			status = before[i]
		}
		now = append(now, status)
	}
	if slices.Equal(before, now) {
		return false
	}
	*s = now
	return true
}

// serverOf says with what the server runs that makes the statuses; nil if there
// is nothing to say.
func serverOf(in *snapshot.Input) *multiclusterv1alpha1.Server {
	s := multiclusterv1alpha1.Server{Version: in.Version, DisallowIntersectingConfig: in.RefuseIntersecting}
	if s == (multiclusterv1alpha1.Server{}) {
		return nil
	}
	return &s
}

// clusterStatus says whether a cluster can be read, why its Secret is not used or nothing
// is deleted there, and
// which of its objects cannot be processed.
func clusterStatus(o *multiclusterv1alpha1.KubernetesCluster, c *snapshot.Cluster, broken []snapshot.Failure, held string, server *multiclusterv1alpha1.Server) *snapshot.Status {
	said := multiclusterv1alpha1.ClusterStatus{
		State: multiclusterv1alpha1.ClusterStateAccepted, ObservedGeneration: o.Generation, Owner: clusterOwner,
	}
	switch {
	case c == nil:
		said.State, said.Message = multiclusterv1alpha1.ClusterStatePending, "it is not connected yet"
	case c.Frozen():
		said.State, said.Message = multiclusterv1alpha1.ClusterStateFailed, c.Sync.String()
		if c.Reason != "" {
			said.Message += ": " + c.Reason
		}
	case held != "":
		said.State, said.Message = multiclusterv1alpha1.ClusterStateFailed, held
	case len(broken) > 0:
		said.Message = clip(fmt.Sprintf("%s: %s", broken[0].Ref, broken[0].Message))
		if more := len(broken) - 1; more > 0 {
			said.Message += fmt.Sprintf("; and %d more objects", more)
		}
	}
	return &snapshot.Status{
		Ref:   snapshot.RefOf(snapshot.KubernetesCluster, o),
		Value: &multiclusterv1alpha1.KubernetesClusterStatus{Status: []multiclusterv1alpha1.ClusterStatus{said}, Server: server},
	}
}

package status

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
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
	failures := map[string]clusterFailures{}
	for _, f := range in.Failures {
		name := cmp.Or(f.Ref.Cluster, f.Ref.Name)
		known := failures[name]
		known.add(f)
		failures[name] = known
	}
	before := *s
	now := make(clusterStatuses, 0, len(in.Management.KubernetesClusters))
	for i, o := range in.Management.KubernetesClusters {
		status := clusterStatus(o, states[o.Name], failures[o.Name], server)
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
	scope := virtualmesh.ScopeOf(in.Management)
	if in.Version == "" && !in.RefuseIntersecting && len(in.Management.KeptNamespaces()) == 0 {
		return nil
	}
	return &multiclusterv1alpha1.Server{Version: in.Version, DisallowIntersectingConfig: in.RefuseIntersecting, KeptNamespaces: scope.Record()}
}

// clusterFailures are the failures that concern one cluster as a whole.
type clusterFailures struct {
	// held is why its Secret is not used, its credential is not renewed, or nothing is
	// deleted there.
	held string
	// met are other management planes that write there.
	met string
	// broken are its objects that cannot be processed.
	broken []snapshot.Failure
}

func (c *clusterFailures) add(f snapshot.Failure) {
	switch {
	case f.Code == snapshot.SecretRefused, (f.Code == snapshot.WithdrawalHeld || f.Code == snapshot.CredentialNotRenewed) && c.held == "":
		c.held = f.Message
	case f.Code == snapshot.AnotherPlane:
		c.met = f.Message
	case f.Code == snapshot.ObjectUnreadable && f.Ref.Cluster != "":
		c.broken = append(c.broken, f)
	}
}

// clusterStatus says whether a cluster can be read, and what else concerns all of it.
func clusterStatus(o *multiclusterv1alpha1.KubernetesCluster, c *snapshot.Cluster, failures clusterFailures, server *multiclusterv1alpha1.Server) *snapshot.Status {
	said := multiclusterv1alpha1.ClusterStatus{
		State: multiclusterv1alpha1.ClusterStateAccepted, ObservedGeneration: o.Generation, Owner: clusterOwner,
	}
	if c != nil {
		said.Credential = c.Credential
	}
	switch {
	case c == nil:
		said.State, said.Message = multiclusterv1alpha1.ClusterStatePending, "it is not connected yet"
	case c.Frozen():
		said.State, said.Message = multiclusterv1alpha1.ClusterStateFailed, c.Unreachable()
		if failures.held != "" {
			said.Message += "; " + failures.held
		} else if c.Reason == snapshot.Reading {
			said.State = multiclusterv1alpha1.ClusterStateProcessing
		}
	case failures.held != "":
		said.State, said.Message = multiclusterv1alpha1.ClusterStateFailed, failures.held
	case len(failures.broken) > 0:
		first := failures.broken[0]
		said.Message = clip(fmt.Sprintf("%s: %s", first.Ref, first.Message))
		if more := len(failures.broken) - 1; more > 0 {
			said.Message += fmt.Sprintf("; and %d more objects", more)
		}
	default:
		said.Message = failures.met
	}
	return &snapshot.Status{
		Ref:   snapshot.RefOf(snapshot.KubernetesCluster, o),
		Value: &multiclusterv1alpha1.KubernetesClusterStatus{Status: []multiclusterv1alpha1.ClusterStatus{said}, Server: server},
	}
}

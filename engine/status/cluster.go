package status

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// clusterOwner is the component that a KubernetesCluster's status names.
const clusterOwner = "meshctl"

// clusterStatuses are the statuses of KubernetesClusters, ascending by Ref: whether
// the clusters can be read.
type clusterStatuses struct {
	made []*snapshot.Status
	// They were made from these.
	clusters   []*snapshot.Cluster
	registered []*multiclusterv1alpha1.KubernetesCluster
	failures   []snapshot.Failure
	server     *multiclusterv1alpha1.Server
}

// keeps reports whether the same statuses follow from an input as from the last one.
func (s *clusterStatuses) keeps(in *snapshot.Input, server *multiclusterv1alpha1.Server) bool {
	return slices.Equal(s.clusters, in.Clusters) && snapshot.SameSlice(s.registered, in.Management.KubernetesClusters) &&
		slices.EqualFunc(s.failures, in.Failures, sameFailure) && reflect.DeepEqual(s.server, server)
}

func (s *clusterStatuses) update(in *snapshot.Input) bool {
	server := serverOf(in)
	if s.keeps(in, server) {
		return false
	}
	s.clusters, s.registered, s.failures, s.server = in.Clusters, in.Management.KubernetesClusters, in.Failures, server
	states := make(map[string]*snapshot.Cluster, len(in.Clusters))
	for _, c := range in.Clusters {
		states[c.Name] = c
	}
	failures := map[string]clusterFailures{}
	for _, f := range in.Failures {
		name := cmp.Or(f.Ref.Cluster, f.Ref.Name)
		known := failures[name]
		known.add(f)
		failures[name] = known
	}
	before := s.made
	now := make([]*snapshot.Status, 0, len(in.Management.KubernetesClusters))
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
	s.made = now
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
	// held is why its Secret is not used, its credential is not renewed, nothing is
	// deleted there, or a kind cannot be listed.
	held *snapshot.Reason
	// noted is what is no failure: other management planes that write there, objects that wait, and kinds that its agent does not send.
	noted snapshot.Reasons
	// leaving is what is waited for before it can be deregistered; none if it stays.
	leaving snapshot.Reasons
	// broken are its objects that cannot be processed.
	broken []snapshot.Failure
}

func (c *clusterFailures) add(f snapshot.Failure) {
	switch {
	case f.Code == snapshot.SecretRefused, (f.Code == snapshot.WithdrawalHeld || f.Code == snapshot.CredentialNotRenewed || f.Code == snapshot.PermissionsMissing) && c.held == nil:
		c.held = &f.Reason
	case f.Code == snapshot.ClusterLeaving:
		c.leaving = snapshot.Reasons{f.Reason}
	case f.Code == snapshot.AnotherPlane, f.Code == snapshot.ObjectsWait, f.Code == snapshot.VersionSkew:
		c.noted = append(c.noted, f.Reason)
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
	var reasons snapshot.Reasons
	switch {
	case c == nil:
		said.State = multiclusterv1alpha1.ClusterStatePending
		reasons = snapshot.Reasons{{Code: snapshot.ClusterFrozen, What: "it is not connected yet"}}
	case c.Frozen():
		said.State = multiclusterv1alpha1.ClusterStateFailed
		outage := c.Outage()
		reasons = snapshot.Reasons{{Code: snapshot.ClusterFrozen, Cause: outage.Cause, What: outage.What}}
		if outage.Cause != "" {
			reasons[0].Hint = outage.Next
		}
		if failures.held != nil {
			reasons = append(reasons, *failures.held)
		} else if c.Reading {
			said.State = multiclusterv1alpha1.ClusterStateProcessing
		}
		reasons = append(reasons, failures.leaving...)
		said.Message = snapshot.Sentences(c.Unreachable(), reasons[1:].String())
	case failures.held != nil:
		said.State = multiclusterv1alpha1.ClusterStateFailed
		reasons = append(snapshot.Reasons{*failures.held}, failures.leaving...)
	case len(failures.broken) > 0:
		first := failures.broken[0]
		text := clip(fmt.Sprintf("%s: %s", first.Ref, first.Reason))
		if more := len(failures.broken) - 1; more > 0 {
			text += fmt.Sprintf("; and %d more objects", more)
		}
		reasons = append(snapshot.Reasons{{Code: first.Code, What: text}}, failures.leaving...)
	default:
		reasons = append(failures.leaving, failures.noted...)
	}
	if said.Message == "" {
		said.Message = reasons.String()
	}
	for _, r := range reasons {
		said.Reasons = append(said.Reasons, multiclusterv1alpha1.ClusterReason{Code: string(r.Code), Cause: string(r.Cause), What: r.What, Hint: r.Hint, ReleaseCode: r.ReleaseCode})
	}
	var connection *multiclusterv1alpha1.Connection
	if c != nil {
		connection = connectionOf(o.Status.Connection, c.Relay)
	}
	return &snapshot.Status{
		Ref: snapshot.RefOf(snapshot.KubernetesCluster, o),
		Value: &multiclusterv1alpha1.KubernetesClusterStatus{
			Status: []multiclusterv1alpha1.ClusterStatus{said}, Server: server, Connection: connection,
			ObservedGeneration: o.Generation, Conditions: clusterConditions(o, c, &said),
		},
	}
}

// clusterConditions are those of a cluster. One that does not answer is asked again, and nobody need do anything.
func clusterConditions(o *multiclusterv1alpha1.KubernetesCluster, c *snapshot.Cluster, said *multiclusterv1alpha1.ClusterStatus) []metav1.Condition {
	list := conditionList{generation: o.Generation}
	ready := list.of(commonv1.ConditionReady)
	if said.State != multiclusterv1alpha1.ClusterStateAccepted {
		ready.fail(said.Reasons[0].Code, said.Message)
	}
	list.conclude(ready, said.State != multiclusterv1alpha1.ClusterStateFailed || c.Frozen() && len(said.Reasons) == 1)
	return list.sorted()
}

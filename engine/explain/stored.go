package explain

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// NewStored is New for a State made of what the management plane has stored,
// without a look at the clusters. That they could not be read says nothing
// then: whether one is frozen, and which writes were refused, is what the
// statuses say that the server wrote.
func NewStored(state *snapshot.State) *Index {
	x := NewLive(state)
	x.unread = true
	for ref, issues := range x.issues {
		x.issues[ref] = slices.DeleteFunc(issues, func(i snapshot.Issue) bool { return i.Code == snapshot.ClusterFrozen })
	}
	return x
}

// NewLive is New for a State made by who looks on while a server works: which
// writes were refused, and what was not taken up yet, is what the statuses say
// that the server wrote.
func NewLive(state *snapshot.State) *Index {
	x := New(state)
	x.stored, x.pending = true, map[snapshot.Ref]bool{}
	m := state.Input.Management
	for _, p := range m.TrafficPolicies {
		x.readStored(snapshot.RefOf(snapshot.TrafficPolicy, p), p.Generation-p.Status.ObservedGeneration, p.Status.State, p.Status.Errors)
	}
	for _, p := range m.AccessPolicies {
		x.readStored(snapshot.RefOf(snapshot.AccessPolicy, p), p.Generation-p.Status.ObservedGeneration, p.Status.State, p.Status.Errors)
	}
	for _, v := range m.VirtualDestinations {
		x.readStored(snapshot.RefOf(snapshot.VirtualDestination, v), v.Generation-v.Status.ObservedGeneration, v.Status.State, v.Status.Errors)
	}
	for _, o := range m.ServiceDependencies {
		x.readStored(snapshot.RefOf(snapshot.ServiceDependency, o), o.Generation-o.Status.ObservedGeneration, o.Status.State, o.Status.Errors)
	}
	for _, v := range m.VirtualMeshes {
		x.readStored(snapshot.RefOf(snapshot.VirtualMesh, v), v.Generation-v.Status.ObservedGeneration, v.Status.State, v.Status.Errors)
	}
	for _, c := range m.KubernetesClusters {
		x.readStoredCluster(c)
	}
	return x
}

// readStoredCluster takes over what a stored status says of a cluster that can
// be read: that some of its objects cannot be processed.
func (x *Index) readStoredCluster(c *multiclusterv1alpha1.KubernetesCluster) {
	ref := snapshot.RefOf(snapshot.KubernetesCluster, c)
	for _, s := range c.Status.Status {
		if s.State == multiclusterv1alpha1.ClusterStateAccepted && s.Message != "" {
			x.issues[ref] = append(x.issues[ref], snapshot.Issue{
				Code: snapshot.ObjectUnreadable, Severity: snapshot.Error, Ref: ref,
				Message: s.Message, Hint: "see the log of `meshctl serve`",
			})
		}
	}
}

// readStored takes over what a stored status says: behind is by how many
// versions of the spec it is late.
func (x *Index) readStored(ref snapshot.Ref, behind int64, state commonv1.ApprovalState, errs []string) {
	if behind > 0 {
		x.pending[ref] = true
	}
	x.storedFailure(ref, state, errs)
}

// storedFailure makes an issue of a status that tells of refused writes.
func (x *Index) storedFailure(ref snapshot.Ref, state commonv1.ApprovalState, errs []string) {
	if state != commonv1.ApprovalStateFailed {
		return
	}
	issue := snapshot.Issue{
		Code: snapshot.WriteFailed, Severity: snapshot.Error, Ref: ref,
		Message: "objects generated from it could not be written: " + strings.Join(errs, "; "),
		Hint:    "fix what the API server reports; the write is retried",
	}
	x.issues[ref] = append(x.issues[ref], issue)
	for _, p := range x.state.Plan.Policies {
		if p.Ref != ref {
			continue
		}
		for _, v := range p.Verdicts {
			x.issues[v.Destination] = append(x.issues[v.Destination], issue)
		}
	}
}

// storedFrozen says why the server could not read a cluster when it last
// wrote a status; empty if it could, or wrote none.
func (x *Index) storedFrozen(cluster string) string {
	registration := x.registration(cluster)
	if registration == nil {
		return ""
	}
	for _, s := range registration.Status.Status {
		if s.State == multiclusterv1alpha1.ClusterStateFailed || s.State == multiclusterv1alpha1.ClusterStateInvalid {
			return strings.ToLower(string(s.State)) + prefixed(": ", s.Message)
		}
	}
	return ""
}

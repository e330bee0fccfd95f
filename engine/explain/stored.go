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
func NewStored(state *snapshot.State) *World {
	w := NewLive(state)
	w.unread = true
	for ref, issues := range w.issues {
		w.issues[ref] = slices.DeleteFunc(issues, func(i snapshot.Issue) bool { return i.Code == snapshot.ClusterFrozen })
	}
	return w
}

// NewLive is New for a State made by who looks on while a server works: which
// writes were refused, and what was not taken up yet, is what the statuses say
// that the server wrote.
func NewLive(state *snapshot.State) *World {
	w := New(state)
	w.stored, w.waiting = true, map[snapshot.Ref]bool{}
	m := state.Input.Management
	for _, p := range m.TrafficPolicies {
		w.readStored(snapshot.RefOf(snapshot.TrafficPolicy, p), p.Generation-p.Status.ObservedGeneration, p.Status.State, p.Status.Errors)
	}
	for _, p := range m.AccessPolicies {
		w.readStored(snapshot.RefOf(snapshot.AccessPolicy, p), p.Generation-p.Status.ObservedGeneration, p.Status.State, p.Status.Errors)
	}
	for _, v := range m.VirtualDestinations {
		w.readStored(snapshot.RefOf(snapshot.VirtualDestination, v), v.Generation-v.Status.ObservedGeneration, v.Status.State, v.Status.Errors)
	}
	for _, o := range m.ServiceDependencies {
		w.readStored(snapshot.RefOf(snapshot.ServiceDependency, o), o.Generation-o.Status.ObservedGeneration, o.Status.State, o.Status.Errors)
	}
	for _, v := range m.VirtualMeshes {
		w.readStored(snapshot.RefOf(snapshot.VirtualMesh, v), v.Generation-v.Status.ObservedGeneration, v.Status.State, v.Status.Errors)
	}
	return w
}

// readStored takes over what a stored status says: behind is by how many
// versions of the spec it is late.
func (w *World) readStored(ref snapshot.Ref, behind int64, state commonv1.ApprovalState, errs []string) {
	if behind > 0 {
		w.waiting[ref] = true
	}
	w.storedFailure(ref, state, errs)
}

// storedFailure makes an issue of a status that tells of refused writes.
func (w *World) storedFailure(ref snapshot.Ref, state commonv1.ApprovalState, errs []string) {
	if state != commonv1.ApprovalStateFailed {
		return
	}
	issue := snapshot.Issue{
		Code: snapshot.WriteFailed, Severity: snapshot.Error, Ref: ref,
		Message: "what follows from it could not be written: " + strings.Join(errs, "; "),
		Hint:    "mend what the API server names; the write is tried again",
	}
	w.issues[ref] = append(w.issues[ref], issue)
	for _, p := range w.state.Plan.Policies {
		if p.Ref != ref {
			continue
		}
		for _, v := range p.Verdicts {
			w.issues[v.Destination] = append(w.issues[v.Destination], issue)
		}
	}
}

// storedFrozen says why the server could not read a cluster when it last
// wrote a status; empty if it could, or wrote none.
func (w *World) storedFrozen(cluster string) string {
	for _, registration := range w.state.Input.Management.KubernetesClusters {
		if registration.Name != cluster {
			continue
		}
		for _, s := range registration.Status.Status {
			if s.State == multiclusterv1alpha1.ClusterStateFailed || s.State == multiclusterv1alpha1.ClusterStateInvalid {
				return strings.ToLower(string(s.State)) + prefixed(": ", s.Message)
			}
		}
	}
	return ""
}

package explain

import (
	"cmp"
	"fmt"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/status"
)

// NewStored is New for a State of which only the management plane was read, and not
// the clusters. Which clusters are frozen, and which writes were rejected, is taken
// from the statuses that the server wrote.
func NewStored(state *snapshot.State) *Index {
	return newIndexWithStatuses(state, true)
}

// NewLive is New for a State that was read while a server runs. Which policies are in
// force, which writes were rejected, and what was not processed yet is taken from the
// statuses that the server wrote. Where the State leads to another result, the
// descriptions show both; see Stored.
func NewLive(state *snapshot.State) *Index {
	return newIndexWithStatuses(state, false)
}

func newIndexWithStatuses(state *snapshot.State, unread bool) *Index {
	x := New(state)
	x.stored, x.unread, x.pending = map[snapshot.Ref]*storedStatus{}, unread, map[snapshot.Ref]bool{}
	if unread {
		x.issues.drop(func(i snapshot.Issue) bool { return i.Code == snapshot.ClusterFrozen })
	}
	x.issues.drop(func(i snapshot.Issue) bool {
		return i.Code == snapshot.ClusterFrozen && i.Ref.Kind == snapshot.KubernetesCluster && onlyByAgent(x, i.Ref.Name)
	})
	r := storedReader{x}
	why := r.whyDifferent()
	for s := range state.Output.Statuses.All() {
		if o := state.Input.Find(s.Ref); o != nil {
			r.status(s, o, why)
		}
	}
	if unread {
		r.findDeparted()
	}
	for _, c := range state.Input.Management.KubernetesClusters {
		r.cluster(c)
	}
	return x
}

// storedReader puts what stored statuses say into an Index.
type storedReader struct{ *Index }

// cluster makes issues of the status of a cluster that can be read, such as of objects that cannot be processed.
func (x storedReader) cluster(c *multiclusterv1alpha1.KubernetesCluster) {
	ref := snapshot.RefOf(snapshot.KubernetesCluster, c)
	for _, s := range c.Status.Status {
		if s.State != multiclusterv1alpha1.ClusterStateAccepted {
			continue
		}
		for _, r := range s.Reasons {
			x.issues.add(status.FailureIssue(snapshot.Failure{
				Ref: ref, Reason: snapshot.Reason{Code: snapshot.Code(r.Code), What: r.What, Hint: r.Hint},
			}), ref)
		}
		if len(s.Reasons) == 0 && s.Message != "" { // an earlier version has written it
			x.issues.add(snapshot.Issue{
				Code: snapshot.ObjectUnreadable, Severity: snapshot.Error, Ref: ref,
				Message: s.Message, Hint: "see the log of `meshctl serve`",
			}, ref)
		}
	}
}

// Stored is how the status that the server wrote differs from the one that follows
// from what was read now.
type Stored struct {
	// Generation of the spec that the status is about; 0 if no server wrote one.
	Generation  int64        `json:"observedGeneration"`
	Differences []Difference `json:"differences"`
	// Errors are those of the stored status as a whole.
	Errors []string `json:"errors,omitempty"`
	// Why the two differ, as far as that is known.
	Why string `json:"why"`
}

// Difference is a field of a status that would have another value.
type Difference struct {
	// Field is its name, such as state, or appliedTrafficPolicies.
	Field string `json:"field"`
	// On is the key of the destination, mesh or workload that it is about; empty
	// for the object as a whole.
	On string `json:"on,omitempty"`
	// Stored is its value in the status, and WouldBe the one that follows now.
	Stored  string `json:"stored"`
	WouldBe string `json:"wouldBe"`
}

// storedStatus is what an Index keeps of a status that the server wrote.
type storedStatus struct {
	statusFacts
	// behind: a later generation of the spec is stored than the status is about.
	behind bool
	// difference is nil if the same follows now.
	difference *Stored
}

// status compares the status of an object with the one that follows now.
func (x storedReader) status(now *snapshot.Status, o snapshot.APIObject, why string) {
	was, is := factsOf(snapshot.StatusOf(o)), factsOf(now.Value)
	if was == nil || is == nil {
		return
	}
	s := &storedStatus{statusFacts: *was, behind: was.judged && o.GetGeneration() > was.observed}
	if differences := differencesOf(was, is); len(differences) > 0 && (was.judged || was.observed > 0) {
		s.difference = &Stored{Generation: was.observed, Differences: differences, Errors: was.errors, Why: why}
		switch {
		case s.behind && was.observed == 0:
			s.difference.Why = "no server has processed it; check that one runs: meshctl serve"
		case s.behind:
			s.difference.Why = fmt.Sprintf("the server has not processed generation %d of it; check that it runs: meshctl serve", o.GetGeneration())
		}
	}
	x.stored[now.Ref] = s
	if s.behind {
		x.pending[now.Ref] = true
	}
	if was.state == commonv1.ApprovalStateFailed {
		x.failure(now.Ref, was.errors)
	}
	x.refusals(now.Ref, s, is)
}

// refusals makes issues of what the server rejects for reasons that do not
// follow from what was read here.
func (x storedReader) refusals(ref snapshot.Ref, s *storedStatus, now *statusFacts) {
	if s.behind || s.difference == nil {
		return
	}
	issue := func(errs []string) snapshot.Issue {
		return snapshot.Issue{
			Code: snapshot.StatusDiffers, Severity: snapshot.Error, Ref: ref,
			Message: "the server rejects it" + prefixed(": ", strings.Join(errs, "; ")), Hint: s.difference.Why,
		}
	}
	refused := false
	if p := x.policies[ref]; p != nil {
		for i := range p.Verdicts {
			v := &p.Verdicts[i]
			if was, known := s.targets[v.Destination.Key()]; known && v.Accepted && was.State == commonv1.ApprovalStateInvalid {
				on := issue(was.Errors)
				on.Target, refused = v.Destination, true
				x.issues.add(on, ref, v.Destination)
			}
		}
	}
	if !refused && s.state == commonv1.ApprovalStateInvalid && now.state != commonv1.ApprovalStateInvalid {
		x.issues.add(issue(s.errors), ref)
	}
}

// failure makes an issue of a status that reports rejected writes.
func (x storedReader) failure(ref snapshot.Ref, errs []string) {
	issue := snapshot.Issue{
		Code: snapshot.WriteFailed, Severity: snapshot.Error, Ref: ref,
		Message: "objects generated from it could not be written: " + strings.Join(errs, "; "),
		Hint:    "fix what they report; the writes are retried",
	}
	x.issues.add(issue, ref)
	if p := x.policies[ref]; p != nil {
		for i := range p.Verdicts {
			x.issues.add(issue, p.Verdicts[i].Destination)
		}
	}
}

// whyDifferent says why a status of the present generation may differ from what
// follows from what was read.
func (x storedReader) whyDifferent() string {
	in := x.state.Input
	var reasons []string
	if server := in.Management.Server().Version; server != "" && in.Version != "" && server != in.Version {
		reasons = append(reasons, fmt.Sprintf("the server is meshctl %s, this is %s", server, in.Version))
	}
	if x.unread {
		reasons = append(reasons, "the server also reads the registered clusters, which were not read here")
	}
	for _, c := range in.Clusters {
		if o := x.storedOutage(c.Name); o != nil && !x.unread && !c.Frozen() {
			reasons = append(reasons, fmt.Sprintf("the server cannot read cluster %s (%s)", c.Name, o.What))
		}
	}
	if len(reasons) == 0 {
		return "the server has not processed what was read here; if it does not change, check that it runs: meshctl serve"
	}
	return strings.Join(reasons, "; ")
}

// storedOutage is why the server could not read a cluster when it last
// wrote a status; nil if it could, or wrote none.
func (x *Index) storedOutage(cluster string) *snapshot.Outage {
	registration := x.registration(cluster)
	if registration == nil {
		return nil
	}
	for _, s := range registration.Status.Status {
		switch s.State {
		case multiclusterv1alpha1.ClusterStateFailed, multiclusterv1alpha1.ClusterStateInvalid, multiclusterv1alpha1.ClusterStateProcessing:
			if len(s.Reasons) == 0 { // an earlier serve says none
				return snapshot.NewOutage(cluster, "", cmp.Or(s.Message, strings.ToLower(string(s.State))))
			}
			for _, r := range s.Reasons {
				if snapshot.Code(r.Code) == snapshot.ClusterFrozen {
					return snapshot.NewOutage(cluster, snapshot.Code(r.Cause), cmp.Or(r.What, strings.ToLower(string(s.State))))
				}
			}
		}
	}
	return nil
}

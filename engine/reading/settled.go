package reading

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Settled is what became of an object that was written.
type Settled struct {
	// Unserved: no serve leads, so that nothing becomes of it yet.
	Unserved bool
	// Unseen: serve says what became of it, but the clusters did not have it, or could not be read, in time.
	Unseen bool
	// Unjudged: it is of a kind of which serve writes no status, so that there is nothing to wait for. Reason is what is known of it.
	Unjudged bool
	// State is PENDING if serve did not process it in time.
	State commonv1.ApprovalState
	// Clusters are those that have what follows from it, ascending.
	Clusters []string
	// Reason says why it is not in force as a whole; empty if it is.
	Reason string
}

// Known reports whether serve has decided what becomes of it.
func (s *Settled) Known() bool {
	return !s.Unserved && !s.Unseen && !s.Unjudged && s.State != commonv1.ApprovalStatePending
}

// Text is the outcome as a sentence.
func (s *Settled) Text() string {
	switch {
	case s.Unserved:
		return "Nothing serves: it takes effect when `meshctl serve` runs."
	case s.Unjudged && s.Reason == "":
		return "`meshctl serve` writes no status of objects of this kind."
	case s.Unjudged:
		return "It is written: " + s.Reason + "."
	case s.State == commonv1.ApprovalStateAccepted && s.Unseen:
		return "`meshctl serve` accepted it, but not all clusters were seen to have it within " + settleLimit.String() + "; `meshctl check` compares them."
	case s.State == commonv1.ApprovalStateAccepted && len(s.Clusters) > 0:
		return "In force in " + strings.Join(s.Clusters, ", ") + "."
	case s.State == commonv1.ApprovalStateAccepted:
		return "Accepted; nothing had to be written for it in any cluster."
	case s.State == commonv1.ApprovalStatePending:
		return "`meshctl serve` has not processed it yet; `meshctl describe` shows when it has."
	}
	if s.Reason == "" {
		return "It is " + string(s.State) + "; `meshctl describe` says why."
	}
	return "It is " + string(s.State) + ": " + s.Reason + "."
}

const (
	// settleLimit bounds the wait for serve, and settlePoll is the pause between two looks.
	settleLimit = 10 * time.Second
	settlePoll  = 200 * time.Millisecond
)

// Settle waits until serve has processed an object, and what follows from it is in the clusters.
func (m Management) Settle(ctx context.Context, ref snapshot.Ref) (*Settled, error) {
	reading, err := m.Stored(ctx)
	if err != nil {
		return nil, err
	}
	issues := reading.Index(nil).Issues()
	if ref.Kind.Info().Access&snapshot.WriteStatus == 0 {
		return unjudged(issues, ref), nil
	}
	if slices.ContainsFunc(issues, func(i snapshot.Issue) bool { return i.Code == snapshot.NotServed }) {
		return &Settled{Unserved: true}, nil
	}
	client, err := dynamic.NewForConfig(m.Config)
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	processed := false
	for limited.Err() == nil {
		o, err := client.Resource(ref.Kind.GroupVersionResource()).Namespace(ref.Namespace).Get(limited, ref.Name, metav1.GetOptions{})
		switch {
		case limited.Err() != nil:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		if observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); observed == o.GetGeneration() {
			processed = true
			if settled := m.settled(limited, ref); settled != nil {
				return settled, nil
			}
		}
		select {
		case <-limited.Done():
		case <-time.After(settlePoll):
		}
	}
	if processed && ctx.Err() == nil {
		if reading, err = m.Stored(ctx); err != nil {
			return nil, err
		}
		if out := outcome(reading.Index(nil), ref); out != nil {
			out.Unseen = true
			return out, nil
		}
	}
	return &Settled{State: commonv1.ApprovalStatePending}, nil
}

// unjudged is what is known of an object of a kind of which serve writes no status.
func unjudged(issues []snapshot.Issue, ref snapshot.Ref) *Settled {
	out := &Settled{Unjudged: true}
	if at := slices.IndexFunc(issues, func(i snapshot.Issue) bool { return i.Ref == ref }); at >= 0 {
		out.Reason = issues[at].Message
	}
	return out
}

// settled looks whether what follows from an object is in the clusters; nil if not yet.
func (m Management) settled(ctx context.Context, ref snapshot.Ref) *Settled {
	reading, err := m.InForce(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		// Who may not read the clusters knows what serve says.
		if reading, err = m.Stored(ctx); err != nil {
			return nil
		}
	}
	return outcome(reading.Index(nil), ref)
}

// outcome is what an Index says of an object; nil if that is not decided yet.
func outcome(index *explain.Index, ref snapshot.Ref) *Settled {
	out := &Settled{}
	var targets []explain.PolicyTarget
	switch described := index.Describe(ref).(type) {
	case *explain.Policy:
		out.State, targets = described.State, described.Targets
		out.Reason = firstError(described.Issues)
	case *explain.VirtualMesh:
		out.State, out.Reason = described.State, firstError(described.Issues)
	case *explain.ServiceDependency:
		out.State, out.Reason = commonv1.ApprovalState(described.State), firstError(described.Issues)
	case *explain.VirtualDestination:
		out.State, out.Reason = described.State, firstError(described.Issues)
	default:
		return nil
	}
	if out.State == commonv1.ApprovalStatePending || out.State == explain.StateDiffers {
		return nil
	}
	for _, t := range targets {
		if t.State == string(commonv1.ApprovalStateAccepted) {
			out.in(t.Cluster)
		}
	}
	generated, err := index.Generated(ref)
	if err != nil {
		return nil
	}
	for _, g := range generated {
		for _, v := range g.Variants {
			out.in(v.Clusters...)
		}
	}
	slices.Sort(out.Clusters)
	return out
}

func (s *Settled) in(clusters ...string) {
	for _, c := range clusters {
		if c != "" && !slices.Contains(s.Clusters, c) {
			s.Clusters = append(s.Clusters, c)
		}
	}
}

// firstError is the worst issue, if it is an error.
func firstError(issues []snapshot.Issue) string {
	if len(issues) > 0 && issues[0].Severity == snapshot.Error {
		return issues[0].Message
	}
	return ""
}

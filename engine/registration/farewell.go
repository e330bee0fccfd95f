package registration

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultLeaveWait is how long a cluster is given to be left by its agent: its meshes may have to get back their own certificates.
const DefaultLeaveWait = 15 * time.Minute

// awayPatience is how long an agent may be away meanwhile: it may start again.
const awayPatience = time.Minute

// farewell deregisters a cluster through its agent: serve wants nothing there any more, and when nothing of it is left, has the agent
// remove itself. The registration says so, and stays until then.
type farewell struct{ *deregistration }

// byAgent reports whether the cluster is to be left through its agent.
func byAgent(d *deregistration) bool {
	return d.relayed() && d.RemoteConfig == nil && !d.Force && !d.KeepTraffic && d.Store != nil
}

// AgentAwayError: a cluster cannot be left, because its agent is not connected.
type AgentAwayError struct {
	Name string
	// Since is for how long it is away; empty if it was never here. Reason is what serve reports.
	Since, Reason string
	// Marked: the cluster leaves, and the command goes on when it is run again.
	Marked bool
}

func (e *AgentAwayError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *AgentAwayError) Advice() (what, hint string) {
	before := "nothing was changed, because its agent "
	if e.Marked {
		before = "it leaves, and waits for its agent, which "
	}
	return fmt.Sprintf("cluster %s: %s%s", e.Name, before, e.away()),
		"make the agent connect and run the command again; or name a context of the cluster with --remote-context; or use --force: then what is there stays, and the agent removes it when it comes back"
}

// away says since when the agent is away, and why, as the end of a sentence about it.
func (e *AgentAwayError) away() string {
	is := "is away"
	if e.Since != "" {
		is += " for " + e.Since
	}
	return is + ": " + e.Reason
}

// leavesError rejects a registration of a cluster that leaves.
func leavesError(name, namespace string) error {
	return &NameTakenError{Name: name, Reason: fmt.Sprintf("it is being deregistered through its agent; finish that with `meshctl cluster deregister %s`, or keep it with `kubectl -n %s annotate kubernetescluster %s %s-`",
		name, namespace, name, snapshot.LeavingAnnotation)}
}

// check makes sure that the cluster can be left through its agent. It changes nothing.
func (f farewell) check(ctx context.Context) error {
	wanted := kubernetesClusters.access(f.MgmtNamespace, f.Name).each("get", "patch")
	wanted = append(wanted, leases.access(f.MgmtNamespace, cluster.LeaseName).each("get")...)
	if err := f.management.require(ctx, wanted); err != nil {
		return err
	}
	held, err := f.management.isHeld(ctx, f.MgmtNamespace, cluster.LeaseName)
	switch {
	case err != nil:
		return fmt.Errorf("%s: reading Lease %s/%s: %w", f.management.label, f.MgmtNamespace, cluster.LeaseName, err)
	case !held:
		return fmt.Errorf("cluster %s: nothing was changed: %w; start it, or name a context of the cluster with --remote-context", f.Name, errUnheard)
	case leavingReason(f.cluster).Cause == snapshot.LeavingDone || leavingReason(f.cluster).Cause == snapshot.LeavingStays:
		return nil // it is away because it has gone
	}
	return f.away(f.cluster)
}

// errUnheard: nobody can tell an agent anything.
var errUnheard = errors.New("it is reached through its agent, and no `meshctl serve` runs that the agent could hear")

// away is an error if the agent is not connected.
func (f farewell) away(kc *multiclusterv1alpha1.KubernetesCluster) error {
	e := &AgentAwayError{Name: f.Name, Reason: "it has not connected yet", Marked: kc.Annotations[snapshot.LeavingAnnotation] != ""}
	if c := kc.Status.Connection; c != nil {
		switch c.State {
		case multiclusterv1alpha1.ConnectionStateResync, multiclusterv1alpha1.ConnectionStateStuck, multiclusterv1alpha1.ConnectionStateConnected:
			return nil
		case multiclusterv1alpha1.ConnectionStateAwaited, multiclusterv1alpha1.ConnectionStateRefused, multiclusterv1alpha1.ConnectionStateLost:
		}
		if c.Since != nil && c.State != multiclusterv1alpha1.ConnectionStateAwaited {
			e.Since = duration.HumanDuration(max(time.Since(c.Since.Time), 0))
		}
		if c.Reason != nil {
			e.Reason = c.Reason.What
		}
	}
	return e
}

// leavingReason is what serve says that a cluster waits for; zero if it does not leave, or serve has not taken notice.
func leavingReason(kc *multiclusterv1alpha1.KubernetesCluster) snapshot.Reason {
	if kc.Annotations[snapshot.LeavingAnnotation] == "" {
		return snapshot.Reason{}
	}
	for i := range kc.Status.Status {
		if r := messageIn(&kc.Status.Status[i]).reasons.Of(snapshot.ClusterLeaving); r != nil {
			return *r
		}
	}
	return snapshot.Reason{}
}

// run has the cluster left, and waits until it is. Stays says why the agent is still there although nothing else is.
func (f farewell) run(ctx context.Context) (stays, err error) {
	if f.cluster.Annotations[snapshot.LeavingAnnotation] == "" {
		if err := f.mark(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(f.LeaveWait, DefaultLeaveWait), errLeaveWait)
	defer cancel()
	waits := leaveWait{farewell: f, began: time.Now(), what: "meshctl serve takes notice"}
	for {
		kc, err := f.management.getKubernetesCluster(ctx, f.MgmtNamespace, f.Name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return nil, err
		case kc == nil:
			return nil, errors.New("its registration was removed in the meantime, by somebody else")
		default:
			if done, stays, err := waits.look(kc); done || err != nil {
				return stays, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it leaves, and waited until %s when the command ended: %w; run it again, which goes on; `meshctl cluster list` shows how far it is", waits.what, context.Cause(ctx))
		case <-time.After(servePoll):
		}
	}
}

// noteRest says what the agent may not delete.
func (f farewell) noteRest() {
	f.report.note(fmt.Sprintf("namespace %s stays on the cluster: its agent may not delete it; run `kubectl delete namespace %s` there if nobody else uses it", f.RemoteNamespace, f.RemoteNamespace))
	commands := ""
	for _, o := range invitedRest(f.plane.ID) {
		commands += "\nkubectl delete " + kubectlName(o)
	}
	f.report.note("if the cluster was invited, what limited its agent stays, which nobody has rights by; these commands remove it:" + commands + "\n")
}

// errLeaveWait ends a wait that takes too long.
var errLeaveWait = errors.New("that takes too long")

// mark says that the cluster leaves.
func (f farewell) mark(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		snapshot.LeavingAnnotation: time.Now().UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return err
	}
	_, err = f.management.client(kubernetesClusters, f.MgmtNamespace).Patch(ctx, f.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: snapshot.FieldManager + "-leave"})
	if err != nil {
		return fmt.Errorf("%s: KubernetesCluster %s/%s cannot be annotated: %w", f.management.label, f.MgmtNamespace, f.Name, err)
	}
	f.report.add((&object{resource: kubernetesClusters, namespace: f.MgmtNamespace, name: f.Name}).change(f.management, Updated))
	return nil
}

// leaveWait is one wait for a cluster to be left.
type leaveWait struct {
	farewell
	began time.Time
	// what is waited for, as the end of a sentence, and said is what was told of it.
	what, said string
	// away is since when the agent is away; zero if it is not.
	away time.Time
}

// look is one look at what serve reports.
func (w *leaveWait) look(kc *multiclusterv1alpha1.KubernetesCluster) (done bool, stays, err error) {
	now, reason := time.Now(), leavingReason(kc)
	switch reason.Cause {
	case snapshot.LeavingDone:
		return true, nil, nil
	case snapshot.LeavingStays:
		return true, errors.New(reason.What), nil
	case "":
		if now.Sub(w.began) > w.ServeWait {
			return false, nil, errors.New("meshctl serve has not taken notice that it leaves: see its log, and upgrade it if it is of an earlier version; the cluster stays marked, and the command goes on when it is run again")
		}
	}
	if err := w.farewell.away(kc); err == nil {
		w.away = time.Time{}
	} else if w.away.IsZero() {
		w.away = now
	} else if now.Sub(w.away) > awayPatience {
		return false, nil, err
	}
	if reason.What != "" {
		w.what = reason.What
	}
	if w.said != w.what && w.Progress != nil && now.Sub(w.began) > announceAfter {
		w.said = w.what
		w.Progress("Cluster " + w.Name + " leaves: " + w.what + ".")
	}
	return false, nil, nil
}

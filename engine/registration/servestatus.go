package registration

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ServeStatus is what serve reports about its connection to a registered cluster.
type ServeStatus string

const (
	// ServeReaches: serve reads the cluster with the stored credential.
	ServeReaches ServeStatus = "reached"
	// ServeFails: serve cannot use the stored credential, or cannot reach the cluster.
	ServeFails ServeStatus = "failed"
	// ServePending: serve has not reported yet.
	ServePending ServeStatus = "pending"
)

// DefaultRegisterWait is how long commands wait for serve; it asks a server that does not answer
// for three seconds.
const DefaultRegisterWait = 20 * time.Second

const (
	// servePoll is the pause between two reads of the status.
	servePoll = 250 * time.Millisecond
	// announceAfter is how long the command waits before it says so.
	announceAfter = 2 * time.Second
	// failureGrace is how long serve must report a failure before the command fails: the first attempt may come too early.
	failureGrace = 3 * time.Second
)

// awaitServe waits until serve, if one runs, has reported whether it reaches the cluster with the
// credential that is stored now.
func (r *registration) awaitServe(ctx context.Context) error {
	if r.ServeWait <= 0 {
		return nil
	}
	held, err := r.management.isHeld(ctx, r.MgmtNamespace, cluster.LeaseName)
	if err != nil {
		return fmt.Errorf("cluster %s: it is registered; reading Lease %s/%s: %w", r.Name, r.MgmtNamespace, cluster.LeaseName, err)
	}
	if !held {
		return nil
	}
	secret, err := storedSecret(ctx, r.management.clientset, r.MgmtNamespace, r.Name)
	if err != nil {
		return err
	}
	began, announced, message := time.Now(), false, ""
	var failing time.Time
	err = wait.PollUntilContextTimeout(ctx, servePoll, r.ServeWait, true, func(ctx context.Context) (bool, error) {
		kc, err := r.management.getKubernetesCluster(ctx, r.MgmtNamespace, r.Name)
		if err != nil || kc == nil {
			return false, err
		}
		if r.report.Serve, message = serveStatus(kc, cluster.Fingerprint(secret)); r.report.Serve != ServeFails {
			failing = time.Time{}
		} else if failing.IsZero() {
			failing = time.Now()
		}
		if !announced && time.Since(began) > announceAfter {
			announced = true
			r.Progress(fmt.Sprintf("Waiting until meshctl serve has connected to cluster %s", r.Name))
		}
		return r.report.Serve == ServeReaches || !failing.IsZero() && time.Since(failing) >= failureGrace, nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !wait.Interrupted(err):
		return fmt.Errorf("cluster %s: it is registered; reading what meshctl serve reports about it: %w", r.Name, err)
	case r.report.Serve == ServeFails:
		return &ServeError{Name: r.Name, Reason: message}
	case r.report.Serve != ServeReaches:
		r.report.Serve = ServePending
		r.report.note(fmt.Sprintf("meshctl serve runs, but has not reported within %s whether it reaches the cluster; `meshctl cluster list` will show it", r.ServeWait))
	case message != "":
		r.report.note("serve says: " + message)
	}
	return nil
}

// serveStatus returns what the status of a KubernetesCluster reports about the credential with a fingerprint;
// pending if it is about another one.
func serveStatus(kc *multiclusterv1alpha1.KubernetesCluster, fingerprint string) (ServeStatus, string) {
	for i := range kc.Status.Status {
		s := &kc.Status.Status[i]
		m := messageIn(s)
		reached := m.reasons.Of(snapshot.ClusterFrozen) == nil && m.reasons.Of(snapshot.WithdrawalHeld, snapshot.CredentialNotRenewed) != nil
		switch {
		case s.Credential != fingerprint || s.ObservedGeneration != kc.Generation:
		case s.State == multiclusterv1alpha1.ClusterStateAccepted || reached:
			return ServeReaches, s.Message
		case s.State == multiclusterv1alpha1.ClusterStateFailed, s.State == multiclusterv1alpha1.ClusterStateInvalid:
			return ServeFails, cmp.Or(m.reasons.String(), s.Message)
		}
	}
	return ServePending, ""
}

// ServeError: a cluster is registered, but serve cannot use it.
type ServeError struct {
	Name string
	// Reason is what serve reports.
	Reason string
}

func (e *ServeError) Error() string {
	return fmt.Sprintf("cluster %s is registered, but meshctl serve does not reach it: %s; "+
		"correct that and serve connects by itself, or register it again with another --api-server-address, or run `meshctl cluster deregister %s`",
		e.Name, e.Reason, e.Name)
}

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

// ServeSays is what serve says of a registered cluster.
type ServeSays string

const (
	// ServeReaches: serve reads the cluster with the stored credential.
	ServeReaches ServeSays = "reached"
	// ServeFails: serve cannot use the stored credential, or cannot reach the cluster.
	ServeFails ServeSays = "failed"
	// ServePending: serve has not said yet.
	ServePending ServeSays = "pending"
)

// DefaultRegisterWait is how long commands wait for serve; it asks a server that does not answer
// for three seconds.
const DefaultRegisterWait = 20 * time.Second

const (
	// sayPause is the pause between two looks at what serve says.
	sayPause = 250 * time.Millisecond
	// sayQuiet is after how long the wait is told.
	sayQuiet = 2 * time.Second
	// failsFor is how long serve has to say that it fails: the first attempt may come too early.
	failsFor = 3 * time.Second
)

// awaitServe waits until serve, if one runs, has said whether it reaches the cluster with what was
// stored now.
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
	began, told, message := time.Now(), false, ""
	var failing time.Time
	err = wait.PollUntilContextTimeout(ctx, sayPause, r.ServeWait, true, func(ctx context.Context) (bool, error) {
		kc, err := r.management.getKubernetesCluster(ctx, r.MgmtNamespace, r.Name)
		if err != nil || kc == nil {
			return false, err
		}
		if r.report.Serve, message = serveSays(kc, cluster.Fingerprint(secret)); r.report.Serve != ServeFails {
			failing = time.Time{}
		} else if failing.IsZero() {
			failing = time.Now()
		}
		if !told && time.Since(began) > sayQuiet {
			told = true
			r.Progress(fmt.Sprintf("Waiting until meshctl serve has connected to cluster %s", r.Name))
		}
		return r.report.Serve == ServeReaches || !failing.IsZero() && time.Since(failing) >= failsFor, nil
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

// serveSays is what the status of a KubernetesCluster says about the credential of a fingerprint;
// pending if it is about another.
func serveSays(kc *multiclusterv1alpha1.KubernetesCluster, fingerprint string) (ServeSays, string) {
	for i := range kc.Status.Status {
		s := &kc.Status.Status[i]
		said := saidIn(s)
		reached := said.reasons.Of(snapshot.ClusterFrozen) == nil && said.reasons.Of(snapshot.WithdrawalHeld, snapshot.CredentialNotRenewed) != nil
		switch {
		case s.Credential != fingerprint || s.ObservedGeneration != kc.Generation:
		case s.State == multiclusterv1alpha1.ClusterStateAccepted || reached:
			return ServeReaches, s.Message
		case s.State == multiclusterv1alpha1.ClusterStateFailed, s.State == multiclusterv1alpha1.ClusterStateInvalid:
			return ServeFails, cmp.Or(said.reasons.String(), s.Message)
		}
	}
	return ServePending, ""
}

// ServeError says that a cluster is registered, and that serve cannot use it.
type ServeError struct {
	Name string
	// Reason is what serve says.
	Reason string
}

func (e *ServeError) Error() string {
	return fmt.Sprintf("cluster %s is registered, but meshctl serve does not reach it: %s; "+
		"correct that and serve connects by itself, or register it again with another --api-server-address, or run `meshctl cluster deregister %s`",
		e.Name, e.Reason, e.Name)
}

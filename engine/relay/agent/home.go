package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Registered is the Home that registration makes: all of it is owned by one ClusterRole, which is the only one that the agent may delete.
// Kubernetes collects the rest. In an invited cluster, that owns nothing, and the agent may delete its rights and its Deployment: see invited.
// The agent has no right to delete what limits it, nor its namespace.
type Registered struct {
	// Client reaches the agent's cluster, Namespace is that of the agent, and Plane is the UID of the management plane.
	Client           kube.Clientset
	Namespace, Plane string
}

// leaveTimeout bounds one attempt.
const leaveTimeout = time.Minute

// Leave implements Home. What the agent itself has made, and may not delete, is given to the same owner first.
func (r Registered) Leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	owner := metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: snapshot.RelayLeaveName(r.Plane)}
	var err error
	if owner.UID, err = r.delete(ctx, owner, true); err != nil {
		return err
	}
	if err := r.give(ctx, owner); err != nil {
		return err
	}
	here := invited{r}
	switch alone, err := here.may(ctx); {
	case err != nil:
		return err
	case alone:
		// When its Deployment is deleted, the agent is told to end, and does so when the rest is done.
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		if err := here.remove(ctx); err != nil {
			return err
		}
	}
	_, err = r.delete(ctx, owner, false)
	return err
}

// delete deletes the ClusterRole and returns its UID; dry: it only finds out whether it may, and needs no right to read it for that.
func (r Registered) delete(ctx context.Context, owner metav1.OwnerReference, dry bool) (types.UID, error) {
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	} else {
		options.Preconditions = &metav1.Preconditions{UID: &owner.UID}
	}
	var done metav1.Status
	err := r.Client.RbacV1().RESTClient().Delete().Resource("clusterroles").Name(owner.Name).Body(&options).Do(ctx).Into(&done)
	switch {
	case !dry && apierrors.IsNotFound(err):
		return owner.UID, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return "", fmt.Errorf("ClusterRole %s, which would take with it what registration made for the agent, is not there or may not be deleted by it: the cluster was invited or registered by an earlier version", owner.Name)
	case err != nil:
		return "", fmt.Errorf("ClusterRole %s: deleting: %w", owner.Name, err)
	case done.Details == nil || done.Details.UID == "":
		return "", fmt.Errorf("ClusterRole %s: the API server does not say its UID", owner.Name)
	}
	return done.Details.UID, nil
}

// give makes the ClusterRole an owner of the agent's certificate and of its Lease.
func (r Registered) give(ctx context.Context, owner metav1.OwnerReference) error {
	secrets, leases := r.Client.CoreV1().Secrets(r.Namespace), r.Client.CoordinationV1().Leases(r.Namespace)
	err := r.own(ctx, owner, func(ctx context.Context, own func(metav1.Object) bool) error {
		o, err := secrets.Get(ctx, snapshot.RelayClientSecret, metav1.GetOptions{})
		if err == nil && own(o) {
			_, err = secrets.Update(ctx, o, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", r.Namespace, snapshot.RelayClientSecret, err)
	}
	err = r.own(ctx, owner, func(ctx context.Context, own func(metav1.Object) bool) error {
		o, err := leases.Get(ctx, snapshot.AgentLease, metav1.GetOptions{})
		if err == nil && own(o) {
			_, err = leases.Update(ctx, o, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("Lease %s/%s: %w", r.Namespace, snapshot.AgentLease, err)
	}
	return nil
}

// own tries an update until nobody else changes the object at the same time. What is not there needs no owner.
func (r Registered) own(ctx context.Context, owner metav1.OwnerReference, update func(context.Context, func(metav1.Object) bool) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		return update(ctx, func(o metav1.Object) bool {
			all := o.GetOwnerReferences()
			if slices.ContainsFunc(all, func(is metav1.OwnerReference) bool { return is.UID == owner.UID }) {
				return false
			}
			o.SetOwnerReferences(append(all, owner))
			return true
		})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

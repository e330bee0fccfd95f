package agent

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// invited is the home of an agent whose cluster was invited. Nobody could say there whom the objects are owned by, so that the agent deletes
// them by name: what gives it rights, and at last its Deployment.
type invited struct{ Registered }

// invitedPause is that before what failed is tried again.
const invitedPause = time.Second

func (i invited) name() string { return snapshot.AgentNamePrefix + i.Plane }

// may reports whether the agent may delete its Deployment: it may only in such a cluster.
func (i invited) may(ctx context.Context) (bool, error) {
	review, err := i.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: i.Namespace, Verb: "delete", Group: "apps", Resource: "deployments", Name: i.name(),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("Deployment %s/%s: asking whether it may be deleted: %w", i.Namespace, i.name(), err)
	}
	return review.Status.Allowed, nil
}

// remove deletes everything. The agent could not begin again after a part of it, so each part is tried until it succeeds or ctx ends.
func (i invited) remove(ctx context.Context) error {
	deployments, rbac, name := i.Client.AppsV1().Deployments(i.Namespace), i.Client.RbacV1(), i.name()
	steps := []func(context.Context) error{
		i.removeRoles,
		func(ctx context.Context) error {
			return removed("ClusterRoleBinding", name, rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
		},
		func(ctx context.Context) error {
			relay := name + snapshot.AgentRelaySuffix
			return removed("ClusterRoleBinding", relay, rbac.ClusterRoleBindings().Delete(ctx, relay, metav1.DeleteOptions{}))
		},
		func(ctx context.Context) error {
			return removed("ClusterRole", name, rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
		},
		func(ctx context.Context) error {
			return removed("Deployment", i.Namespace+"/"+name, deployments.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
		},
	}
	for _, step := range steps {
		var last error
		err := wait.PollUntilContextCancel(ctx, invitedPause, true, func(ctx context.Context) (bool, error) {
			last = step(ctx)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%w: %w", err, last)
		}
	}
	return nil
}

// removeRoles deletes the Roles of the agent in all namespaces, after what binds them to it.
func (i invited) removeRoles(ctx context.Context) error {
	for _, suffix := range []string{snapshot.AgentMoreSuffix, snapshot.AgentRelaySuffix, ""} {
		name := i.name() + suffix
		only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
		bindings, err := i.Client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, only)
		if err != nil {
			return fmt.Errorf("RoleBindings %s: listing: %w", name, err)
		}
		for n := range bindings.Items {
			o := &bindings.Items[n]
			if err := removed("RoleBinding", o.Namespace+"/"+name, i.Client.RbacV1().RoleBindings(o.Namespace).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
				return err
			}
		}
		roles, err := i.Client.RbacV1().Roles(metav1.NamespaceAll).List(ctx, only)
		if err != nil {
			return fmt.Errorf("Roles %s: listing: %w", name, err)
		}
		for n := range roles.Items {
			o := &roles.Items[n]
			if err := removed("Role", o.Namespace+"/"+name, i.Client.RbacV1().Roles(o.Namespace).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
				return err
			}
		}
	}
	return nil
}

// removed is the error of a deletion; what is not there is deleted.
func removed(kind, name string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s %s: deleting: %w", kind, name, err)
}

package registration

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file lets an agent remove itself from its cluster: all that registration makes for it is owned by one ClusterRole, and this one the
// agent may delete. Kubernetes collects what is owned by it. So the agent needs no right on what limits it.

// leaveRules allow to delete the owner, and nothing else.
func leaveRules(planeID string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{named(rule(clusterRoles.Group, []string{clusterRoles.Resource}, "delete"), snapshot.RelayLeaveName(planeID))}
}

// leaveObjects are the owner, and what lets the agent delete it.
func (r *via) leaveObjects() []*object {
	name, labels := snapshot.RelayLeaveName(r.plane.ID), r.labels()
	return r.clusterRoleObjects(name, name, labels, labels, leaveRules(r.plane.ID), AgentName(r.plane.ID))
}

// own makes an object that was written the owner of what is written from now on, if it is to be that.
func (r *via) own(ctx context.Context, o *object) error {
	if !r.relayed() || o.resource != clusterRoles || o.name != snapshot.RelayLeaveName(r.plane.ID) {
		return nil
	}
	found, err := r.remote.get(ctx, o.resource, o.namespace, o.name)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("%s: %s was deleted in the meantime; try again", r.remote.label, o.describe())
	}
	r.owner = &metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: o.kind, Name: o.name, UID: found.GetUID()}
	return nil
}

// disown keeps what is not written again from going with the owner, now that the agent does not speak for the cluster any more.
func (r *via) disown(ctx context.Context) error {
	for _, of := range []resource{roles, roleBindings} {
		name := moreName(r.plane.ID)
		_, err := r.remote.client(of, r.RemoteNamespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`),
			metav1.PatchOptions{FieldManager: snapshot.FieldManager})
		if err != nil && !kube.IsAbsent(err) {
			return fmt.Errorf("%s: %s %s/%s: removing its owner: %w", r.remote.label, of.kind, r.RemoteNamespace, name, err)
		}
	}
	return nil
}

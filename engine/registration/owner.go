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
//
// The manifests of an invited cluster cannot say whom they are owned by: an owner has no UID before it is there. There, the agent may delete
// by name what gives it rights, and its Deployment: whoever has its account can only take from it. What limits it stays, for nobody.

// leaveRules allow to delete the owner, and nothing else.
func leaveRules(planeID string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{named(rule(clusterRoles.Group, []string{clusterRoles.Resource}, "delete"), snapshot.RelayLeaveName(planeID))}
}

// invitedLeaveRules allow beside that to delete what gives the agent rights, in whichever namespace that is, and its Deployment.
func invitedLeaveRules(planeID string) []rbacv1.PolicyRule {
	agent, relay, more := AgentName(planeID), RelayRoleName(planeID), moreName(planeID)
	return []rbacv1.PolicyRule{
		named(rule(clusterRoles.Group, []string{clusterRoles.Resource}, "delete"), snapshot.RelayLeaveName(planeID), agent),
		named(rule(clusterRoleBindings.Group, []string{clusterRoleBindings.Resource}, "delete"), agent, relay),
		named(rule(roles.Group, []string{roleBindings.Resource, roles.Resource}, "delete", "list"), agent, relay, more),
		named(rule(deployments.Group, []string{deployments.Resource}, "delete"), agent),
	}
}

// leaveObjects are the owner, and what lets the agent delete it.
func (r *via) leaveObjects() []*object {
	name, labels, rules := snapshot.RelayLeaveName(r.plane.ID), wantedBy(r.registration).labels(), leaveRules(r.plane.ID)
	if r.remote == nil {
		rules = invitedLeaveRules(r.plane.ID)
	}
	return wantedBy(r.registration).clusterRoleObjects(name, name, labels, labels, rules, AgentName(r.plane.ID))
}

// invitedRest is what the agent of an invited cluster leaves there beside its namespace: it gives nobody a right. Other clusters have nothing of it.
func invitedRest(planeID string) []*object {
	return []*object{
		{resource: clusterRoleBindings, name: snapshot.RelayLeaveName(planeID)}, {resource: clusterRoles, name: RoleName(planeID)},
		{resource: policyBindings, name: AgentName(planeID)}, {resource: policies, name: AgentName(planeID)},
		{resource: policyBindings, name: HostsPolicyName(planeID)}, {resource: policies, name: HostsPolicyName(planeID)},
	}
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

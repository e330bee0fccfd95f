package registration_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// planeID is the identity of the management plane in a namespace.
func planeID(t *testing.T, management *rest.Config, namespace string) string {
	t.Helper()
	id, err := cluster.PlaneID(t.Context(), sandboxtest.Clientset(t, management), namespace)
	require.NoError(t, err)
	return id
}

// TestTwoManagementPlanesRegisterOneCluster, under the same name or another one, with the
// account in the same namespace or another one: what the one made is not the other's.
func TestTwoManagementPlanesRegisterOneCluster(t *testing.T) {
	t.Parallel()
	const plane = "twin"
	first, remote := translatedPair(t)
	second := sandboxtest.APIServer(t)
	sandboxtest.MakeNamespace(t, remote, "bookinfo")
	options := func(management *rest.Config, name, account string) registration.Options {
		return registration.Options{Name: name, RemoteConfig: remote, MgmtConfig: management, MgmtNamespace: plane, RemoteNamespace: account, KeepCredential: true}
	}
	leave := func(management *rest.Config, name, account string) registration.DeregisterOptions {
		return registration.DeregisterOptions{Name: name, RemoteConfig: remote, MgmtConfig: management, MgmtNamespace: plane, RemoteNamespace: account}
	}
	report, err := registration.Register(t.Context(), options(first, "cluster-2", "accounts"))
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(report.Notes, "\n"), "management plane")
	ours := func(id, name string) {
		t.Helper()
		put(t, remote, snapshot.VirtualService, "bookinfo", name, map[string]string{
			snapshot.NetworkingOwnerLabel: plane, snapshot.ClusterLabel: "cluster-2", snapshot.PlaneLabel: id}, nil)
	}
	firstID, secondID := planeID(t, first, plane), planeID(t, second, plane)
	require.NotEqual(t, firstID, secondID)
	ours(firstID, "of-the-first")
	alone := inventory(t, remote)

	_, err = registration.Register(t.Context(), options(second, "cluster-2", "accounts"))
	var taken *registration.NameTakenError
	require.ErrorAs(t, err, &taken)
	require.ErrorContains(t, err, "management plane "+firstID)
	assert.Equal(t, alone, inventory(t, remote))
	_, err = registration.Deregister(t.Context(), leave(second, "cluster-2", "accounts"))
	var unknown *registration.NotRegisteredError
	require.ErrorAs(t, err, &unknown, "the account is not its own")

	for _, c := range []struct{ name, account string }{{"cluster-2", "elsewhere"}, {"cluster-9", "accounts"}, {"cluster-9", "elsewhere"}} {
		report, err = registration.Register(t.Context(), options(second, c.name, c.account))
		require.NoError(t, err)
		assert.Contains(t, strings.Join(report.Notes, "\n"), "management plane "+firstID+" has registered this cluster, too, as cluster-2")
		both := inventory(t, remote)
		for key, version := range alone {
			assert.Equal(t, version, both[key], "%s is that of the first one", key)
		}
		report, err = registration.Register(t.Context(), options(first, "cluster-2", "accounts"))
		require.NoError(t, err)
		assert.True(t, report.Unchanged(), "%+v", report.Changes)
		assert.Contains(t, strings.Join(report.Notes, "\n"), "management plane "+secondID+" has registered this cluster, too, as "+c.name)
		if c.name == "cluster-2" {
			ours(secondID, "of-the-second")
		}
		_, err = registration.Deregister(t.Context(), leave(second, c.name, ""))
		require.NoError(t, err)
		finishNamespaces(t, remote)
		assert.Equal(t, alone, inventory(t, remote))
	}

	// The first one is of a version before there was a permission for names of federated services: it would lose them.
	roles := sandboxtest.Clientset(t, remote).RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), registration.RoleName(firstID), metav1.GetOptions{})
	require.NoError(t, err)
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "federatedhosts") })
	_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	before := inventory(t, remote)
	_, err = registration.Register(t.Context(), options(second, "cluster-9", "elsewhere"))
	var old *registration.OldPlaneError
	require.ErrorAs(t, err, &old)
	require.ErrorContains(t, err, "could not write the names of federated services any more")
	assert.Equal(t, before, inventory(t, remote), "nothing was written")
	_, err = registration.Register(t.Context(), options(first, "cluster-2", "accounts"))
	require.NoError(t, err)

	_, err = registration.Register(t.Context(), options(second, "cluster-9", "elsewhere"))
	require.NoError(t, err)
	_, err = registration.Deregister(t.Context(), leave(first, "cluster-2", ""))
	require.NoError(t, err)
	finishNamespaces(t, remote)
	left := inventory(t, remote)
	assert.Contains(t, left, "ClusterRole /"+registration.RoleName(secondID))
	assert.NotContains(t, left, "ClusterRole /"+registration.RoleName(firstID))
	assert.NotContains(t, left, "VirtualService bookinfo/of-the-first")
}

// age makes a registration like those of versions that wrote no identity.
func age(t *testing.T, remote *rest.Config, name, namespace string) {
	t.Helper()
	ctx, client := t.Context(), sandboxtest.Clientset(t, remote)
	unmark := []byte(`{"metadata":{"labels":{"` + snapshot.PlaneLabel + `":null}}}`)
	accounts, err := client.CoreV1().ServiceAccounts(namespace).List(ctx, metav1.ListOptions{LabelSelector: snapshot.ClusterLabel + "=" + name})
	require.NoError(t, err)
	require.Len(t, accounts.Items, 1)
	account, err := client.CoreV1().ServiceAccounts(namespace).Patch(ctx, accounts.Items[0].Name, types.MergePatchType, unmark, metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = client.RbacV1().Roles(namespace).Patch(ctx, registration.TokenRoleName(name), types.MergePatchType, unmark, metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = client.RbacV1().RoleBindings(namespace).Patch(ctx, registration.TokenRoleName(name), types.MergePatchType, unmark, metav1.PatchOptions{})
	require.NoError(t, err)
	bindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{LabelSelector: snapshot.ClusterLabel + "=" + name})
	require.NoError(t, err)
	for _, b := range bindings.Items {
		role, err := client.RbacV1().ClusterRoles().Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
		require.NoError(t, err)
		managed := map[string]string{cluster.ManagedByLabel: cluster.ManagedBy}
		require.NoError(t, client.RbacV1().ClusterRoleBindings().Delete(ctx, b.Name, metav1.DeleteOptions{}))
		require.NoError(t, client.RbacV1().ClusterRoles().Delete(ctx, b.RoleRef.Name, metav1.DeleteOptions{}))
		_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "gloomesh-remote-access", Labels: managed}, Rules: role.Rules}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-gloomesh-remote-access-clusterrole-binding", Labels: account.Labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gloomesh-remote-access"},
			Subjects:   b.Subjects,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// TestRegistrationsWithoutIdentity get one when they are renewed, can be deregistered as
// they are, and keep others away.
func TestRegistrationsWithoutIdentity(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	before := inventory(t, remote)
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	today := without(inventory(t, remote), nil)
	age(t, remote, "cluster-2", "gloo-mesh")
	assert.NotEqual(t, today, without(inventory(t, remote), nil))

	other := sandboxtest.APIServer(t)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-9", RemoteConfig: remote, MgmtConfig: other, MgmtNamespace: "older"})
	var old *registration.OldPlaneError
	require.ErrorAs(t, err, &old)
	require.ErrorContains(t, err, "as cluster-2 (ServiceAccount gloo-mesh/cluster-2)")

	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, today, without(inventory(t, remote), nil), "nothing of the old names stays")

	deregister := registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err = registration.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	finishNamespaces(t, remote)
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	age(t, remote, "cluster-2", "gloo-mesh")
	_, err = registration.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	finishNamespaces(t, remote)
	assert.Subset(t, keptTypes, without(inventory(t, remote), before))
}

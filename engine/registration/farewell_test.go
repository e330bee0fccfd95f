package registration_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// removable checks that all that registration made for an agent goes with the one ClusterRole that the agent may delete, but for its
// namespace, and what the agent itself makes; and that it may delete nothing else of that.
func removable(t *testing.T, remote *rest.Config, planeID string) {
	t.Helper()
	clientset := sandboxtest.Clientset(t, remote)
	name := snapshot.RelayLeaveName(planeID)
	owner, err := clientset.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{name}, Verbs: []string{"delete"}}}, owner.Rules)
	binding, err := clientset.RbacV1().ClusterRoleBindings().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "gloo-mesh", Name: registration.AgentName(planeID)}}, binding.Subjects)
	lists, err := clientset.Discovery().ServerPreferredResources()
	require.NoError(t, err)
	objects, err := metadata.NewForConfig(remote)
	require.NoError(t, err)
	owned := 0
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, r := range list.APIResources {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(t, err)
			found, err := objects.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=meshctl"})
			require.NoError(t, err)
			for i := range found.Items {
				o := &found.Items[i]
				if o.UID == owner.UID || r.Kind == "Namespace" || r.Kind == "CustomResourceDefinition" || o.Name == snapshot.RelayClientSecret {
					continue
				}
				if assert.Len(t, o.OwnerReferences, 1, "%s %s/%s", r.Kind, o.Namespace, o.Name) {
					assert.Equal(t, owner.UID, o.OwnerReferences[0].UID)
					owned++
				}
			}
		}
	}
	assert.Greater(t, owned, 10)
}

// leaves has serve say what a cluster that leaves waits for, and how its agent is connected.
func leaves(t *testing.T, management *rest.Config, cause snapshot.Code, what, connection string) {
	t.Helper()
	client, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	kc := kubernetesCluster(t, management, "cluster-2")
	state := map[string]any{"state": "ACCEPTED", "observedGeneration": kc.GetGeneration()}
	if cause != "" {
		state["message"] = what
		state["reasons"] = []any{map[string]any{"code": string(snapshot.ClusterLeaving), "cause": string(cause), "what": what}}
	}
	status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"status": []any{state},
		"connection": map[string]any{
			"via": string(multiclusterv1alpha1.ViaRelay), "state": connection, "since": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339),
			"reason": map[string]any{"code": string(snapshot.RelayAbsent), "what": "its agent has no connection: it broke"},
		},
	}}}
	status.SetGroupVersionKind(kc.GroupVersionKind())
	status.SetName("cluster-2")
	_, err = client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").ApplyStatus(t.Context(), "cluster-2", status, metav1.ApplyOptions{FieldManager: "serve", Force: true})
	require.NoError(t, err)
}

// relayedPair are two servers of which one is registered at the other to be reached through its agent.
func relayedPair(t *testing.T) (management *rest.Config, store *agents, options registration.DeregisterOptions) {
	t.Helper()
	management, remote := translatedPair(t)
	store = &agents{}
	_, err := registration.Register(t.Context(), registration.Options{
		Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: relayAgent("registry.example/meshctl:v1"), Relay: store.relay(),
	})
	require.NoError(t, err)
	require.NoError(t, store.enroll(clusterUID(t, remote)))
	createLabelled(t, management, snapshot.RelayRecordPrefix+"cluster-2")
	return management, store, registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management, Store: store.relay().Store}
}

// TestDeregisterThroughTheAgent: without a context of the cluster, the registration is marked, and goes when serve says that nothing is
// left; an interrupted command goes on.
func TestDeregisterThroughTheAgent(t *testing.T) {
	t.Parallel()
	management, _, options := relayedPair(t)
	before := inventory(t, management)
	_, err := registration.Deregister(t.Context(), options)
	require.ErrorContains(t, err, "no `meshctl serve` runs")
	serves(t, management)
	leaves(t, management, "", "", "LOST")
	_, err = registration.Deregister(t.Context(), options)
	var away *registration.AgentAwayError
	require.ErrorAs(t, err, &away)
	assert.Equal(t, registration.AgentAwayError{Name: "cluster-2", Since: "3h", Reason: "its agent has no connection: it broke"}, *away)
	assert.Contains(t, err.Error(), "nothing was changed")
	assert.Contains(t, err.Error(), "--force")
	assert.NotContains(t, kubernetesCluster(t, management, "cluster-2").GetAnnotations(), snapshot.LeavingAnnotation)
	assert.Equal(t, names(before), names(inventory(t, management)))

	leaves(t, management, "", "", "CONNECTED")
	options.ServeWait = 10 * time.Millisecond
	_, err = registration.Deregister(t.Context(), options)
	require.ErrorContains(t, err, "has not taken notice that it leaves")
	options.ServeWait = 0
	leaves(t, management, snapshot.LeavingObjects, "12 objects are deleted", "CONNECTED")
	interrupted, cancel := context.WithCancel(t.Context())
	said := ""
	options.Progress = func(text string) {
		said += text
		cancel()
	}
	_, err = registration.Deregister(interrupted, options)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "run it again")
	assert.Contains(t, said, "12 objects are deleted")
	all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, snapshot.HealthLeaving, all[0].Health)
	assert.Contains(t, all[0].Reason, "12 objects are deleted; `meshctl cluster deregister cluster-2`")
	_, err = registration.Invite(t.Context(), registration.InviteOptions{Name: "cluster-2", MgmtConfig: management, Agent: relayAgent("registry.example/meshctl:v1"), Relay: (&agents{}).relay()})
	require.ErrorContains(t, err, "it is being deregistered through its agent")

	leaves(t, management, snapshot.LeavingDone, "nothing is left", "LOST")
	options.Progress = nil
	report, err := registration.Deregister(t.Context(), options)
	require.NoError(t, err)
	assert.Empty(t, report.Leftovers)
	for key := range inventory(t, management) {
		assert.NotContains(t, key, "cluster-2")
	}
}

// TestDeregisterAnAgentThatStays: what it could not remove is printed, and recorded.
func TestDeregisterAnAgentThatStays(t *testing.T) {
	t.Parallel()
	management, _, options := relayedPair(t)
	serves(t, management)
	leaves(t, management, snapshot.LeavingObjects, "12 objects are deleted", "CONNECTED")
	options.LeaveWait = 10 * time.Millisecond
	_, err := registration.Deregister(t.Context(), options)
	require.ErrorContains(t, err, "that takes too long")
	options.LeaveWait = 0
	leaves(t, management, snapshot.LeavingStays, "its agent stays", "CONNECTED")
	report, err := registration.Deregister(t.Context(), options)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Leftovers, "\n"), "kubectl delete clusterrole "+snapshot.RelayLeaveName(planeID(t, management, "gloo-mesh"))+" ")
	assert.Contains(t, strings.Join(report.Notes, "\n"), "its agent stays")
	left := inventory(t, management)
	assert.NotContains(t, left, "KubernetesCluster gloo-mesh/cluster-2")
	assert.NotContains(t, left, "Secret gloo-mesh/"+snapshot.RelayRecordPrefix+"cluster-2", "no certificate of its agent counts")
}

// TestForcedDeregistrationLeavesADebt: what is known of an agent that is away stays, and the record of what is left goes with it.
func TestForcedDeregistrationLeavesADebt(t *testing.T) {
	t.Parallel()
	management, store, options := relayedPair(t)
	options.Force = true
	report, err := registration.Deregister(t.Context(), options)
	require.NoError(t, err)
	assert.NotEmpty(t, report.Leftovers)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "its agent does it when it comes back")
	assert.True(t, store.owes)
	record := sandboxtest.Secret(t, management, "gloo-mesh", snapshot.RelayRecordPrefix+"cluster-2")
	client := sandboxtest.Clientset(t, management).CoreV1()
	left, err := client.ConfigMaps("gloo-mesh").Get(t.Context(), registration.LeftoverName("cluster-2"), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: record.Name, UID: record.UID}}, left.OwnerReferences)
	all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, snapshot.HealthLeftover, all[0].Health)
	assert.Contains(t, all[0].Reason, "removes what is there when it comes back")

	// Repeated, while the agent pays.
	require.NoError(t, client.Secrets("gloo-mesh").Delete(t.Context(), record.Name, metav1.DeleteOptions{}))
	again, err := registration.Deregister(t.Context(), options)
	require.NoError(t, err)
	assert.Empty(t, again.Leftovers)
	_, err = client.ConfigMaps("gloo-mesh").Get(t.Context(), registration.LeftoverName("cluster-2"), metav1.GetOptions{})
	require.Error(t, err)
}

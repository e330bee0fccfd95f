package registration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestRegisterAgainAndDeregister(t *testing.T) {
	t.Parallel()
	management, remote := configs(t, sandboxtest.Preparation{}, translatedTypes())
	id := planeID(t, management, "gloo-mesh")
	remoteBefore := inventory(t, remote)
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}

	report, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.False(t, report.Unchanged())
	assert.Equal(t, []string{
		"ClusterRole /gloomesh-remote-access-" + id,
		"ClusterRoleBinding /cluster-2-gloomesh-remote-access-" + id,
		"CustomResourceDefinition /certificaterequests.certificates.mesh.gloo.solo.io",
		"Namespace /gloo-mesh",
		"Role gloo-mesh/cluster-2-gloomesh-token-renewal",
		"RoleBinding gloo-mesh/cluster-2-gloomesh-token-renewal",
		"ServiceAccount gloo-mesh/cluster-2",
		"ValidatingAdmissionPolicy /" + registration.TokenPolicyName("cluster-2", id),
		"ValidatingAdmissionPolicy /" + registration.HostsPolicyName(id),
		"ValidatingAdmissionPolicyBinding /" + registration.TokenPolicyName("cluster-2", id),
		"ValidatingAdmissionPolicyBinding /" + registration.HostsPolicyName(id),
	}, without(inventory(t, remote), remoteBefore))
	secret := sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2")
	assert.EqualValues(t, cluster.SecretType, secret.Type)
	assert.Equal(t, "system:serviceaccount:gloo-mesh:cluster-2", sandboxtest.UserInfo(t, storedConfig(t, secret)).Username)
	assertStatus(t, options)

	elsewhere := options
	elsewhere.RemoteNamespace = "elsewhere"
	_, err = registration.Register(t.Context(), elsewhere)
	require.ErrorContains(t, err, "its account is in namespace gloo-mesh", "a second account would be forgotten")

	managementBefore, remoteOnce := inventory(t, management), inventory(t, remote)
	options.KeepCredential = true
	report, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.True(t, report.Unchanged(), "%+v", report.Changes)
	assert.Equal(t, managementBefore, inventory(t, management), "no new resource version on the management cluster")
	assert.Equal(t, remoteOnce, inventory(t, remote), "no new resource version on the remote cluster")

	sandboxtest.MakeNamespace(t, remote, "bookinfo")
	remoteBefore = inventory(t, remote)
	ours := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2"}
	put(t, remote, snapshot.VirtualService, "bookinfo", "ours", ours, nil)
	put(t, remote, snapshot.ServiceEntry, "bookinfo", "ours", ours, nil)
	put(t, remote, snapshot.VirtualService, "bookinfo", "users", nil, nil)
	put(t, remote, snapshot.VirtualService, "bookinfo", "others",
		map[string]string{snapshot.NetworkingOwnerLabel: "another-plane", snapshot.ClusterLabel: "cluster-2"}, nil)
	put(t, management, snapshot.Workload, "gloo-mesh", "reviews",
		map[string]string{snapshot.DiscoveryOwnerLabel: "gloo-mesh", snapshot.DiscoveryClusterLabel: "cluster-2"}, nil)
	put(t, management, snapshot.Workload, "gloo-mesh", "elsewhere",
		map[string]string{snapshot.DiscoveryOwnerLabel: "gloo-mesh", snapshot.DiscoveryClusterLabel: "cluster-1"}, nil)

	report, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	assert.Empty(t, report.Leftovers)
	assert.Empty(t, report.Notes)
	assert.Equal(t, "Secret", report.Changes[0].Kind, "the ways in go first")
	assert.Equal(t, "KubernetesCluster", report.Changes[1].Kind, "the ways in go first")
	finishNamespaces(t, remote)
	assert.Equal(t, []string{"VirtualService bookinfo/others", "VirtualService bookinfo/users"}, without(inventory(t, remote), remoteBefore))
	assert.NotContains(t, inventory(t, remote), "Namespace /gloo-mesh")
	left := without(inventory(t, management), nil)
	assert.Contains(t, left, "Workload gloo-mesh/elsewhere")
	assert.NotContains(t, left, "Workload gloo-mesh/reviews")
	assert.NotContains(t, left, "Secret gloo-mesh/cluster-2")
	assert.NotContains(t, left, "KubernetesCluster gloo-mesh/cluster-2")

	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
	var unknown *registration.NotRegisteredError
	require.ErrorAs(t, err, &unknown)

	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err, "a deregistered cluster can be registered again")
}

func assertStatus(t *testing.T, options registration.Options) {
	t.Helper()
	client, err := dynamic.NewForConfig(options.MgmtConfig)
	require.NoError(t, err)
	kc, err := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").Get(t.Context(), options.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"secretName": options.Name, "clusterDomain": "cluster.local"}, kc.Object["spec"])
	status, ok := kc.Object["status"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, "gloo-mesh", status["namespace"])
	assert.Len(t, status["policyRules"], len(registration.RemoteRules(snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write)))+3, "and which cluster it is, answers, and names of federated services")
}

func TestRegisterTheManagementCluster(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, "self")
	options := registration.Options{Name: "self", RemoteConfig: config, MgmtConfig: config, MgmtNamespace: "self", RemoteNamespace: "self-agent", KeepCredential: true}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	report, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.True(t, report.Unchanged(), "%+v", report.Changes)

	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{
		Name: "self", RemoteConfig: config, MgmtConfig: config, MgmtNamespace: "self", RemoteNamespace: "self-agent"})
	require.NoError(t, err)
	after := inventory(t, config)
	assert.Contains(t, after, "Namespace /self", "registration did not make it")
	for key := range after {
		if key != "ConfigMap self/"+cluster.PlaneName {
			assert.NotContains(t, key, " self/")
		}
	}
}

func TestRemoteRulesFollowFromTheKinds(t *testing.T) {
	t.Parallel()
	granted := map[string][]string{}
	for _, rule := range registration.RemoteRules(snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write)) {
		require.Len(t, rule.APIGroups, 1)
		for _, resource := range rule.Resources {
			var names []string
			if resource == "configmaps" {
				names = []string{"istio", "istio-ca-root-cert"}
			}
			assert.Equal(t, names, rule.ResourceNames, resource)
			key := resource + "." + rule.APIGroups[0]
			assert.NotContains(t, granted, key, "granted twice")
			granted[key] = rule.Verbs
		}
	}
	wanted := map[string][]string{}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch) {
		wanted[k.Info().Resource+"."+k.Info().Group] = []string{"list", "watch"}
	}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		wanted[k.Info().Resource+"."+k.Info().Group] = []string{"create", "delete", "list", "patch", "watch"}
	}
	assert.Equal(t, wanted, granted)
	assert.NotContains(t, granted, "secrets.")
	assert.Contains(t, granted, "virtualservices.networking.istio.io")
	assert.Equal(t, []rbacv1.PolicyRule{}, registration.RemoteRules(nil))
}

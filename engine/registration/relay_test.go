package registration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// agents are a RelayStore in memory; who is enrolled is for the test to say.
type agents struct {
	mu   sync.Mutex
	made int
	uid  string
	owes bool
}

func (a *agents) Invite(_ context.Context, cluster, uid string, lasts time.Duration) (string, []byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made++
	return fmt.Sprintf("token %d of %s for %s, %s", a.made, cluster, uid, lasts), []byte("root"), nil
}

func (a *agents) HubRoot(context.Context) ([]byte, error) { return []byte("root"), nil }

func (a *agents) Enrolled(context.Context, string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.uid, nil
}

func (a *agents) Revoke(context.Context, string) error { return a.enroll("") }

func (a *agents) Approve(_ context.Context, agent snapshot.RelayWaiting) error {
	return a.enroll(agent.UID)
}

// Owe and Forgive implement registration.RelayStore.
func (a *agents) Owe(context.Context, string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owes = a.uid != ""
	return a.owes, nil
}

func (a *agents) Forgive(context.Context, string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owes = false
	return nil
}

func (a *agents) enroll(uid string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.uid = uid
	return nil
}

func (a *agents) relay() *registration.Relay {
	return &registration.Relay{Server: "relay.example.com:9900", Store: func(kube.Clientset, snapshot.Plane) registration.RelayStore { return a }}
}

func relayAgent(image string) *registration.Agent {
	out := anAgent(image)
	out.RelayRules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{snapshot.RelayClientSecret}, Verbs: []string{"get"}}}
	return out
}

// serves is a serve that holds the Lease and reports on a cluster.
func serves(t *testing.T, management *rest.Config) {
	t.Helper()
	now, duration, holder := metav1.NowMicro(), int32(600), "serve"
	_, err := sandboxtest.Clientset(t, management).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &duration},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func kubernetesCluster(t *testing.T, management *rest.Config, name string) *unstructured.Unstructured {
	t.Helper()
	client, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	kc, err := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return kc
}

// report has serve say how a cluster is.
func report(t *testing.T, management *rest.Config, name, state, message string) {
	t.Helper()
	client, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	kc := kubernetesCluster(t, management, name)
	status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"status": []any{
		map[string]any{"state": state, "message": message, "observedGeneration": kc.GetGeneration()},
	}}}}
	status.SetGroupVersionKind(kc.GroupVersionKind())
	status.SetName(name)
	_, err = client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").ApplyStatus(t.Context(), name, status, metav1.ApplyOptions{FieldManager: "serve", Force: true})
	require.NoError(t, err)
}

// TestRegisterRelay: the cluster has an agent with a token and the rights, no account for serve, and nothing of it is stored but that it is
// registered; again changes nothing once the agent has a certificate; and deregistering leaves nothing.
func TestRegisterRelay(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	sandboxtest.Apply(t, remote, []byte(anIstio))
	before := withTypes(names(inventory(t, remote)))
	store := &agents{}
	id := planeID(t, management, "gloo-mesh")
	name := registration.AgentName(id)
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: relayAgent("registry.example/meshctl:v1"), Relay: store.relay()}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	got := inventory(t, remote)
	for _, want := range []string{
		"ServiceAccount gloo-mesh/" + name, "ClusterRoleBinding /" + name + "-relay", "ClusterRole /" + registration.RoleName(id), "Role gloo-mesh/" + name + "-relay",
		"Role istio-system/" + name + "-relay", "Role gloo-mesh/" + name, "ValidatingAdmissionPolicy /" + name, "ValidatingAdmissionPolicy /" + registration.HostsPolicyName(id),
		"Secret gloo-mesh/relay-identity-token-secret", "Secret gloo-mesh/relay-root-tls-secret",
	} {
		assert.Contains(t, got, want)
	}
	assert.NotContains(t, got, "ServiceAccount gloo-mesh/cluster-2")
	assert.NotContains(t, inventory(t, management), "Secret gloo-mesh/cluster-2")
	clientset := sandboxtest.Clientset(t, remote)
	uid := clusterUID(t, remote)
	assert.Equal(t, "token 1 of cluster-2 for "+uid+", 1h0m0s", string(sandboxtest.Secret(t, remote, "gloo-mesh", snapshot.RelayTokenSecret).Data[snapshot.RelayTokenKey]))
	d, err := clientset.AppsV1().Deployments("gloo-mesh").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"agent", "--namespace", "gloo-mesh", "--health-bind", ":9093",
		"--relay-server", "relay.example.com:9900", "--relay-name", "gloo-mesh-mgmt-server.gloo-mesh", "--mgmt-namespace", "gloo-mesh",
	}, d.Spec.Template.Spec.Containers[0].Args)
	kc := kubernetesCluster(t, management, "cluster-2")
	assert.Equal(t, map[string]any{"clusterDomain": "cluster.local"}, kc.Object["spec"])
	assert.Equal(t, uid, kc.GetAnnotations()[cluster.UIDAnnotation])

	// The agent has used its token.
	require.NoError(t, clientset.CoreV1().Secrets("gloo-mesh").Delete(t.Context(), snapshot.RelayTokenSecret, metav1.DeleteOptions{}))
	createLabelled(t, remote, snapshot.RelayClientSecret)
	require.NoError(t, store.enroll(uid))
	again, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.True(t, again.Unchanged(), "%+v", again.Changes)
	assert.Equal(t, 1, store.made)

	// Its certificate does not count any more.
	require.NoError(t, store.Revoke(t.Context(), "cluster-2"))
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.Contains(t, string(sandboxtest.Secret(t, remote, "gloo-mesh", snapshot.RelayTokenSecret).Data[snapshot.RelayTokenKey]), "token 2")

	require.NoError(t, store.enroll("another"))
	_, err = registration.Register(t.Context(), options)
	var taken *registration.NameTakenError
	require.ErrorAs(t, err, &taken)
	assert.Contains(t, taken.Reason, "meshctl cluster revoke cluster-2")

	_, err = clientset.CoreV1().ConfigMaps("gloo-mesh").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayOutputPrefix + "0"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management})
	require.ErrorContains(t, err, "it is reached through its agent")
	removable(t, remote, id)
	gone, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management, RemoteConfig: remote})
	require.NoError(t, err)
	assert.Empty(t, gone.Leftovers)
	assert.Empty(t, gone.Notes)
	finishNamespaces(t, remote)
	assert.Equal(t, before, names(inventory(t, remote)))
}

// TestForcedDeregistrationOfARelayedCluster: without access to it, the registration and what is known of its agent go, what stays there is a
// debt, and whoever has access later pays it with the same command.
func TestForcedDeregistrationOfARelayedCluster(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	sandboxtest.Apply(t, remote, []byte(anIstio))
	before := withTypes(names(inventory(t, remote)))
	store := &agents{}
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: relayAgent("registry.example/meshctl:v1"), Relay: store.relay()}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	createLabelled(t, management, snapshot.RelayRecordPrefix+"cluster-2")
	require.NoError(t, registration.Revoke(t.Context(), registration.RevokeOptions{Name: "cluster-2", MgmtConfig: management, Store: store.relay().Store}))
	put(t, remote, snapshot.VirtualService, "istio-system", "ours", map[string]string{
		snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2", snapshot.PlaneLabel: planeID(t, management, "gloo-mesh"),
	}, nil)

	forced, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management, Force: true})
	require.NoError(t, err)
	commands := strings.Join(forced.Leftovers, "\n")
	for _, of := range []string{"clusterrolebinding " + registration.RelayRoleName(planeID(t, management, "gloo-mesh")), "secret " + snapshot.RelayClientSecret} {
		assert.Contains(t, commands, "kubectl delete "+of+" ")
	}
	assert.Contains(t, commands, "kubectl delete configmaps --namespace gloo-mesh --ignore-not-found meshctl-relay-output-0 meshctl-relay-output-1 ")
	assert.Contains(t, commands, " meshctl-relay-output-15\n")
	left := inventory(t, management)
	assert.NotContains(t, left, "KubernetesCluster gloo-mesh/cluster-2")
	assert.NotContains(t, left, "Secret gloo-mesh/"+snapshot.RelayRecordPrefix+"cluster-2", "no certificate of its agent counts")
	assert.Contains(t, inventory(t, remote), "VirtualService istio-system/ours")
	all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, snapshot.HealthLeftover, all[0].Health)

	paid, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management, RemoteConfig: remote})
	require.NoError(t, err)
	assert.Empty(t, paid.Leftovers)
	finishNamespaces(t, remote)
	assert.Equal(t, before, names(inventory(t, remote)))
	all, err = registration.List(t.Context(), registration.ListOptions{MgmtConfig: management})
	require.NoError(t, err)
	assert.Empty(t, all)
}

func clusterUID(t *testing.T, config *rest.Config) string {
	t.Helper()
	ns, err := sandboxtest.Clientset(t, config).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	require.NoError(t, err)
	return string(ns.UID)
}

// createLabelled makes a Secret as the agent does.
func createLabelled(t *testing.T, config *rest.Config, name string) {
	t.Helper()
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets("gloo-mesh").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{snapshot.ManagedByLabel: snapshot.ManagedBy}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestMoveToTheAgentAndBack: what gave access before goes when the other way works, and not earlier; no object that was translated goes.
func TestMoveToTheAgentAndBack(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	sandboxtest.Apply(t, remote, []byte(anIstio))
	store := &agents{}
	direct := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: anAgent("registry.example/meshctl:v1")}
	_, err := registration.Register(t.Context(), direct)
	require.NoError(t, err)
	ours := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2"}
	put(t, remote, snapshot.VirtualService, "istio-system", "ours", ours, nil)
	stands := inventory(t, remote)["VirtualService istio-system/ours"]
	atFirst := names(inventory(t, remote))

	relayed := direct
	relayed.Agent, relayed.Relay, relayed.ServeWait = relayAgent("registry.example/meshctl:v1"), store.relay(), 2*time.Second
	_, err = registration.Register(t.Context(), relayed)
	require.ErrorContains(t, err, "only while `meshctl serve` runs")
	assert.Equal(t, atFirst, names(inventory(t, remote)), "nothing was changed")

	serves(t, management)
	_, err = registration.Register(t.Context(), relayed)
	require.ErrorContains(t, err, "its agent has got no certificate within 2s")
	require.ErrorContains(t, err, "its Deployment has no pods")
	sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2")
	assert.Contains(t, inventory(t, remote), "ServiceAccount gloo-mesh/cluster-2")
	secretName, _, _ := unstructured.NestedString(kubernetesCluster(t, management, "cluster-2").Object, "spec", "secretName")
	assert.Equal(t, "cluster-2", secretName, "it is reached as before")

	require.NoError(t, store.enroll(clusterUID(t, remote)))
	createLabelled(t, remote, snapshot.RelayClientSecret)
	_, err = registration.Register(t.Context(), relayed)
	var unconnected *registration.RelayError
	require.ErrorAs(t, err, &unconnected)
	assert.NotContains(t, inventory(t, management), "Secret gloo-mesh/cluster-2")
	assert.Contains(t, inventory(t, remote), "ServiceAccount gloo-mesh/cluster-2", "the agent is not connected yet")

	report(t, management, "cluster-2", "FAILED", "its agent has not connected yet")
	said := ""
	relayed.ServeWait = 30 * time.Second
	relayed.Progress = func(text string) {
		said += text
		report(t, management, "cluster-2", "ACCEPTED", "")
	}
	done, err := registration.Register(t.Context(), relayed)
	require.NoError(t, err)
	assert.Contains(t, said, "its agent has not connected yet")
	assert.Equal(t, registration.ServeReaches, done.Serve)
	assert.True(t, done.Revoked)
	for key := range inventory(t, remote) {
		assert.False(t, strings.HasPrefix(key, "ServiceAccount gloo-mesh/cluster-2") || strings.Contains(key, "token-renewal") || strings.Contains(key, "mesh-settings"), key)
	}
	assert.Equal(t, stands, inventory(t, remote)["VirtualService istio-system/ours"])

	_, err = registration.Register(t.Context(), direct)
	require.NoError(t, err)
	assert.Equal(t, stands, inventory(t, remote)["VirtualService istio-system/ours"])
	assert.Equal(t, atFirst, names(inventory(t, remote)), "as it was before")
	sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2")
	d, err := sandboxtest.Clientset(t, remote).AppsV1().Deployments("gloo-mesh").Get(t.Context(), registration.AgentName(planeID(t, management, "gloo-mesh")), metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotContains(t, d.Spec.Template.Spec.Containers[0].Args, "--relay-server")
}

// TestRelayAddress: agents are told an address that leads somewhere, or the command fails and says what to do.
func TestRelayAddress(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	clientset := sandboxtest.Clientset(t, management)
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: relayAgent(""), Relay: (&agents{}).relay()}
	options.Relay.Server = ""
	before := inventory(t, remote)
	fails := func(want string) {
		t.Helper()
		_, err := registration.Register(t.Context(), options)
		require.ErrorContains(t, err, want)
	}
	fails("run `meshctl install --relay`")
	install := func(ofType string) {
		t.Helper()
		enabled := true
		_, err := registration.Install(t.Context(), registration.InstallOptions{Config: management, Image: "meshctl:1", Relay: registration.InstallRelay{Enabled: &enabled, ServiceType: ofType}})
		require.NoError(t, err)
	}
	install("ClusterIP")
	fails("to which nothing leads from other clusters")
	install("NodePort")
	fails("no node has an address")
	install("LoadBalancer")
	fails("no address of a load balancer yet")
	assert.Equal(t, before, inventory(t, remote), "nothing is written")

	service, err := clientset.CoreV1().Services("gloo-mesh").Get(t.Context(), snapshot.RelayService, metav1.GetOptions{})
	require.NoError(t, err)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "2001:db8::7"}}
	_, err = clientset.CoreV1().Services("gloo-mesh").UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
	require.NoError(t, err)
	invitation, err := registration.Invite(t.Context(), registration.InviteOptions{Name: "cluster-3", MgmtConfig: management, Agent: relayAgent(""), Relay: options.Relay})
	require.NoError(t, err)
	assert.Equal(t, "[2001:db8::7]:9900", invitation.Server)
	for server, want := range map[string]string{"relay": "want HOST:PORT", "relay:http": "want HOST:PORT", ":9900": "want HOST:PORT"} {
		options.Relay.Server = server
		fails(want)
	}
}

// TestInvite: what the administrator of the other cluster writes is what a registration with both contexts writes, and who invites knows
// nothing of the cluster.
func TestInvite(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	sandboxtest.Apply(t, remote, []byte(anIstio))
	store := &agents{}
	options := registration.InviteOptions{Name: "cluster-2", MgmtConfig: management, Agent: relayAgent(""), Relay: store.relay()}
	_, err := registration.Invite(t.Context(), options)
	require.ErrorContains(t, err, "--agent-image")
	options.Agent = relayAgent("registry.example/meshctl:v1")
	options.Agent.VaultServers, options.Agent.VaultAudience = []string{"https://vault.example:8200"}, "vault.example"
	options.Agent.MoreRules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"vault-token"}, Verbs: []string{"get"}}}
	invitation, err := registration.Invite(t.Context(), options)
	require.NoError(t, err)
	assert.Equal(t, "relay.example.com:9900", invitation.Server)
	assert.WithinDuration(t, time.Now().Add(time.Hour), invitation.Until, time.Minute)
	kc := kubernetesCluster(t, management, "cluster-2")
	assert.Equal(t, map[string]any{"clusterDomain": "cluster.local"}, kc.Object["spec"])
	assert.NotContains(t, kc.GetAnnotations(), cluster.UIDAnnotation, "it is not known")
	namespace, _, _ := unstructured.NestedString(kc.Object, "status", "namespace")
	assert.Equal(t, "gloo-mesh", namespace, "where serve asks the agent for certificates")

	var text strings.Builder
	for _, o := range invitation.Objects {
		document, err := snapshot.YAML(o)
		require.NoError(t, err)
		text.WriteString("---\n" + string(document))
	}
	assert.Equal(t, 1, strings.Count(text.String(), "kind: Namespace"))
	assert.Contains(t, text.String(), "- https://vault.example:8200\n")
	assert.Contains(t, text.String(), "- vault.example\n", "the audience")
	assert.Contains(t, text.String(), "- vault-token\n", "the right to read it")
	sandboxtest.Apply(t, remote, []byte(text.String()))
	assert.Equal(t, "token 1 of cluster-2 for , 1h0m0s", string(sandboxtest.Secret(t, remote, "gloo-mesh", snapshot.RelayTokenSecret).Data[snapshot.RelayTokenKey]))
	there := names(inventory(t, remote))
	_, err = registration.Register(t.Context(), registration.Options{
		Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: options.Agent, Relay: store.relay(),
	})
	require.NoError(t, err)
	assert.ElementsMatch(t, there, names(inventory(t, remote)), "nothing was missing")
	removable(t, remote, planeID(t, management, "gloo-mesh"))

	options.Name, options.Relay.OwnPKI = "own", true
	own, err := registration.Invite(t.Context(), options)
	require.NoError(t, err)
	text.Reset()
	for _, o := range own.Objects {
		document, err := snapshot.YAML(o)
		require.NoError(t, err)
		text.WriteString("---\n" + string(document))
	}
	assert.NotContains(t, text.String(), snapshot.RelayTokenSecret+"\n  namespace", "no token is made")
	assert.NotContains(t, text.String(), "token 2")
	assert.Contains(t, text.String(), "name: "+snapshot.RelayRootSecret)
	for _, arg := range []string{"--relay-cluster", "own", "--relay-plane", planeID(t, management, "gloo-mesh")} {
		assert.Contains(t, text.String(), "- "+arg+"\n")
	}
	options.Relay.OwnPKI = false

	_, err = registration.Register(t.Context(), registration.Options{Name: "direct", RemoteConfig: empty(t), MgmtConfig: management})
	require.NoError(t, err)
	options.Name = "direct"
	_, err = registration.Invite(t.Context(), options)
	require.ErrorContains(t, err, "meshctl cluster register direct --relay")
}

package registration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// anAgent has a right of each sort, and a limit.
func anAgent(image string) *registration.Agent {
	read := func(group, resource string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get"}}}
	}
	return &registration.Agent{
		Image:     image,
		OwnRules:  func(meshes ...string) []rbacv1.PolicyRule { return read("", "secrets", meshes...) },
		MeshRules: read("", "secrets", "cacerts"), ClusterRules: read("apps", "deployments"),
		Limits: func(_ string, _ []string, _ string, meshes ...string) admissionv1.ValidatingAdmissionPolicySpec {
			return admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
					},
				}}},
				Validations: []admissionv1.Validation{{Expression: "object.metadata.name in ['" + strings.Join(meshes, "', '") + "']"}},
			}
		},
	}
}

// agentToken is a client with the account of the agent of a cluster.
func agentToken(t *testing.T, config *rest.Config, namespace, id string) kubernetes.Interface {
	t.Helper()
	return sandboxtest.Clientset(t, sandboxtest.As(t, config, namespace, registration.AgentName(id)))
}

// anIstio is a control plane, with the evidence of one.
const anIstio = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system, labels: {app: istiod}}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec: {containers: [{name: discovery, image: docker.io/istio/pilot:1.31.1}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {app: sidecar-injector}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: istio-system}}
  sideEffects: None
  admissionReviewVersions: [v1]
`

// setReady says how many pods of a Deployment are ready, as its controller would.
func setReady(t *testing.T, config *rest.Config, name string, ready int32) {
	t.Helper()
	deployments := sandboxtest.Clientset(t, config).AppsV1().Deployments("gloo-mesh")
	found, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	found.Status.Replicas, found.Status.ReadyReplicas = ready, ready
	_, err = deployments.UpdateStatus(t.Context(), found, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// agentReads: an agent gets the Secrets of these names in its namespace, and lists none.
func agentReads(t *testing.T, remote *rest.Config, id string, secrets ...string) {
	t.Helper()
	agent := agentToken(t, remote, "gloo-mesh", id)
	for _, name := range secrets {
		createSecret(t, remote, name, corev1.SecretTypeOpaque, nil)
		_, err := agent.CoreV1().Secrets("gloo-mesh").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err, name)
		require.NoError(t, sandboxtest.Clientset(t, remote).CoreV1().Secrets("gloo-mesh").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	_, err := agent.CoreV1().Secrets("gloo-mesh").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "forbidden")
}

// agentGivesBack: a deregistration waits for the agent, by this name, to take the certificates
// of a mesh back, and leaves all in place when it does not.
func agentGivesBack(t *testing.T, management, remote *rest.Config, name string) {
	t.Helper()
	// A mesh that has certificates of a VirtualMesh.
	ours := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2"}
	put(t, remote, snapshot.IssuedCertificate, "gloo-mesh", "istiod-istio-system-cluster-2", ours, nil)
	put(t, remote, snapshot.CertificateRequest, "gloo-mesh", "istiod-istio-system-cluster-2", nil, nil)
	deregister := registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err := registration.Deregister(t.Context(), deregister)
	require.ErrorContains(t, err, "no `meshctl agent` runs in namespace gloo-mesh")
	require.ErrorContains(t, err, "istiod-istio-system-cluster-2")
	assert.Contains(t, inventory(t, remote), "RoleBinding istio-system/"+name, "the agent can still do it")

	// The agent is ready, and its Lease has run out: its API server was busy.
	setReady(t, remote, name, 1)
	deregister.AgentWait = time.Millisecond
	_, err = registration.Deregister(t.Context(), deregister)
	require.ErrorContains(t, err, "still have certificates of their VirtualMesh after 1ms")
	setReady(t, remote, name, 0)

	now, duration, holder := metav1.NowMicro(), int32(600), "agent"
	_, err = sandboxtest.Clientset(t, remote).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: snapshot.AgentLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &duration},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = registration.Deregister(t.Context(), deregister)
	require.ErrorContains(t, err, "still have certificates of their VirtualMesh after 1ms")

	deregister.AgentWait = 0
	client, err := dynamic.NewForConfig(remote)
	require.NoError(t, err)
	var said []string
	deregister.Progress = func(text string) {
		said = append(said, text)
		requests := client.Resource(snapshot.CertificateRequest.GroupVersionResource()).Namespace("gloo-mesh")
		if len(said) == 1 { // the agent says what it waits for
			asked, err := requests.Get(t.Context(), "istiod-istio-system-cluster-2", metav1.GetOptions{})
			assert.NoError(t, err)
			assert.NotEmpty(t, asked.GetAnnotations()[snapshot.LeaveNowAnnotation], "it need not wait whether the IssuedCertificate comes back")
			_, err = requests.Patch(t.Context(), asked.GetName(), types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+snapshot.WaitsAnnotation+`":"restarts are under way"}}}`), metav1.PatchOptions{})
			assert.NoError(t, err)
			return
		}
		// The agent is done.
		assert.NoError(t, requests.Delete(t.Context(), "istiod-istio-system-cluster-2", metav1.DeleteOptions{}))
	}
	report, err := registration.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	assert.Empty(t, report.Leftovers)
	require.Len(t, said, 2)
	assert.Contains(t, said[0], "Waiting until the agent has given these meshes back")
	assert.Equal(t, "istiod-istio-system-cluster-2: restarts are under way", said[1])
}

// TestAgent: a registration gives the agent of a cluster its account, for the meshes that are
// there, and on demand a Deployment; and a deregistration lets it finish before it goes.
func TestAgent(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	id := planeID(t, management, "gloo-mesh")
	name := registration.AgentName(id)
	sandboxtest.Apply(t, remote, []byte(anIstio))
	sandboxtest.MakeNamespace(t, management, "gloo-mesh")
	put(t, management, snapshot.Mesh, "gloo-mesh", "known-already",
		map[string]string{snapshot.DiscoveryOwnerLabel: "gloo-mesh", snapshot.DiscoveryClusterLabel: "cluster-2"}, nil)
	before := withTypes(names(inventory(t, remote)))
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: anAgent(""), KeepCredential: true}

	register := func(image string, deployments int) registration.Report {
		t.Helper()
		options.Agent = anAgent(image)
		report, err := registration.Register(t.Context(), options)
		require.NoError(t, err)
		list, err := sandboxtest.Clientset(t, remote).AppsV1().Deployments("gloo-mesh").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, deployments)
		return report
	}
	register("", 0)
	for _, want := range []string{
		"ServiceAccount gloo-mesh/" + name, "ValidatingAdmissionPolicy /" + name, "ValidatingAdmissionPolicyBinding /" + name, "ClusterRole /" + name,
		"ClusterRoleBinding /" + name, "Role gloo-mesh/" + name, "RoleBinding gloo-mesh/" + name, "Role istio-system/" + name, "RoleBinding istio-system/" + name,
	} {
		assert.Contains(t, inventory(t, remote), want)
	}
	repeated := register("", 0)
	assert.True(t, repeated.Unchanged(), "%+v", repeated.Changes)
	register("registry.example/meshctl:v1", 1)
	repeated = register("", 1)
	assert.True(t, repeated.Unchanged(), "it stays: %+v", repeated.Changes)
	register("registry.example/meshctl:v2", 1)
	deployment, err := sandboxtest.Clientset(t, remote).AppsV1().Deployments("gloo-mesh").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "registry.example/meshctl:v2", deployment.Spec.Template.Spec.Containers[0].Image)
	assert.Equal(t, name, deployment.Spec.Template.Spec.ServiceAccountName)

	options.Agent = anAgent("")
	options.Agent.MoreRules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"vault-token"}, Verbs: []string{"get"}}}
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	repeated = register("", 1)
	assert.True(t, repeated.Unchanged(), "what an administrator named stays: %+v", repeated.Changes)

	agentReads(t, remote, id, "istiod-istio-system-cluster-2", "known-already", "vault-token")
	agentGivesBack(t, management, remote, name)
	finishNamespaces(t, remote)
	assert.Equal(t, before, names(inventory(t, remote)))
}

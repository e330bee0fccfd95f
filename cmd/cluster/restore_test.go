package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const trustedMesh = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: vm, namespace: gloo-mesh}
spec:
  meshes: [{name: istiod-istio-system-cluster-2, namespace: gloo-mesh}]
  mtlsConfig:
    shared: {rootCertificateAuthority: {generated: {rsaKeySizeBytes: 2048}}}
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: patient, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-2}]}}]
  policy: {requestTimeout: 1s}
`

// standing is all that a management plane may have written to the cluster of an agent: objects, with what changes when they are written.
func (w *relayWorld) standing() (out []string) {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.remote)
	require.NoError(w.t, err)
	for _, kind := range []schema.GroupVersionResource{
		snapshot.VirtualService.GroupVersionResource(), snapshot.IssuedCertificate.GroupVersionResource(), snapshot.CertificateRequest.GroupVersionResource(),
		{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "serviceaccounts"}, {Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	} {
		list, err := client.Resource(kind).List(w.t.Context(), metav1.ListOptions{})
		require.NoError(w.t, err)
		for i := range list.Items {
			o := &list.Items[i]
			if strings.HasPrefix(o.GetName(), "system:") {
				continue
			}
			out = append(out, fmt.Sprintf("%s %s/%s %s %s", kind.Resource, o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()))
		}
	}
	return out
}

// issued is what the agent says of its IssuedCertificate: the state, and what is wrong; empty if it has none.
func (w *relayWorld) issued() (state, wrong string) {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.remote)
	require.NoError(w.t, err)
	list, err := client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range list.Items {
		state, _, _ = unstructured.NestedString(list.Items[i].Object, "status", "state")
		wrong, _, _ = unstructured.NestedString(list.Items[i].Object, "status", "error")
	}
	return state, wrong
}

// stateOf is what serve says of the present generation of an object; empty if it says nothing.
func (w *relayWorld) stateOf(kind snapshot.Kind, name string) string {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.management)
	require.NoError(w.t, err)
	o, err := client.Resource(kind.GroupVersionResource()).Namespace("gloo-mesh").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	if observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); observed != o.GetGeneration() {
		return ""
	}
	state, _, _ := unstructured.NestedString(o.Object, "status", "state")
	return state
}

// TestRestoreWithAnAgent moves a management plane with an agent and with a root of a VirtualMesh to another cluster. The agent comes back to
// the new serve with the certificate that it has, the root is the same, and nothing is written to the cluster of the agent.
func TestRestoreWithAnAgent(t *testing.T) {
	t.Parallel()
	w := newRelayClusters(t, 3)
	script, err := txtar.ParseFile("../../testdata/script/live/support.txtar")
	require.NoError(t, err)
	for _, file := range script.Files {
		if file.Name == "mesh.yaml" {
			sandboxtest.Apply(t, w.remote, file.Data)
		}
	}
	sandboxtest.Apply(t, w.management, []byte(trustedMesh))
	stop, log := w.serve(), &sandboxtest.Buffer{}
	w.registered(log)
	root := sandboxtest.Clientset(t, w.management).CoreV1().Secrets("gloo-mesh")
	waittest.NoError(t, "the policy is in force, and the agent was asked to take a certificate of the root", func() error {
		if state := w.stateOf(snapshot.TrafficPolicy, "patient"); state != "ACCEPTED" {
			return fmt.Errorf("it is %q: %s", state, log)
		}
		// Without an istiod that runs, the agent gets no further than that.
		if state, wrong := w.issued(); state != "FAILED" {
			return fmt.Errorf("the IssuedCertificate is %q: %s", state, wrong)
		}
		return nil
	})
	_, wrong := w.issued()
	require.Contains(t, wrong, "no pod runs")
	was, err := root.Get(t.Context(), "vm.gloo-mesh", metav1.GetOptions{})
	require.NoError(t, err)
	stop()
	before := w.standing()
	require.Contains(t, strings.Join(before, "\n"), "virtualservices bookinfo/reviews ")

	backup, err := registration.TakeBackup(t.Context(), registration.BackupOptions{Config: w.management, Secrets: true, Now: time.Now()})
	require.NoError(t, err)
	w.management = w.configs["cluster-3"]
	report, err := registration.Restore(t.Context(), backup, registration.RestoreOptions{Config: w.management})
	require.NoError(t, err)
	notes := strings.Join(report.Notes, "\n")
	assert.Contains(t, notes, "1 cluster reached through the agent (cluster-2): start serve with `meshctl install --relay`")
	assert.NotContains(t, notes, "register it again")

	// The address that the agent dials leads to the new serve, as a name would that is moved.
	w.serve()
	waittest.NoError(t, "the agent has come back, and the policy is in force by the new serve", func() error {
		if err := w.listedIn("cluster-3", string(multiclusterv1alpha1.ConnectionStateConnected)); err != nil {
			return fmt.Errorf("%w\n%s", err, log)
		}
		if state := w.stateOf(snapshot.TrafficPolicy, "patient"); state != "ACCEPTED" {
			return fmt.Errorf("the policy is %q", state)
		}
		return nil
	})
	assert.Equal(t, before, w.standing(), "nothing was written")
	is, err := sandboxtest.Clientset(t, w.management).CoreV1().Secrets("gloo-mesh").Get(t.Context(), "vm.gloo-mesh", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, was.Data, is.Data, "the root is the same")
	list, err := sandboxtest.Clientset(t, w.management).CoreV1().Secrets("gloo-mesh").List(t.Context(), metav1.ListOptions{FieldSelector: "type=" + snapshot.RootSecretType})
	require.NoError(t, err)
	assert.Len(t, list.Items, 1, "and there is no other")

	sandboxtest.Apply(t, w.management, []byte(strings.Replace(trustedMesh, "requestTimeout: 1s", "requestTimeout: 2s", 1)))
	waittest.Until(t, "an edit arrives through the agent", func() bool {
		client, err := dynamic.NewForConfig(w.remote)
		require.NoError(t, err)
		o, err := client.Resource(snapshot.VirtualService.GroupVersionResource()).Namespace("bookinfo").Get(t.Context(), "reviews", metav1.GetOptions{})
		require.NoError(t, err)
		return strings.Contains(fmt.Sprint(o.Object["spec"]), "timeout:2s")
	})
}

package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func configMapRef(name string) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: "cluster-1", Namespace: "istio-system", Name: name}
}

// TestConfigMapsOfControlPlanes: those with evidence come first, and those of a control
// plane without a revision are among the names that may be read everywhere.
func TestConfigMapsOfControlPlanes(t *testing.T) {
	t.Parallel()
	b := clustertest.New("cluster-1")
	b.WebhooksUnknown = false
	b.MutatingWebhookConfigurations = []*admissionv1.MutatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: "injector"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:         injectorWebhook,
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "istio-system", Name: "istiod"}},
		}},
	}}
	forged := b.Istiod("forged")
	forged.Namespace = "a-tenant"
	b.Istiod(defaultRevision)
	b.Istiod("canary")
	b.Deployment("team", "app", map[string]string{"app": "app"})
	tenant := func(name string) snapshot.Ref {
		ref := configMapRef(name)
		ref.Namespace = "a-tenant"
		return ref
	}
	assert.Equal(t, []snapshot.Ref{
		configMapRef("istio"), configMapRef("istio-ca-root-cert"), configMapRef("istio-canary"), tenant("istio-forged"), tenant("istio-ca-root-cert"),
	}, detectors.ConfigMaps(b.Cluster))
	for _, name := range []string{settingsMapOf(defaultRevision), rootsName} {
		assert.Contains(t, detectors.ConfigMapNames(), name)
	}
}

// TestSettingsThatCannotBeRead: they stay as they were; if nothing is known, no identity is
// assumed, and what had another mesh keeps it.
func TestSettingsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := clustertest.New("cluster-1")
	b.Istiod(defaultRevision)
	b.Istiod("canary")
	app := b.Deployment("team", "app", map[string]string{"app": "app"})
	pod := b.Pod(app, "app-1", "")
	first := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors})
	require.Len(t, first.Meshes, 2)
	require.Len(t, first.Workloads, 1)

	b.ConfigMaps = b.ConfigMaps[:1]
	b.Unread = []snapshot.Unread{{Ref: configMapRef("istio-canary"), Denied: true, Reason: "because"}}
	pod.Annotations[revisionKey] = "canary"
	pod.Annotations[statusKey] = ""
	own := first.Workloads[0].Spec.Mesh.Name
	stored := &snapshot.Management{Namespace: "gloo-mesh", Workloads: first.Workloads}
	got := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors, Stored: stored})
	require.Len(t, got.Meshes, 1, "the canary is left out")
	require.Len(t, got.Workloads, 1, "its pod stays in the mesh that it had")
	assert.Equal(t, own, got.Workloads[0].Spec.Mesh.Name)
	var unreadable []snapshot.Issue
	for _, issue := range got.Issues {
		if issue.Code == snapshot.MeshUnreadable {
			unreadable = append(unreadable, issue)
		}
	}
	require.Len(t, unreadable, 1)
	assert.Equal(t, configMapRef("istio-canary"), unreadable[0].Ref)
	assert.Contains(t, unreadable[0].Message, "(because), so its control plane is left out")
	assert.Contains(t, unreadable[0].Hint, "`meshctl cluster register cluster-1`")
	assert.Empty(t, discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors}).Workloads, "one without a mesh before gets none")

	for _, mesh := range first.Meshes {
		known := *mesh
		known.Spec.Istio = mesh.Spec.Istio.DeepCopy()
		known.Spec.Istio.TrustDomain, known.Spec.Istio.RootFingerprints = "stored.example", []string{"aa"}
		stored.Meshes = append(stored.Meshes, &known)
	}
	b.Unread = append(b.Unread, snapshot.Unread{Ref: configMapRef(rootsName), Reason: "later"})
	got = discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors, Stored: stored})
	require.Len(t, got.Meshes, 2)
	domains := map[string]*discoveryv1.IstioMesh{}
	for _, mesh := range got.Meshes {
		domains[mesh.Spec.Istio.TrustDomain] = mesh.Spec.Istio
	}
	require.Contains(t, domains, "stored.example", "the canary's last settings")
	require.Contains(t, domains, "cluster.local", "those of the other one were read")
	assert.Equal(t, []string{"aa"}, domains["stored.example"].RootFingerprints)
}

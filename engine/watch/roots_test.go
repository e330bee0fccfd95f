package watch_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// createInjector makes the webhook configuration that leads to the istiod of a namespace.
func createInjector(t *testing.T, k8s kubernetes.Interface, namespace string) {
	t.Helper()
	none := admissionv1.SideEffectClassNone
	_, err := k8s.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "istio-sidecar-injector-" + namespace, Labels: map[string]string{"app": "sidecar-injector"}},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:         "namespace.sidecar-injector.istio.io",
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: "istiod", Namespace: namespace}},
			SideEffects:  &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestRootsFollowTheConfigMapOfTheControlPlane: the roots of a mesh are those that are
// beside its control plane now, whatever is in other namespaces.
func TestRootsFollowTheConfigMapOfTheControlPlane(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	k8s := client(t, config)
	createIstiod(t, config, "default", "")
	createInjector(t, k8s, "default")
	createSettings(t, config, "default", "istio", "td")
	tenant := namespace(t, config)

	a, b := rootsOf(t, "root-a"), rootsOf(t, "root-b")
	const rootA, rootB = "c180deee4fbf339d0f528db6766a57ac9403c406eb0dd4d02ad91fa106c0f108", "97177f596783978d7e57944f1cbbe7adae9a6c0fa4317a5f90f9b7f292548740"
	create := func(namespace string, data map[string]string) *corev1.ConfigMap {
		created, err := k8s.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "istio-ca-root-cert"}, Data: data,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		return created
	}
	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	w.Set("west", "", config, nil)
	trusts := func(what string, roots ...string) {
		t.Helper()
		w.until(what, func(i *snapshot.Input) bool {
			found := discovery.Discover(named(i, "west"), discovery.Options{Detectors: engine.Detectors()})
			return len(found.Meshes) == 1 && assert.ObjectsAreEqual(roots, found.Meshes[0].Spec.Istio.RootFingerprints)
		})
	}
	trusts("a mesh without known roots", []string(nil)...)
	create(tenant, b)
	own := create("default", a)
	trusts("its root", rootA)
	own.Data = b
	_, err = k8s.CoreV1().ConfigMaps("default").Update(t.Context(), own, metav1.UpdateOptions{})
	require.NoError(t, err)
	trusts("another root", rootB)
	require.NoError(t, k8s.CoreV1().ConfigMaps("default").Delete(t.Context(), own.Name, metav1.DeleteOptions{}))
	trusts("unknown roots again", []string(nil)...)
}

// rootsOf are the data of a ConfigMap with roots.
func rootsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/clusters/" + name + ".yaml")
	require.NoError(t, err)
	var cm corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(text, &cm))
	return cm.Data
}

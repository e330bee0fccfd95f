package roots

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/waittest"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestARootIsGeneratedOnce: it is there after a restart, in the format of Gloo Mesh 1.x, and
// its key is nowhere else.
func TestARootIsGeneratedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.config)
	vm := virtualMesh(w.namespace, "a.b")
	w.have(vm)
	said := w.signs("a.b")
	require.Len(t, said.Roots, 1)
	assert.Empty(t, said.Problem)
	name := "a.b." + w.namespace
	assert.Equal(t, snapshot.Ref{Kind: snapshot.Secret, Namespace: w.namespace, Name: name}, said.Roots[0].Secret)
	secret := w.secrets()[name]
	assert.Equal(t, SecretType, secret.Type)
	assert.Equal(t, map[string]string{snapshot.NetworkingOwnerLabel: w.namespace, snapshot.PlaneLabel: "plane-1"}, secret.Labels)
	assert.Equal(t, w.namespace+"/a.b", secret.Annotations[VirtualMeshAnnotation])
	assert.Contains(t, string(secret.Data[pki.RootKeyKey]), "BEGIN RSA PRIVATE KEY")
	root := w.store.Authority(said.VirtualMesh, said.Signs).Chain().Root()
	assert.Equal(t, []string{"gloo-mesh"}, root.Subject.Organization)
	assert.InDelta(t, 365*24, time.Until(root.NotAfter).Hours(), 1)
	assert.Nil(t, w.store.Authority(snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: w.namespace, Name: "other"}, said.Signs))

	dump, err := json.Marshal(said)
	require.NoError(t, err)
	w.assertSilent(w.log.String(), string(dump), fmt.Sprintf("%+v %#v", said, said),
		fmt.Sprintf("%+v %#v", w.store.Authority(said.VirtualMesh, said.Signs), w.store.Authority(said.VirtualMesh, said.Signs)))

	w.end()
	w.set(nil)
	w.start(w.config)
	w.touch()
	assert.Equal(t, said, w.signs("a.b"))
	w.looked()
	require.Len(t, w.secrets(), 1)
	assert.Equal(t, secret.ResourceVersion, w.secrets()[name].ResourceVersion)
}

// TestWhatIsThereIsReused: a root of Gloo Mesh 1.x, which has no labels of ours, is used when an
// administrator has accepted it, and never changed or deleted; what cannot be used is not overwritten.
func TestWhatIsThereIsReused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := newRoot(t, 0, time.Now(), "gloo-mesh", 365*day)
	name := func(vm string) string { return vm + "." + w.namespace }
	w.put(name("old"), SecretType, rootSecret(t, old))
	garbage := rootSecret(t, newRoot(t, 1, time.Now(), "gloo-mesh", 365*day))
	garbage[pki.RootCertKey] = []byte("garbage")
	w.put(name("garbage"), SecretType, garbage)
	mixed := rootSecret(t, old)
	mixed[pki.RootKeyKey] = garbage[pki.RootKeyKey]
	w.put(name("mixed"), SecretType, mixed)
	expired := newRoot(t, 2, time.Now().Add(-100*day), "gloo-mesh", 10*day)
	w.put(name("expired"), SecretType, rootSecret(t, expired))
	w.put(name("users"), corev1.SecretTypeOpaque, map[string][]byte{"password": []byte("x")})
	before := w.secrets()
	w.start(w.config)
	w.have(virtualMesh(w.namespace, "old"))
	said := w.until("that it waits", "old", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Equal(t, fmt.Sprintf("Secret %s/%s has root %s, which this management plane has neither made nor recorded, so that it does not count; "+
		"if it is to: `meshctl trust accept old %[3]s`; if not, delete the Secret", w.namespace, name("old"), fingerprint(old)), said.Problem)
	assert.Empty(t, said.Signs)
	assert.Empty(t, said.Roots)
	assert.Nil(t, w.store.Authority(said.VirtualMesh, fingerprint(old)))
	accept := func(root *pki.Authority) func(*networkingv1.VirtualMesh) {
		return annotated(snapshot.TrustAcceptAnnotation, fingerprint(root))
	}
	w.have(virtualMesh(w.namespace, "old", accept(old)), virtualMesh(w.namespace, "garbage"), virtualMesh(w.namespace, "mixed"),
		virtualMesh(w.namespace, "expired", accept(expired)), virtualMesh(w.namespace, "users"))
	assert.Equal(t, fingerprint(old), w.signs("old").Signs)
	for vm, problem := range map[string]string{
		"garbage": "root-cert.pem", "mixed": "key", "expired": "expired at", "users": "not made by meshctl; rename it",
	} {
		said := w.until("its problem", vm, func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, problem) })
		assert.Empty(t, said.Signs, vm)
		assert.Contains(t, said.Problem, "Secret "+w.namespace+"/"+name(vm))
		t.Log(said.Problem)
	}
	w.mu.Lock()
	w.unused = []string{fingerprint(old)}
	w.mu.Unlock()
	w.looked()
	w.ahead.Store(int64(time.Hour))
	w.looked()
	assert.Equal(t, before, w.secrets())
	var problems strings.Builder
	for _, vm := range []string{"garbage", "mixed", "expired"} {
		problems.WriteString(w.of(vm).Problem)
	}
	w.assertSilent(w.log.String(), problems.String())
}

// TestARotationAndTheWayBack: a new root for an annotation, once; the former one signs again if it
// is named; and what is not used goes after a while.
func TestARotationAndTheWayBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.config)
	w.have(virtualMesh(w.namespace, "vm"))
	first := w.signs("vm").Signs

	rotate := annotated(snapshot.TrustRotateAnnotation, time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
	w.have(virtualMesh(w.namespace, "vm", rotate))
	said := w.signs("vm", first)
	second := said.Signs
	assert.NotNil(t, said.Find(first), "members still present it")
	w.looked()
	assert.Len(t, w.of("vm").Roots, 2, "one root for one request")

	w.have(virtualMesh(w.namespace, "vm", rotate, annotated(snapshot.TrustRootAnnotation, first)))
	assert.Equal(t, first, w.signs("vm", second).Signs)
	w.have(virtualMesh(w.namespace, "vm", rotate, annotated(snapshot.TrustRootAnnotation, "no such")))
	said = w.until("that it is unknown", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Equal(t, first, said.Signs, "what signed before")
	assert.Contains(t, said.Problem, second, "it says which there are")
	w.have(virtualMesh(w.namespace, "vm", rotate))
	assert.Equal(t, second, w.signs("vm", first).Signs)

	w.mu.Lock()
	w.unused = []string{first, second}
	w.mu.Unlock()
	w.looked()
	assert.Len(t, w.secrets(), 2, "the way back stays open for a while")
	w.ahead.Store(int64(unusedFor + time.Second))
	w.touch()
	waittest.Until(t, "the former root goes", func() bool { return len(w.secrets()) == 1 })
	w.until("it is not listed", "vm", func(r *snapshot.VirtualMeshRoots) bool { return len(r.Roots) == 1 && r.Signs == second })
	w.looked()
	assert.Len(t, w.secrets(), 1, "its certificate is not kept")
	assert.Contains(t, w.log.String(), "dropped a root certificate")
	w.assertSilent(w.log.String())
}

// TestAUsersRoot: in all formats, replaced, broken and taken away; and generated again.
func TestAUsersRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := newRoot(t, 0, time.Now(), "a", 3650*day), newRoot(t, 1, time.Now(), "b", 3650*day), newRoot(t, 2, time.Now(), "c", 3650*day)
	key := func(a *pki.Authority) []byte { return rootSecret(t, a)[pki.RootKeyKey] }
	cert := func(a *pki.Authority) []byte { return a.Chain().PEM() }
	w.start(w.config)
	w.have(virtualMesh(w.namespace, "vm", fromSecret(w.namespace, "mine")))
	said := w.until("that it is missing", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Contains(t, said.Problem, "Secret "+w.namespace+"/mine does not exist; create it")

	w.put("mine", corev1.SecretTypeOpaque, map[string][]byte{pki.RootCertKey: cert(a), pki.RootKeyKey: key(a)})
	said = w.signs("vm")
	assert.Equal(t, fingerprint(a), said.Signs)
	assert.Equal(t, "mine", said.Roots[0].Secret.Name)
	assert.NotNil(t, w.store.Authority(said.VirtualMesh, said.Signs))
	require.Len(t, w.secrets(), 2)
	for name, secret := range w.secrets() {
		if name != "mine" {
			assert.Equal(t, map[string][]byte{pki.RootCertKey: cert(a)}, secret.Data, "the certificate is kept, without the key")
		}
	}
	w.put("mine", corev1.SecretTypeOpaque, map[string][]byte{pki.TLSCertKey: cert(b), pki.TLSKeyKey: key(b), pki.TLSRootKey: cert(b)})
	said = w.signs("vm", fingerprint(a))
	assert.Equal(t, fingerprint(b), said.Signs)
	assert.Equal(t, snapshot.Ref{}, said.Find(fingerprint(a)).Secret, "its key is gone")
	w.put("mine", corev1.SecretTypeOpaque, map[string][]byte{pki.CACertKey: cert(c), pki.CAKeyKey: key(c), pki.CAChainKey: cert(c), pki.RootCertKey: cert(c)})
	said = w.signs("vm", fingerprint(b))
	assert.Equal(t, fingerprint(c), said.Signs)
	assert.Len(t, said.Roots, 3)

	w.put("mine", corev1.SecretTypeOpaque, map[string][]byte{pki.RootCertKey: cert(a), pki.RootKeyKey: key(b)})
	said = w.until("that it is broken", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Len(t, said.Roots, 3)
	assert.Empty(t, said.Signs)
	t.Log(said.Problem)
	require.NoError(t, w.api.CoreV1().Secrets(w.namespace).Delete(t.Context(), "mine", metav1.DeleteOptions{}))
	said = w.until("that it is gone", "vm", func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, "does not exist") })
	assert.Len(t, said.Roots, 3)

	w.end()
	w.set(nil)
	w.start(w.config)
	w.touch()
	said = w.until("the same after a restart", "vm", func(r *snapshot.VirtualMeshRoots) bool { return len(r.Roots) == 3 })
	assert.Empty(t, said.Signs)
	w.have(virtualMesh(w.namespace, "vm"))
	said = w.signs("vm")
	assert.Len(t, said.Roots, 4, "a generated root is like any other")

	w.have(virtualMesh(w.namespace, "vm", fromSecret("istio-system", "cacerts")))
	said = w.until("that it is refused", "vm", func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, "what istiod signs with") })
	assert.Empty(t, said.Signs)
	w.assertSilent(w.log.String())
}

// TestTheRootsOfADeletedVirtualMesh go after a while, if the API server says that it is gone.
func TestTheRootsOfADeletedVirtualMesh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, err := dynamic.NewForConfig(w.config)
	require.NoError(t, err)
	stored := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "vm"}, "spec": map[string]any{}}}
	stored.SetGroupVersionKind(snapshot.VirtualMesh.Info().GroupVersionKind)
	objects := client.Resource(snapshot.VirtualMesh.GroupVersionResource()).Namespace(w.namespace)
	_, err = objects.Create(t.Context(), stored, metav1.CreateOptions{})
	require.NoError(t, err)
	w.put("other.elsewhere", SecretType, rootSecret(t, newRoot(t, 0, time.Now(), "o", 365*day))) // not ours
	w.start(w.config)
	other := virtualMesh(w.namespace, "stays")
	w.have(other, virtualMesh(w.namespace, "vm"))
	first := w.signs("vm").Signs
	w.signs("stays")

	w.have(other)
	w.looked()
	w.ahead.Store(int64(goneFor - time.Second))
	w.have(other, virtualMesh(w.namespace, "vm"))
	assert.Equal(t, first, w.signs("vm").Signs, "created again soon, it has its root")
	w.have(other)
	w.looked()
	w.ahead.Store(int64(3 * goneFor))
	w.looked()
	assert.Len(t, w.secrets(), 3, "the API server has it")
	require.NoError(t, objects.Delete(t.Context(), "vm", metav1.DeleteOptions{}))
	w.touch()
	waittest.Until(t, "its root is deleted", func() bool { return len(w.secrets()) == 2 })
	assert.Contains(t, w.secrets(), "other.elsewhere")
	assert.Contains(t, w.secrets(), "stays."+w.namespace)
}

// TestAVirtualMeshThatDoesNotCount has no root made; one that it had stays as it is, until it counts again.
func TestAVirtualMeshThatDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.notCounted = map[string]bool{"never": true}
	w.start(w.config)
	counts, some, never := virtualMesh(w.namespace, "counts"), virtualMesh(w.namespace, "some"), virtualMesh(w.namespace, "never")
	w.have(counts, some, never)
	w.signs("counts")
	first := w.signs("some").Signs
	w.looked()
	assert.Len(t, w.secrets(), 2)
	assert.Nil(t, w.of("never"))

	w.mu.Lock()
	w.notCounted = map[string]bool{"never": true, "some": true}
	w.mu.Unlock()
	w.ahead.Store(int64(3 * goneFor))
	w.looked()
	assert.Nil(t, w.of("some"))
	assert.Len(t, w.secrets(), 2)
	w.mu.Lock()
	w.notCounted = nil
	w.mu.Unlock()
	w.touch()
	assert.Equal(t, first, w.signs("some").Signs)
	w.signs("never")
	w.looked()
	assert.Len(t, w.secrets(), 3)
}

// TestARootOfSomebodyElse: who may edit a VirtualMesh somewhere names any Secret that the management
// plane can read. It signs only if it is in the namespace of the VirtualMesh, or names that; and
// nobody is told what else is there.
func TestARootOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.config)
	owner := virtualMesh(w.namespace, "vm")
	w.have(owner)
	generated := w.signs("vm").Roots[0].Secret.Name
	lent := func(to string) *corev1.Secret {
		mine := newRoot(t, 0, time.Now(), "a", 3650*day)
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine", Annotations: map[string]string{VirtualMeshAnnotation: to}},
			Data:       rootSecret(t, mine),
		}
	}
	w.put("no-ca", "solo.io/kubeconfig", map[string][]byte{"kubeconfig": []byte("secret")})
	_, err := w.api.CoreV1().Secrets(w.namespace).Create(t.Context(), lent("someteam/another"), metav1.CreateOptions{})
	require.NoError(t, err)
	for _, secret := range []string{generated, "mine", "no-ca", "absent"} {
		w.have(owner, virtualMesh("someteam", "grab", fromSecret(w.namespace, secret)))
		said := w.until("that it is refused", "grab", func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, "/"+secret+" ") })
		assert.Equal(t, fmt.Sprintf("Secret %s/%s does not exist, or does not name this VirtualMesh, and is in another namespace: if it may sign with that, "+
			"annotate the Secret with trust.multicluster.solo.io/virtual-mesh=someteam/grab", w.namespace, secret), said.Problem)
		assert.Empty(t, said.Signs)
		assert.Empty(t, said.Roots)
	}
	for _, secret := range []string{generated, "mine"} {
		w.have(owner, virtualMesh(w.namespace, "grab", fromSecret(w.namespace, secret)))
		said := w.until("that it is refused", "grab", func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, "is that of VirtualMesh") })
		assert.Empty(t, said.Signs)
	}
	w.have(owner, virtualMesh(w.namespace, "grab", fromSecret(w.namespace, "no-ca")))
	said := w.until("that it is refused", "grab", func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, "has no CA") })
	assert.NotContains(t, said.Problem, "kubeconfig")

	_, err = w.api.CoreV1().Secrets(w.namespace).Update(t.Context(), lent("someteam/grab"), metav1.UpdateOptions{})
	require.NoError(t, err)
	w.have(owner, virtualMesh("someteam", "grab", fromSecret(w.namespace, "mine")))
	assert.Equal(t, "mine", w.signs("grab").Roots[0].Secret.Name)
}

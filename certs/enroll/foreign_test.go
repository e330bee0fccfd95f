package enroll

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// userPKI is a root that is not the relay's.
func (w *world) userPKI() *pki.Authority {
	w.t.Helper()
	key, err := identity.NewKey(rand.Reader)
	require.NoError(w.t, err)
	root, err := pki.NewRoot(rand.Reader, *w.now.Load(), key, pki.Subject{Organization: "Example", CommonName: "Example root"}, pki.Life{Lasts: 1000 * time.Hour, Backdate: time.Hour})
	require.NoError(w.t, err)
	return root
}

// userCertificate is what a user's PKI writes into the Secret of an agent.
func (w *world) userCertificate(by *pki.Authority, host string) map[string][]byte {
	w.t.Helper()
	key, err := identity.NewKey(rand.Reader)
	require.NoError(w.t, err)
	request, err := pki.NewRequest(rand.Reader, key, "Example", []string{host})
	require.NoError(w.t, err)
	read, err := pki.ReadRequest(request)
	require.NoError(w.t, err)
	issued, err := by.SignLeaf(rand.Reader, *w.now.Load(), read, pki.Grant{
		Subject: pki.Subject{Organization: "Example"}, Hosts: []string{host}, Life: pki.Life{Lasts: 100 * time.Hour, Backdate: time.Hour},
	})
	require.NoError(w.t, err)
	private, err := key.PEM()
	require.NoError(w.t, err)
	return map[string][]byte{pki.TLSCertKey: issued.Chain[:1].PEM(), pki.TLSKeyKey: private, pki.TLSRootKey: by.Chain().PEM()}
}

// write has a user's PKI write the Secret of an agent.
func (w *world) write(data map[string][]byte) {
	w.t.Helper()
	secrets := w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace)
	known, err := w.keeper.secret(w.t.Context(), ClientSecret)
	require.NoError(w.t, err)
	if known == nil {
		_, err = secrets.Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: ClientSecret}, Type: corev1.SecretTypeTLS, Data: data}, metav1.CreateOptions{})
	} else {
		known.Data = data
		_, err = secrets.Update(w.t.Context(), known, metav1.UpdateOptions{})
	}
	require.NoError(w.t, err)
}

// register makes a KubernetesCluster.
func (w *world) register(name, uid, secret string) {
	w.t.Helper()
	config := sandboxtest.APIServer(w.t)
	_, err := registration.InstallCRDs(w.t.Context(), config)
	require.NoError(w.t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(w.t, err)
	kc := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secretName": secret}}}
	kc.SetAPIVersion("multicluster.solo.io/v1alpha1")
	kc.SetKind("KubernetesCluster")
	kc.SetName(name)
	if uid != "" {
		kc.SetAnnotations(map[string]string{snapshot.ClusterUIDAnnotation: uid})
	}
	_, err = client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(w.store.Namespace).Create(w.t.Context(), kc, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// TestACertificateOfTheUsersPKI: the hub takes it if it knows the root and the cluster is registered, and binds the name to the first cluster
// that comes. The agent reads another one when it is written, and asks the hub for none.
func TestACertificateOfTheUsersPKI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	root := w.userPKI()
	w.keeper.Hub = nil // whoever asks it panics
	w.write(w.userCertificate(root, "west"))
	w.give("mr1.not.used")
	require.NoError(t, w.keeper.Start(ctx))
	first := w.shown(w.keeper.TLS())[0]

	require.ErrorContains(t, w.admit(), "Example", "the hub does not know the root")
	_, err := w.store.create(ctx, ClientRootSecret, map[string][]byte{pki.TLSRootKey: root.Chain().PEM(), pki.TLSCertKey: {}, pki.TLSKeyKey: {}})
	require.NoError(t, err)
	require.ErrorContains(t, w.admit(), "no cluster of this name is registered")
	w.register("west", "", "")
	require.NoError(t, w.admit())
	r, err := w.store.Record(ctx, "west")
	require.NoError(t, err)
	assert.Equal(t, "uid-1", r.UID, "it is bound")
	w.uid = "uid-2"
	require.ErrorContains(t, w.admit(), "was enrolled in that with uid-1")
	w.uid = "uid-1"

	require.NoError(t, w.keeper.look(ctx))
	assert.Equal(t, first, w.shown(w.keeper.TLS())[0])
	w.at(90 * time.Hour)
	w.write(w.userCertificate(root, "west"))
	require.NoError(t, w.keeper.look(ctx))
	second := w.shown(w.keeper.TLS())[0]
	assert.NotEqual(t, first.SerialNumber, second.SerialNumber)
	w.at(110 * time.Hour)
	require.NoError(t, w.admit(), "the first one has ended")

	w.write(w.userCertificate(root, "east"))
	require.ErrorContains(t, w.keeper.look(ctx), "is that of cluster east")
	assert.Equal(t, second, w.shown(w.keeper.TLS())[0], "the last one stays")
	broken := w.userCertificate(root, "west")
	broken[pki.TLSKeyKey] = w.userCertificate(root, "west")[pki.TLSKeyKey]
	w.write(broken)
	require.ErrorContains(t, w.keeper.look(ctx), "is not for this private key")

	require.NoError(t, w.store.Revoke(ctx, "west"))
	require.ErrorContains(t, w.admit(), "was revoked")
	w.at(110*time.Hour + 30*time.Minute)
	w.write(w.userCertificate(root, "west"))
	require.NoError(t, w.keeper.look(ctx))
	require.ErrorContains(t, w.admit(), "was revoked", "its life began before that: it is backdated")
	w.at(112 * time.Hour)
	w.write(w.userCertificate(root, "west"))
	require.NoError(t, w.keeper.look(ctx))
	require.NoError(t, w.admit(), "issued since")
}

// TestNamesOfTheUsersPKI: a certificate that names the management plane needs no flag, others do; a name of another cluster is refused.
func TestNamesOfTheUsersPKI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ host, cluster, plane, want string }{
		"all is in the certificate": {identity.AgentName("plane-1", "west"), "", "", ""},
		"a DNS name":                {"west", "", "plane-1", ""},
		"the plane is not known":    {"west", "west", "", "start the agent with --relay-plane UID"},
		"of another cluster":        {"west", "east", "plane-1", "is that of cluster west"},
		"of another plane":          {identity.AgentName("plane-2", "west"), "west", "plane-1", "names no cluster of the management plane plane-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.keeper.Cluster, w.keeper.Plane = c.cluster, c.plane
			w.write(w.userCertificate(w.userPKI(), c.host))
			err := w.keeper.Start(t.Context())
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{"west", "plane-1"}, []string{w.keeper.Cluster, w.keeper.Plane})
		})
	}
}

// TestTheUsersPKIDecidesAboutItsNamesOnly: a name that is reached with a credential, or is another cluster's, is none of its.
func TestTheUsersPKIDecidesAboutItsNamesOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ uid, secret, want string }{
		"reached with a credential": {"", "west", "is reached with a credential"},
		"another cluster's":         {"uid-9", "", "the name is that of the cluster with UID uid-9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			root := w.userPKI()
			_, err := w.store.create(t.Context(), ClientRootSecret, map[string][]byte{pki.TLSRootKey: root.Chain().PEM(), pki.TLSCertKey: {}, pki.TLSKeyKey: {}})
			require.NoError(t, err)
			w.register("west", c.uid, c.secret)
			w.write(w.userCertificate(root, "west"))
			require.NoError(t, w.keeper.Start(t.Context()))
			require.ErrorContains(t, w.admit(), c.want)
		})
	}
}

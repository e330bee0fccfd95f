package serving_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/serving"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/kube"
)

const host = "meshctl-webhook.mesh.svc"

// trusted says why a client that trusts a bundle does not trust a certificate; nil if it does.
func trusted(t *testing.T, shown tls.Certificate, bundle []byte, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(bundle))
	server, client := net.Pipe()
	defer func() { _ = server.Close(); _ = client.Close() }()
	go func() {
		_ = tls.Server(server, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{shown}}).Handshake()
	}()
	return tls.Client(client, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host, Time: func() time.Time { return at }}).Handshake()
}

// TestCertificate: one is made and kept, renewed before it ends, while the one before is still trusted, and made anew when it
// has ended.
func TestCertificate(t *testing.T) {
	t.Parallel()
	client, err := kube.NewClientset(kube.Unlimited(sandboxtest.APIServer(t)))
	require.NoError(t, err)
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "serving-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	store := &serving.Store{Client: client, Namespace: made.Name, Name: "meshctl-webhook", Hosts: []string{host}, Now: func() time.Time { return now }}
	get := func() (tls.Certificate, []byte) {
		t.Helper()
		shown, bundle, err := store.Certificate(t.Context())
		require.NoError(t, err)
		require.NoError(t, trusted(t, shown, bundle, now))
		return shown, bundle
	}
	first, bundle := get()
	kept, same := get()
	assert.Equal(t, first.Certificate, kept.Certificate, "it is kept")
	assert.Equal(t, string(bundle), string(same), "nothing changes by reading it")

	now = now.Add(serving.Life * 3 / 4)
	second, both := get()
	assert.NotEqual(t, first.Certificate, second.Certificate, "it is renewed in time")
	require.NoError(t, trusted(t, first, both, now), "what is still shown is trusted beside it")

	now = now.Add(serving.Life + time.Hour)
	third, bundle := get()
	assert.NotEqual(t, second.Certificate, third.Certificate)
	require.Error(t, trusted(t, first, bundle, now.Add(-serving.Life)), "the CA of what has ended is dropped")

	store.Hosts = []string{host, "other.example.com"}
	fourth, _ := get()
	assert.NotEqual(t, third.Certificate, fourth.Certificate, "it gets a name that it lacks")

	// One of somebody else is used as it is, and never replaced.
	secrets := client.CoreV1().Secrets(made.Name)
	secret, err := secrets.Get(t.Context(), store.Name, metav1.GetOptions{})
	require.NoError(t, err)
	secret.Labels = nil
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	store.Hosts = []string{"another.example.com"}
	foreign, _ := get()
	assert.Equal(t, fourth.Certificate, foreign.Certificate)
	now = now.Add(2 * serving.Life)
	_, _, err = store.Certificate(t.Context())
	require.ErrorContains(t, err, "its certificate has expired; renew it")
	assert.NotContains(t, err.Error(), "PRIVATE KEY")
}

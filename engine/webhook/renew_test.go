package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/meshctl/meshctl/engine/kube"
)

// TestRenewedIsShownWhenItsCAIsKnown: API servers learn of a CA before a certificate of it is shown, unless the one before has
// expired.
func TestRenewedIsShownWhenItsCAIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	made := func(name string, ends time.Time) Certificate {
		return Certificate{TLS: tls.Certificate{Certificate: [][]byte{[]byte(name)}, Leaf: &x509.Certificate{NotAfter: ends}}, Bundle: []byte("CA of " + name)}
	}
	current := made("first", now.Add(time.Hour))
	r := &running{webhook: New(Options{Namespace: "mesh", Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}), ServeOptions: ServeOptions{
		URL: "https://host", Client: kube.Clientset(fake.NewClientset()),
		Certificate: func(context.Context) (Certificate, error) { return current, nil },
	}}
	shown := func() string { return string(r.shown.Load().Certificate[0]) }
	publish := func() time.Duration { return r.publish(t.Context()) }
	require.Equal(t, keepSoon, publish(), "the configuration was written")
	assert.Equal(t, "first", shown())
	require.Equal(t, keepAgain, publish(), "nothing is left to write")

	current = made("second", now.Add(2*time.Hour))
	require.Equal(t, keepSoon, publish())
	assert.Equal(t, "first", shown(), "the CA of the second one was only just made known")
	require.Equal(t, keepAgain, publish())
	assert.Equal(t, "second", shown())

	now = now.Add(3 * time.Hour)
	current = made("third", now.Add(time.Hour))
	require.Equal(t, keepSoon, publish())
	assert.Equal(t, "third", shown(), "what has expired is not shown any longer")
}

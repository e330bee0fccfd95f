package webhook_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/serving"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// TestRotationUnderLoad: while the certificate of the webhook and its CA change, an API server gets an answer to each
// request: with failure policy Fail, none fails for another reason than Roles.
func TestRotationUnderLoad(t *testing.T) {
	waittest.SkipIfShort(t, "starts an API server")
	t.Parallel()
	server := registrationtest.APIServers(t, 1)[0]
	config, err := server.Config()
	require.NoError(t, err)
	config = kube.Unlimited(config)
	sandboxtest.MakeNamespace(t, config, home)
	sandboxtest.Apply(t, config, []byte(everybodyWrites))
	client, err := kube.NewClientset(config)
	require.NoError(t, err)
	address := sandboxtest.Address(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)

	// So long ago, that what is made then is due now, and has not ended.
	var ago atomic.Int64
	ago.Store(int64(serving.Life * 3 / 4))
	store := &serving.Store{Client: client, Namespace: home, Name: webhook.Secret, Hosts: []string{"localhost"}, Now: func() time.Time { return time.Now().Add(-time.Duration(ago.Load())) }}
	state := &snapshot.State{Input: &snapshot.Input{Management: &snapshot.Management{Namespace: home}}}
	begin := func() (webhook.Running, func()) {
		hook := webhook.New(webhook.Options{Namespace: home, State: func() *snapshot.State { return state }, Mode: webhook.Enforce, Log: slog.New(slog.DiscardHandler)})
		r, err := webhook.NewRunning(t.Context(), hook, webhook.ServeOptions{
			URL: "https://localhost:" + port, FailurePolicy: "Fail", Client: client,
			Certificate: func(ctx context.Context) (webhook.Certificate, error) {
				shown, bundle, err := store.Certificate(ctx)
				return webhook.Certificate{TLS: shown, Bundle: bundle}, err
			},
		})
		require.NoError(t, err)
		s := r.Server()
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // a connection for each request, which shows the certificate of the moment
		s.SetKeepAlivesEnabled(false)
		listener := sandboxtest.Listen(t, address)
		go func() { _ = s.ServeTLS(listener, "", "") }()
		return r, func() { assert.NoError(t, s.Shutdown(context.WithoutCancel(t.Context()))) }
	}
	r, end := begin()
	r.Publish(t.Context())
	first := r.Shown().Leaf

	ask := rejected(t, config)
	waittest.NoError(t, "Roles are enforced", ask)

	var answered atomic.Int64
	var failures sync.Map
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := ask(); err != nil {
					failures.Store(err.Error(), true)
				}
				answered.Add(1)
			}
		})
	}
	// some lets requests pass, as many as API servers answer in the time that they need to learn of a configuration.
	some := func() {
		before := answered.Load()
		waittest.Until(t, "requests are answered", func() bool { return answered.Load() > before+100 })
	}
	some()
	ago.Store(0)
	require.Equal(t, webhook.KeepSoon, r.Publish(t.Context()), "the new CA was made known")
	assert.True(t, first.Equal(r.Shown().Leaf))
	some()
	require.Equal(t, webhook.KeepAgain, r.Publish(t.Context()))
	second := r.Shown().Leaf
	assert.False(t, first.Equal(second), "it shows the new certificate")
	some()
	cancel()
	group.Wait()
	failures.Range(func(text, _ any) bool { return assert.Fail(t, "a request failed", "%v", text) })
	end()

	// The next version serves with what is there, and its clients need to learn nothing.
	next, end := begin()
	defer end()
	assert.True(t, second.Equal(next.Shown().Leaf))
	require.NoError(t, ask())
}

// rejected asks for something that Roles do not allow, and fails unless the webhook says so.
func rejected(t *testing.T, config *rest.Config) func() error {
	t.Helper()
	user := rest.CopyConfig(config)
	user.Impersonate = rest.ImpersonationConfig{UserName: "ada", Groups: []string{"system:authenticated"}}
	writes, err := dynamic.NewForConfig(user)
	require.NoError(t, err)
	return func() error {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}}
		o.SetGroupVersionKind(snapshot.TrafficPolicy.Info().GroupVersionKind)
		_, err := writes.Resource(snapshot.TrafficPolicy.GroupVersionResource()).Namespace(home).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("not rejected: %w", err)
		}
		return nil
	}
}

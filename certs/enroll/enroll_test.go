package enroll

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
)

// world is a hub and the keeper of an agent, each with a namespace of its own in one API server.
type world struct {
	t      *testing.T
	store  *Store
	keeper *Keeper
	now    atomic.Pointer[time.Time]
	uid    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := sandboxtest.APIServer(t)
	client, err := kube.NewClientset(kube.Unlimited(config))
	require.NoError(t, err)
	names := [2]string{}
	for i := range names {
		made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "enroll-"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		names[i] = made.Name
	}
	w := &world{t: t, uid: "uid-1"}
	w.at(0)
	clock := func() time.Time { return *w.now.Load() }
	w.store = &Store{Client: client, Namespace: names[0], Plane: "plane-1", Now: clock}
	w.keeper = &Keeper{
		Client: client, Namespace: names[1], Cluster: "west", Plane: "plane-1", ServerName: "hub.example", Hub: calls{w},
		Log: slog.New(slog.DiscardHandler), Now: clock,
	}
	return w
}

// at sets the clock.
func (w *world) at(after time.Duration) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).Add(after)
	w.now.Store(&now)
}

// calls are those of an agent that has shown what its TLS shows.
type calls struct{ w *world }

func (c calls) Enroll(ctx context.Context, _ *tls.Config, token string, request []byte) (string, []byte, []byte, error) {
	return c.w.store.Enroll(ctx, token, request, c.w.uid)
}

func (c calls) Renew(ctx context.Context, config *tls.Config, request []byte) (string, []byte, []byte, error) {
	return c.w.store.Renew(ctx, c.w.shown(config), request, c.w.uid)
}

// shown are the certificates of a TLS.
func (w *world) shown(config *tls.Config) []*x509.Certificate {
	w.t.Helper()
	own, err := config.GetClientCertificate(nil)
	require.NoError(w.t, err)
	var out []*x509.Certificate
	for _, raw := range own.Certificate {
		cert, err := x509.ParseCertificate(raw)
		require.NoError(w.t, err)
		out = append(out, cert)
	}
	return out
}

func (w *world) invite(uid string) identity.Token {
	w.t.Helper()
	token, err := w.store.Invite(w.t.Context(), "west", uid, time.Hour)
	require.NoError(w.t, err)
	return token
}

// give stores a token where the agent finds it.
func (w *world) give(text string) {
	w.t.Helper()
	secrets := w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace)
	_ = secrets.Delete(w.t.Context(), TokenSecret, metav1.DeleteOptions{})
	_, err := secrets.Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: TokenSecret}, Data: map[string][]byte{TokenKey: []byte(text)}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) admit() error {
	w.t.Helper()
	cluster, err := NewAgents(w.store).Admit(w.t.Context(), w.shown(w.keeper.TLS()), w.uid)
	if err == nil {
		assert.Equal(w.t, "west", cluster)
	}
	return err
}

// TestTheLifeOfAnAgent: a token, a certificate, its renewal also after its end, and its revocation.
func TestTheLifeOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	require.ErrorContains(t, w.keeper.Start(ctx), "neither a certificate")
	token := w.invite("uid-1")
	w.give(token.Text())
	require.NoError(t, w.keeper.Start(ctx))
	require.NoError(t, w.admit())
	left, err := w.keeper.secret(ctx, TokenSecret)
	require.NoError(t, err)
	assert.Nil(t, left, "the token is used")

	first := w.shown(w.keeper.TLS())[0]
	require.NoError(t, w.keeper.Start(ctx), "it starts again with what is stored")
	assert.Equal(t, first, w.shown(w.keeper.TLS())[0])
	w.at(24 * time.Hour)
	require.NoError(t, w.keeper.Renew(ctx))
	second := w.shown(w.keeper.TLS())[0]
	assert.NotEqual(t, first.PublicKey, second.PublicKey)
	require.NoError(t, w.admit())

	w.at(20 * 24 * time.Hour)
	require.ErrorContains(t, w.admit(), "expired")
	require.NoError(t, w.keeper.Renew(ctx), "the hub was away for two weeks")
	require.NoError(t, w.admit())
	w.at(60 * 24 * time.Hour)
	require.ErrorContains(t, w.keeper.Renew(ctx), "expired")

	w.at(20*24*time.Hour + time.Minute)
	require.NoError(t, w.admit())
	require.NoError(t, w.store.Revoke(ctx, "west"))
	require.ErrorContains(t, w.admit(), "was revoked")
	require.ErrorContains(t, w.keeper.Renew(ctx), "was revoked")
	w.at(20*24*time.Hour + 2*time.Minute)
	w.keeper.set(identity.Own{})
	require.NoError(t, w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace).Delete(ctx, ClientSecret, metav1.DeleteOptions{}))
	w.give(w.invite("").Text())
	require.NoError(t, w.keeper.Start(ctx), "a way back")
	require.NoError(t, w.admit())

	// The cluster is deregistered, and its name is another one's before the certificate ends.
	require.NoError(t, w.store.Client.CoreV1().Secrets(w.store.Namespace).Delete(ctx, recordPrefix+"west", metav1.DeleteOptions{}))
	require.ErrorContains(t, w.admit(), "no certificate that counts")
	require.ErrorContains(t, w.keeper.Renew(ctx), "no certificate that counts")
	w.invite("uid-2")
	require.ErrorContains(t, w.admit(), "no certificate that counts")
	require.ErrorContains(t, w.keeper.Renew(ctx), "no certificate that counts")
}

// TestAnExpiredKeyThatWasReplacedIsOfNoUse: who has stolen an old certificate does not renew it.
func TestAnExpiredKeyThatWasReplacedIsOfNoUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give(w.invite("").Text())
	require.NoError(t, w.keeper.Start(t.Context()))
	old, err := w.keeper.Own()
	require.NoError(t, err)
	w.at(24 * time.Hour)
	require.NoError(t, w.keeper.Renew(t.Context()))
	w.at(9 * 24 * time.Hour)
	w.keeper.set(old)
	require.ErrorContains(t, w.keeper.Renew(t.Context()), "is not the last one that was issued")
}

func TestTokensAreUsedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w *world, token identity.Token) (text string)
		want   string
	}{
		"used by somebody else": {func(w *world, token identity.Token) string {
			w.give(token.Text())
			require.NoError(w.t, w.keeper.Start(w.t.Context()))
			require.NoError(w.t, w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace).Delete(w.t.Context(), ClientSecret, metav1.DeleteOptions{}))
			return token.Text()
		}, "was used before"},
		"replaced": {func(w *world, token identity.Token) string { w.invite(""); return token.Text() }, "is not the one that was made last"},
		"ended":    {func(w *world, token identity.Token) string { w.at(2 * time.Hour); return token.Text() }, "the token ended at 2026-11-01T13:00:00Z"},
		"of another cluster": {func(w *world, token identity.Token) string {
			w.uid = "uid-2"
			return token.Text()
		}, "is for the cluster with UID uid-1"},
		"of another name": {func(w *world, _ identity.Token) string {
			east, err := w.store.Invite(w.t.Context(), "east", "", time.Hour)
			require.NoError(w.t, err)
			return east.Text()
		}, "the token is for cluster east"},
		"revoked": {func(w *world, token identity.Token) string {
			require.NoError(w.t, w.store.Revoke(w.t.Context(), "west"))
			return token.Text()
		}, "is not the one that was made last"},
		"garbage": {func(*world, identity.Token) string { return "mr1.x" }, "none of meshctl's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.give(c.before(w, w.invite("uid-1")))
			require.ErrorContains(t, w.keeper.Start(t.Context()), c.want)
		})
	}
}

// TestALostAnswerIsAskedForAgain: with the same key, for ten minutes.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.invite("")
	_, request, err := w.keeper.request()
	require.NoError(t, err)
	for _, after := range []time.Duration{0, 9 * time.Minute} {
		w.at(after)
		cluster, _, _, err := w.store.Enroll(t.Context(), token.Text(), request, "uid-1")
		require.NoError(t, err)
		assert.Equal(t, "west", cluster)
	}
	w.at(11 * time.Minute)
	_, _, _, err = w.store.Enroll(t.Context(), token.Text(), request, "uid-1")
	require.ErrorContains(t, err, "was used before")
}

// TestATokenUsedTwiceAtOnceIsUsedOnce: of many agents with one token, one gets a certificate.
func TestATokenUsedTwiceAtOnceIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.invite("")
	got := make(chan error)
	for range 8 {
		_, request, err := w.keeper.request()
		require.NoError(t, err)
		go func() {
			_, _, _, err := w.store.Enroll(t.Context(), token.Text(), request, "uid-1")
			got <- err
		}()
	}
	issued := 0
	for range 8 {
		if <-got == nil {
			issued++
		}
	}
	assert.Equal(t, 1, issued)
}

// TestARequestForAnotherNameIsRefused: the name of the certificate is that of the token.
func TestARequestForAnotherNameIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.invite("")
	key, err := identity.NewKey(rand.Reader)
	require.NoError(t, err)
	request, err := identity.Request(rand.Reader, key, "plane-1", "east")
	require.NoError(t, err)
	_, _, _, err = w.store.Enroll(t.Context(), token.Text(), request, "uid-1")
	require.ErrorContains(t, err, "cluster/east")
	w.give(token.Text())
	require.NoError(t, w.keeper.Start(t.Context()), "the token was not used up")
}

// TestTheHubsCertificate: made once, renewed before its end, and left alone if it is a user's.
func TestTheHubsCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.store.Hub(t.Context(), "a.example")
	require.NoError(t, err)
	again, err := w.store.Hub(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, first.Chain[0].Raw, again.Chain[0].Raw)
	more, err := w.store.Hub(t.Context(), "a.example", "b.example")
	require.NoError(t, err)
	assert.Equal(t, []string{"a.example", "b.example"}, more.Chain[0].DNSNames)
	w.at(25 * 24 * time.Hour)
	renewed, err := w.store.Hub(t.Context(), "a.example", "b.example")
	require.NoError(t, err)
	assert.NotEqual(t, more.Chain[0].Raw, renewed.Chain[0].Raw)
	assert.Equal(t, more.Roots, renewed.Roots)

	// A user's own PKI: no key to sign with, and a certificate by DNS names.
	w = newWorld(t)
	root, err := identity.NewRoot(rand.Reader, *w.now.Load(), "x")
	require.NoError(t, err)
	_, err = w.store.create(t.Context(), RootSecret, map[string][]byte{pki.TLSRootKey: root.Chain().PEM(), pki.TLSCertKey: {}, pki.TLSKeyKey: {}})
	require.NoError(t, err)
	_, err = w.store.Hub(t.Context(), "a.example")
	require.ErrorContains(t, err, "give the hub a certificate of your PKI")
	_, err = w.store.Invite(t.Context(), "west", "", time.Hour)
	require.ErrorContains(t, err, "give its agent a certificate of your PKI")
}

// TestATokenComesFirst: an agent whose certificate was revoked takes the token that was put there since, also while it runs; one that the
// hub does not take leaves a good certificate in use.
func TestATokenComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.give(w.invite("").Text())
	require.NoError(t, w.keeper.Start(ctx))
	first := w.shown(w.keeper.TLS())[0]

	w.give(w.invite("uid-of-another").Text())
	require.NoError(t, w.keeper.Start(ctx))
	assert.Equal(t, first, w.shown(w.keeper.TLS())[0], "the token is for another cluster")
	require.NoError(t, w.admit())
	_, err := w.keeper.useToken(ctx)
	require.ErrorContains(t, err, "the token is for the cluster with UID uid-of-another")

	w.at(time.Second)
	require.NoError(t, w.store.Revoke(ctx, "west"))
	require.ErrorContains(t, w.admit(), "was revoked")
	w.at(2 * time.Second)
	w.give(w.invite(w.uid).Text())
	found, err := w.keeper.useToken(ctx)
	require.NoError(t, err)
	assert.True(t, found)
	require.NoError(t, w.admit())
	again, err := w.keeper.secret(ctx, TokenSecret)
	require.NoError(t, err)
	assert.Nil(t, again)
}

// TestALostAnswer: the certificate for a token is asked for again with the same key, which the hub gives again.
func TestALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.give(w.invite("").Text())
	w.keeper.Hub = lost{calls{w}}
	_, err := w.keeper.useToken(ctx)
	require.ErrorContains(t, err, "lost")
	w.keeper.Hub = calls{w}
	found, err := w.keeper.useToken(ctx)
	require.NoError(t, err)
	assert.True(t, found)
	require.NoError(t, w.admit())
}

// lost has the hub answer, and the answer not arrive.
type lost struct{ calls }

func (l lost) Enroll(ctx context.Context, config *tls.Config, token string, request []byte) (string, []byte, []byte, error) {
	if _, _, _, err := l.calls.Enroll(ctx, config, token, request); err != nil {
		return "", nil, nil, err
	}
	return "", nil, nil, errors.New("the answer was lost")
}

// TestGuessedTokensCostNothing: whoever reaches the hub may try tokens.
func TestGuessedTokensCostNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.invite("")
	agents := NewAgents(w.store)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); agents.Run(ctx, func(string) {}) }()
	t.Cleanup(func() { cancel(); <-ended })
	waittest.Until(t, "the record is known", func() bool { _, known := agents.known("west"); return known && agents.records.HasSynced() })

	_, authority, err := w.store.Root(t.Context())
	require.NoError(t, err)
	client := w.store.Client
	w.store.Client = nil // whoever asks it panics
	guessed, err := identity.NewToken(rand.Reader, "plane-1", "west", authority.Chain().Root())
	require.NoError(t, err)
	_, _, _, err = agents.Enroll(t.Context(), guessed.Text(), nil, "uid-1", "")
	require.ErrorContains(t, err, "is not the one that was made last")
	guessed.Cluster = "nobody"
	_, _, _, err = agents.Enroll(t.Context(), guessed.Text(), nil, "uid-1", "")
	require.ErrorContains(t, err, "is not the one that was made last")
	w.store.Client = client

	_, request, err := w.keeper.request()
	require.NoError(t, err)
	cluster, _, _, err := agents.Enroll(t.Context(), token.Text(), request, "uid-1", "")
	require.NoError(t, err)
	assert.Equal(t, "west", cluster)
}

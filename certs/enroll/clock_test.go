package enroll

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
)

const day = 24 * time.Hour

// handshake makes a connection of the agent to the hub, and returns what the agent has shown.
func (w *world) handshake(config *tls.Config) ([]*x509.Certificate, error) {
	w.t.Helper()
	own, err := w.store.Hub(w.t.Context(), "hub.example")
	require.NoError(w.t, err)
	hubSide, agentSide := net.Pipe()
	defer func() { _, _ = hubSide.Close(), agentSide.Close() }()
	hub := tls.Server(hubSide, identity.HubTLS(func() (identity.Own, error) { return own, nil }))
	said := make(chan error, 1)
	go func() {
		err := hub.HandshakeContext(w.t.Context())
		_ = hubSide.Close() // what the agent waits for does not come
		said <- err
	}()
	agentErr := tls.Client(agentSide, config).HandshakeContext(w.t.Context())
	_ = agentSide.Close()
	if hubErr := <-said; agentErr != nil || hubErr != nil {
		return nil, errors.Join(agentErr, hubErr)
	}
	return hub.ConnectionState().PeerCertificates, nil
}

// connect makes a connection of the agent to the hub, and has the hub admit the agent by what it has shown.
func (w *world) connect() error {
	w.t.Helper()
	shown, err := w.handshake(w.keeper.TLS())
	if err != nil {
		return err
	}
	_, err = NewAgents(w.store).Admit(w.t.Context(), shown, w.uid)
	return err
}

// wired are calls over a connection: what the agent checks of the hub, it checks.
type wired struct{ calls }

func (c wired) Enroll(ctx context.Context, config *tls.Config, token string, request []byte) (string, []byte, []byte, error) {
	if _, err := c.w.handshake(config); err != nil {
		return "", nil, nil, err
	}
	return c.calls.Enroll(ctx, config, token, request)
}

func (c wired) Renew(ctx context.Context, config *tls.Config, request []byte) (string, []byte, []byte, error) {
	if _, err := c.w.handshake(config); err != nil {
		return "", nil, nil, err
	}
	return c.calls.Renew(ctx, config, request)
}

// forget has the agent lose its certificate.
func (w *world) forget() {
	w.t.Helper()
	w.keeper.set(identity.Own{})
	require.NoError(w.t, w.keeper.Client.CoreV1().Secrets(w.keeper.Namespace).Delete(w.t.Context(), ClientSecret, metav1.DeleteOptions{}))
}

// TestACertificateThatExpired: it may be renewed for 30 days, also by an agent that starts again. After that, there is a way back.
func TestACertificateThatExpired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		// late: it is too late.
		late bool
	}{
		"2 days":                  {after: 2 * day},
		"a minute before 30 days": {after: 30*day - time.Minute},
		"31 days":                 {after: 31 * day, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.give(w.invite("").Text())
			require.NoError(t, w.keeper.Start(t.Context()))
			require.NoError(t, w.connect())
			w.at(identity.AgentLife + c.after)
			require.ErrorContains(t, w.connect(), "expired", "it counts for nothing else")
			if !c.late {
				require.NoError(t, w.keeper.Start(t.Context()), "the agent starts again")
				require.NoError(t, w.keeper.Renew(t.Context()))
				require.NoError(t, w.connect())
				return
			}
			require.ErrorContains(t, w.keeper.Renew(t.Context()), "expired")
			require.ErrorContains(t, w.keeper.Start(t.Context()), "ended at 2026-11-08T12:00:00Z, which is too long ago to renew it")
			w.give(w.invite("").Text())
			require.NoError(t, w.keeper.Start(t.Context()), "a token is the way back")
			require.NoError(t, w.connect())
		})
	}
}

// TestClocksThatDiffer: the clock of the agent is an hour behind that of the hub, or ahead of it.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"the agent is behind": -time.Hour, "the agent is ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.keeper.Now = func() time.Time { return w.now.Load().Add(off) }
			w.give(w.invite("").Text())
			require.NoError(t, w.keeper.Start(t.Context()))
			require.NoError(t, w.connect())
			for _, at := range []time.Duration{day, 8*day - time.Minute, 10 * day} {
				w.at(at)
				require.NoError(t, w.keeper.Start(t.Context()))
				require.NoError(t, w.keeper.Renew(t.Context()), at)
				require.NoError(t, w.connect(), at)
			}
		})
	}
}

// TestWhoRevokesHasAnotherClock: the machine of the administrator is an hour behind that of the hub, or ahead of it. No certificate from
// before counts any more, also after the next token was used, and that from after does.
func TestWhoRevokesHasAnotherClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "the same": 0, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.give(w.invite("").Text())
			require.NoError(t, w.keeper.Start(t.Context()))
			stolen, err := w.keeper.Own()
			require.NoError(t, err)
			w.at(time.Minute)
			require.NoError(t, w.keeper.Renew(t.Context()))
			renewed, err := w.keeper.Own()
			require.NoError(t, err)

			administrator := *w.store
			administrator.Now = func() time.Time { return w.now.Load().Add(off) }
			w.at(2 * time.Minute)
			require.NoError(t, administrator.Revoke(t.Context(), "west"))
			require.ErrorContains(t, w.connect(), "was revoked")
			w.forget()
			w.give(w.invite("").Text())
			require.NoError(t, w.keeper.Start(t.Context()))
			require.NoError(t, w.connect(), "the one that was issued since counts at once")
			for which, own := range map[string]identity.Own{"first": stolen, "renewed": renewed} {
				w.keeper.set(own)
				require.ErrorContains(t, w.connect(), "was revoked", which)
				require.ErrorContains(t, w.keeper.Renew(t.Context()), "was revoked", which)
			}
		})
	}
}

// TestATokenThatEndedSaysByWhichClock: who made it may have another one than the hub.
func TestATokenThatEndedSaysByWhichClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	administrator := *w.store
	administrator.Now = func() time.Time { return w.now.Load().Add(-2 * time.Hour) }
	token, err := administrator.Invite(t.Context(), "west", "", time.Hour)
	require.NoError(t, err)
	w.give(token.Text())
	require.ErrorContains(t, w.keeper.Start(t.Context()), "the token ended at 2026-11-01T11:00:00Z, and the clock of the hub says 2026-11-01T12:00:00Z")
}

// exchangeRoot changes the Secret of the root: what signs, and all that are served.
func (w *world) exchangeRoot(signer *pki.Authority, served ...*pki.Authority) {
	w.t.Helper()
	data, err := signer.RootSecret()
	require.NoError(w.t, err)
	var all []byte
	for _, root := range served {
		all = append(all, root.Chain().PEM()...)
	}
	secrets := w.store.Client.CoreV1().Secrets(w.store.Namespace)
	secret, err := secrets.Get(w.t.Context(), RootSecret, metav1.GetOptions{})
	require.NoError(w.t, err)
	secret.Data = map[string][]byte{pki.TLSCertKey: data[pki.RootCertKey], pki.TLSKeyKey: data[pki.RootKeyKey], pki.TLSRootKey: all}
	_, err = secrets.Update(w.t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// TestTheRootIsExchanged: with both roots served meanwhile, an agent that renews its certificate once notices nothing, whichever root signs
// first; and tokens are of use all the time.
func TestTheRootIsExchanged(t *testing.T) {
	t.Parallel()
	for name, signsFirst := range map[string]bool{"the new one is served first": false, "the new one signs at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.keeper.Hub = wired{calls{w}}
			ctx := t.Context()
			w.give(w.invite("").Text())
			require.NoError(t, w.keeper.Start(ctx))
			require.NoError(t, w.connect())
			_, before, err := w.store.Root(ctx)
			require.NoError(t, err)
			after, err := identity.NewRoot(rand.Reader, *w.now.Load(), "plane-1")
			require.NoError(t, err)
			works := func(what string) {
				t.Helper()
				require.NoError(t, w.connect(), what)
				kept, err := w.keeper.Own()
				require.NoError(t, err)
				w.forget()
				w.give(w.invite("").Text())
				require.NoError(t, w.keeper.Start(ctx), "a token, "+what)
				require.NoError(t, w.connect(), "with a token, "+what)
				w.keeper.set(kept)
			}

			signer := before
			if signsFirst {
				signer = after
			}
			w.exchangeRoot(signer, before, after)
			works("both are served")
			w.at(day)
			require.NoError(t, w.keeper.Renew(ctx))
			works("the agent knows both")
			w.exchangeRoot(after, before, after)
			works("the new one signs")
			late, err := w.keeper.Own() // the other agent renews no more
			require.NoError(t, err)
			w.at(2 * day)
			require.NoError(t, w.keeper.Renew(ctx))
			works("the agent has a certificate of the new one")

			w.exchangeRoot(after, after)
			works("the old one is gone")
			own, err := w.store.Hub(ctx, "hub.example")
			require.NoError(t, err)
			assert.Equal(t, after.Chain().Root().Raw, own.Chain.Root().Raw)
			if !signsFirst {
				w.keeper.set(late)
				require.ErrorContains(t, w.connect(), "not trusted", "its certificate is of the old one")
			}
		})
	}
}

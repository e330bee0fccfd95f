package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

const space = "gloo-mesh"

// hubWorld is a hub with certificates in a management cluster, and other clusters for agents.
type hubWorld struct {
	t        *testing.T
	clusters []*rest.Config
	// management is the hub's.
	management *rest.Config
	store      *enroll.Store
	source     *watch.Source
	address    string
}

// newHubWorld starts a hub that takes the agent of west.
func newHubWorld(t *testing.T, clusters int) *hubWorld {
	t.Helper()
	w := &hubWorld{t: t}
	for _, server := range registrationtest.APIServers(t, clusters+1) {
		config, err := server.Config()
		require.NoError(t, err)
		sandboxtest.MakeNamespace(t, config, space)
		w.clusters = append(w.clusters, config)
	}
	management := w.clusters[0]
	w.management = management
	w.clusters = w.clusters[1:]
	log := slog.New(slog.DiscardHandler)
	client, err := kube.NewClientset(kube.Unlimited(management))
	require.NoError(t, err)
	w.store = &enroll.Store{Client: client, Namespace: space, Plane: "plane-1", Now: time.Now}
	h := hub.New(hub.Options{Agents: enroll.NewAgents(w.store), Plane: "plane-1", Term: hub.Term{Since: time.Now()}, Version: "test", Grace: time.Second, Log: log})
	w.run(h.Run)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(identity.HubTLS(func() (identity.Own, error) { return w.store.Hub(t.Context(), "hub.example") }))))
	relayv1.RegisterRelayServer(server, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	w.address = listener.Addr().String()
	w.source, err = watch.New(watch.Options{Management: management, Namespace: space, PlaneID: "plane-1", Log: log, Grace: time.Millisecond})
	require.NoError(t, err)
	w.run(func(ctx context.Context) { assert.NoError(t, w.source.Run(ctx)) })
	_, err = h.Add(w.source, "west", "")
	require.NoError(t, err)
	return w
}

// run runs something until the test ends.
func (w *hubWorld) run(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); f(ctx) }()
	stop = func() { cancel(); <-ended }
	w.t.Cleanup(stop)
	return stop
}

// agent starts what speaks for a cluster, and returns its log.
func (w *hubWorld) agent(cluster *rest.Config, change ...func(*Options)) *sandboxtest.Buffer {
	w.t.Helper()
	log := &sandboxtest.Buffer{}
	opts := &Options{Namespace: space, PlaneNamespace: space, Version: "test", RelayServer: w.address, RelayName: "hub.example"}
	for _, f := range change {
		f(opts)
	}
	w.run(func(ctx context.Context) {
		_, err := relayRun(ctx, cluster, opts, slog.New(slog.NewTextHandler(log, nil)), &relayed{})
		assert.NoError(w.t, err)
	})
	return log
}

func (w *hubWorld) give(cluster *rest.Config, secret *corev1.Secret) {
	w.t.Helper()
	_, err := sandboxtest.Clientset(w.t, cluster).CoreV1().Secrets(space).Create(w.t.Context(), secret, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// invite gives the agent of a cluster a token for west.
func (w *hubWorld) invite(cluster *rest.Config) {
	w.t.Helper()
	token, err := w.store.Invite(w.t.Context(), "west", "", time.Hour)
	require.NoError(w.t, err)
	w.give(cluster, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: enroll.TokenSecret}, Data: map[string][]byte{enroll.TokenKey: []byte(token.Text())}})
}

// sync is what the hub says of west.
func (w *hubWorld) sync() (state snapshot.Sync, reason string) {
	if input := w.source.Input(); input != nil && len(input.Clusters) == 1 {
		return input.Clusters[0].Sync, input.Clusters[0].Reason
	}
	return snapshot.Unsynced, "there is no Input"
}

func (w *hubWorld) until(what string, state snapshot.Sync, reason string) {
	w.t.Helper()
	waittest.NoError(w.t, what, func() error {
		if now, why := w.sync(); now != state || !strings.Contains(why, reason) {
			return fmt.Errorf("it is %v: %s", now, why)
		}
		return nil
	})
}

// TestAnAgentJoinsAndIsRevoked: with a token, by mutual TLS, and not any more.
func TestAnAgentJoinsAndIsRevoked(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, 1)
	log := w.agent(w.clusters[0])
	waittest.Until(t, "it says what it lacks", func() bool { return strings.Contains(log.String(), "meshctl cluster invite") })
	w.invite(w.clusters[0])
	w.until("west is read", snapshot.Synced, "")
	_, err := sandboxtest.Clientset(t, w.clusters[0]).CoreV1().Secrets(space).Get(t.Context(), enroll.ClientSecret, metav1.GetOptions{})
	require.NoError(t, err)

	require.NoError(t, w.store.Revoke(t.Context(), "west"))
	revoked := time.Now()
	waittest.Until(t, "its streams end", func() bool { return strings.Contains(log.String(), "the certificate of the agent was revoked") })
	t.Logf("after %s", time.Since(revoked).Round(time.Millisecond))
	w.until("west is frozen", snapshot.Stale, "was revoked")
	assert.NotContains(t, log.String(), "mr1.", "no token in the log")
}

// TestACopiedClusterIsRefused: it has the certificate of another one's agent.
func TestACopiedClusterIsRefused(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, 2)
	w.invite(w.clusters[0])
	w.agent(w.clusters[0])
	w.until("west is read", snapshot.Synced, "")
	stolen, err := sandboxtest.Clientset(t, w.clusters[0]).CoreV1().Secrets(space).Get(t.Context(), enroll.ClientSecret, metav1.GetOptions{})
	require.NoError(t, err)
	w.give(w.clusters[1], &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: enroll.ClientSecret}, Type: stolen.Type, Data: stolen.Data})
	log := w.agent(w.clusters[1])
	waittest.Until(t, "it is refused", func() bool { return strings.Contains(log.String(), "was enrolled in that with") })
	state, reason := w.sync()
	assert.Equal(t, snapshot.Synced, state, reason)
}

// TestWithoutACertificateNothingIsHeard: whoever reaches the port may ask for a certificate with a token, and for nothing else.
func TestWithoutACertificateNothingIsHeard(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, 0)
	conn, err := grpc.NewClient(w.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	client := relayv1.NewRelayClient(conn)
	hello := &relayv1.Hello{OldestProtocol: 1, NewestProtocol: 1, ClusterUid: "west"}
	report, err := client.Report(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: hello}}))
	_, err = report.Recv()
	require.ErrorContains(t, err, "has shown no certificate")
	desire, err := client.Desire(t.Context())
	require.NoError(t, err)
	require.NoError(t, desire.Send(&relayv1.Feedback{Frame: &relayv1.Feedback_Hello{Hello: hello}}))
	_, err = desire.Recv()
	require.ErrorContains(t, err, "has shown no certificate")
	exchange, err := client.Exchange(t.Context())
	require.NoError(t, err)
	require.NoError(t, exchange.Send(&relayv1.Answer{Hello: hello}))
	_, err = exchange.Recv()
	require.ErrorContains(t, err, "has shown no certificate")
	_, err = client.Renew(t.Context(), &relayv1.RenewRequest{})
	require.ErrorContains(t, err, "has shown no certificate")
	_, err = client.Enroll(t.Context(), &relayv1.EnrollRequest{Token: "guessed"})
	require.ErrorContains(t, err, "none of meshctl's")
	assert.NotContains(t, err.Error(), "guessed")
}

// TestACertificateOfTheUsersPKI: an agent that has one from elsewhere joins with it, and needs no token.
func TestACertificateOfTheUsersPKI(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, 1)
	key, err := identity.NewKey(rand.Reader)
	require.NoError(t, err)
	root, err := pki.NewRoot(rand.Reader, time.Now(), key, pki.Subject{Organization: "Example"}, pki.Life{Lasts: time.Hour, Backdate: time.Hour})
	require.NoError(t, err)
	key, err = identity.NewKey(rand.Reader)
	require.NoError(t, err)
	request, err := pki.NewRequest(rand.Reader, key, "Example", []string{"west"})
	require.NoError(t, err)
	read, err := pki.ReadRequest(request)
	require.NoError(t, err)
	issued, err := root.SignLeaf(rand.Reader, time.Now(), read, pki.Grant{Subject: pki.Subject{Organization: "Example"}, Hosts: []string{"west"}, Life: pki.Life{Lasts: time.Hour, Backdate: time.Minute}})
	require.NoError(t, err)
	private, err := key.PEM()
	require.NoError(t, err)

	_, err = w.store.Client.CoreV1().Secrets(space).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: enroll.ClientRootSecret}, Data: map[string][]byte{"ca.crt": root.Chain().PEM()},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	sandboxtest.Apply(t, w.management, []byte("apiVersion: multicluster.solo.io/v1alpha1\nkind: KubernetesCluster\nmetadata: {name: west, namespace: "+space+"}\nspec: {}\n"))
	roots, _, err := w.store.Root(t.Context())
	require.NoError(t, err)
	w.give(w.clusters[0], &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: enroll.RootSecret}, Data: map[string][]byte{"ca.crt": roots.PEM()}})
	w.agent(w.clusters[0], func(o *Options) { o.RelayCluster, o.RelayPlane = "west", "plane-1" })
	w.give(w.clusters[0], &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: enroll.ClientSecret}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": issued.Chain.PEM(), "tls.key": private, "ca.crt": root.Chain().PEM()},
	})
	w.until("west is read", snapshot.Synced, "")
	r, err := w.store.Record(t.Context(), "west")
	require.NoError(t, err)
	assert.NotEmpty(t, r.UID)
}

// TestASharedTokenIsApproved: an agent with the token that all share speaks for no cluster before it is approved, and needs no restart then.
func TestASharedTokenIsApproved(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, 1)
	const shared = "Xk2pQ9vTz7LmN4aB"
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: enroll.TokenSecret}, Data: map[string][]byte{enroll.TokenKey: []byte(shared)}}
	_, err := w.store.Client.CoreV1().Secrets(space).Create(t.Context(), token, metav1.CreateOptions{})
	require.NoError(t, err)
	roots, _, err := w.store.Root(t.Context())
	require.NoError(t, err)
	w.give(w.clusters[0], token)
	w.give(w.clusters[0], &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: enroll.RootSecret}, Data: map[string][]byte{"ca.crt": roots.PEM()}})
	log := w.agent(w.clusters[0], func(o *Options) { o.RelayCluster = "west" })
	var waits snapshot.RelayWaitings
	waittest.Until(t, "the agent waits", func() bool {
		secret, err := w.store.Client.CoreV1().Secrets(space).Get(t.Context(), snapshot.RelayWaitingSecret, metav1.GetOptions{})
		if err == nil {
			waits, err = snapshot.ParseRelayWaitings(secret.Data[snapshot.RelayWaitingKey], time.Now())
		}
		return err == nil && len(waits.Agents) == 1 && strings.Contains(log.String(), waits.Agents[0].Key)
	})
	state, reason := w.sync()
	assert.Equal(t, snapshot.Unsynced, state, "nothing was read: %s", reason)
	assert.Equal(t, "127.0.0.1", waits.Agents[0].Address)
	waittest.Until(t, "the hub says so of the cluster", func() bool {
		input := w.source.Input()
		return input != nil && len(input.Clusters) == 1 && input.Clusters[0].Relay != nil &&
			input.Clusters[0].Relay.Reason.Code == snapshot.RelayNotApproved && strings.Contains(input.Clusters[0].Relay.Reason.Hint, "meshctl cluster approve west")
	})

	require.NoError(t, w.store.Approve(t.Context(), waits.Agents[0]))
	w.until("west is read", snapshot.Synced, "")
	assert.NotContains(t, log.String(), shared)
}

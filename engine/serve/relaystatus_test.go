package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// agentOfWest is who everybody is taken for.
type agentOfWest struct{ hub.Agents }

// Run implements hub.Agents: nobody is revoked.
func (agentOfWest) Run(ctx context.Context, _ func(string)) { <-ctx.Done() }

func (agentOfWest) Admit(context.Context, []*x509.Certificate, string) (string, error) {
	return "west", nil
}

// freeAddress is one at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

// twoServers are API servers of a management cluster and of west.
func twoServers(t *testing.T) (management, west *rest.Config) {
	t.Helper()
	servers := registrationtest.APIServers(t, 2)
	for i, config := range []**rest.Config{&management, &west} {
		var err error
		*config, err = servers[i].Config()
		require.NoError(t, err)
		sandboxtest.MakeNamespace(t, *config, snapshot.DefaultNamespace)
	}
	return management, west
}

// TestRelayIsTold: what serve knows of the connection of an agent is in the status of its KubernetesCluster, is not written for each change
// in the cluster, and is what lists, metrics and comparisons tell.
func TestRelayIsTold(t *testing.T) {
	t.Parallel()
	management, west := twoServers(t)
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	address := freeAddress(t)
	r := start(t, management, "hub", func(o *Options) {
		o.Relay = &Relay{Bind: address, Identify: func(context.Context, *rest.Config, string, string) (hub.Agents, *tls.Config, error) {
			return agentOfWest{}, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: server.TLS.Certificates}, nil
		}}
	})
	resources, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	clusters := resources.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(snapshot.DefaultNamespace)
	_, err = clusters.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": multiclusterv1alpha1.GroupVersion.String(), "kind": "KubernetesCluster", "metadata": map[string]any{"name": "west"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	stored := func() *multiclusterv1alpha1.KubernetesCluster {
		u, err := clusters.Get(t.Context(), "west", metav1.GetOptions{})
		require.NoError(t, err)
		kc := &multiclusterv1alpha1.KubernetesCluster{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, kc))
		if kc.Status.Connection == nil {
			kc.Status.Connection = &multiclusterv1alpha1.Connection{}
		}
		return kc
	}
	reaches := func(state multiclusterv1alpha1.ConnectionState) *multiclusterv1alpha1.KubernetesCluster {
		t.Helper()
		until(t, "the connection is "+string(state), func() bool { return stored().Status.Connection.State == state })
		return stored()
	}
	reaches(multiclusterv1alpha1.ConnectionStateAwaited)
	list := func() registration.ClusterStatus {
		t.Helper()
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit()})
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	assert.Equal(t, snapshot.HealthUnreachable, list().Health)
	assert.Equal(t, "its agent has not connected yet", list().Reasons[0].What)

	a, err := agent.New(agent.Options{
		Cluster: "west", UID: "uid", Plane: snapshot.Plane{Namespace: snapshot.DefaultNamespace}, Config: west, Hub: address, Version: "v9.0.0",
		Dial:   []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}))},
		Redial: 50 * time.Millisecond, RedialMost: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	connection := reaches(multiclusterv1alpha1.ConnectionStateConnected).Status.Connection
	assert.Equal(t, multiclusterv1alpha1.ViaRelay, connection.Via)
	assert.Equal(t, "v9.0.0", connection.AgentVersion)
	assert.Positive(t, connection.Objects)
	assert.Nil(t, connection.Reason)
	until(t, "the cluster is accepted", func() bool { return stored().Status.Status[0].State == multiclusterv1alpha1.ClusterStateAccepted })
	assert.Equal(t, snapshot.Healthy, list().Health)
	metric := func(line string) bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, line+"\n")
	}
	assert.True(t, metric(`relay_push_clients_connected{cluster="west"} 1`))
	assert.True(t, metric(`relay_push_clients_warmed{cluster="west"} 1`))

	t.Log("what changes in the cluster writes nothing")
	before := stored().ResourceVersion
	for _, name := range []string{"a", "b", "c"} {
		_, err := sandboxtest.Clientset(t, west).CoreV1().Services("default").Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	until(t, "the hub has them", func() bool { return metric(`meshctl_services{cluster="west"} 4`) })
	assert.Equal(t, before, stored().ResourceVersion)

	t.Log("all sides have the same")
	verified, err := registration.Verify(t.Context(), registration.VerifyOptions{Name: "west", MgmtConfig: management})
	require.NoError(t, err)
	assert.Empty(t, verified.Differences)
	assert.Greater(t, verified.Kinds, int64(10))
	assert.Positive(t, verified.Objects)

	t.Log("the agent is away")
	stop()
	<-ended
	connection = reaches(multiclusterv1alpha1.ConnectionStateLost).Status.Connection
	require.NotNil(t, connection.Reason)
	assert.Equal(t, string(snapshot.RelayAbsent), connection.Reason.Code)
	assert.Equal(t, verified.Request, connection.Verified.Request, "it stays")
	assert.Equal(t, snapshot.HealthUnreachable, list().Health)
	_, err = registration.Verify(t.Context(), registration.VerifyOptions{Name: "west", MgmtConfig: management})
	require.ErrorContains(t, err, "nothing was compared: the agent of west has no connection")
}

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// oneAgent is a hub.Agents, and a RelayStore, of one agent, which is that of west.
type oneAgent struct {
	hub.Agents
	registration.RelayStore

	mu   sync.Mutex
	owes bool
}

func (*oneAgent) Run(ctx context.Context, _ func(string)) { <-ctx.Done() }

func (*oneAgent) Admit(context.Context, []*x509.Certificate, string) (string, error) {
	return "west", nil
}

func (*oneAgent) Invite(context.Context, string, string, time.Duration) (string, []byte, error) {
	return "token", []byte("root"), nil
}

func (a *oneAgent) Enrolled(context.Context, string) (string, error) { return "", nil }

func (a *oneAgent) Owe(context.Context, string) (bool, error) { return true, a.set(true) }

func (a *oneAgent) Paid(context.Context, string) error { return a.set(false) }

func (a *oneAgent) Owes(string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owes
}

func (a *oneAgent) set(owes bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owes = owes
	return nil
}

// leavingWorld is a management cluster with a serve, and a cluster west that is registered to be reached through its agent.
type leavingWorld struct {
	*testing.T
	management, west *rest.Config
	agents           *oneAgent
	plane            snapshot.Plane
	address          string
	// owner has the UID of what takes with it what registration made.
	owner *rbacv1.ClusterRole
}

func newLeavingWorld(t *testing.T) *leavingWorld {
	t.Helper()
	w := &leavingWorld{T: t, agents: &oneAgent{}, address: freeAddress(t)}
	w.management, w.west = twoServers(t)
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	start(t, w.management, "hub", func(o *Options) {
		o.Relay = &Relay{Bind: w.address, Identify: func(context.Context, *rest.Config, string, string) (hub.Agents, *tls.Config, error) {
			return w.agents, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: server.TLS.Certificates}, nil
		}}
	})
	own := snapshot.IssuedCertificate.Info().Group
	_, err := registration.Register(t.Context(), registration.Options{
		Name: "west", MgmtConfig: w.management, RemoteConfig: w.west,
		Relay: &registration.Relay{Server: "relay.example:9900", Store: w.store},
		Agent: &registration.Agent{
			Image: "meshctl:1", OwnerAnnotation: "owner", FieldManager: "agent", RelayRules: append(agent.DiskRules(), rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{snapshot.RelayClientSecret}, Verbs: []string{"get", "update"},
			}),
			OwnRules: func(...string) []rbacv1.PolicyRule {
				return []rbacv1.PolicyRule{
					{APIGroups: []string{own}, Resources: []string{"certificaterequests", "issuedcertificates"}, Verbs: []string{"get", "list", "watch"}},
					{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{snapshot.AgentLease}, Verbs: []string{"get", "update"}},
				}
			},
			Limits: func(string, []string, string, ...string) admissionv1.ValidatingAdmissionPolicySpec {
				return admissionv1.ValidatingAdmissionPolicySpec{
					MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"pods"}},
					}}}},
					Validations: []admissionv1.Validation{{Expression: "true"}},
				}
			},
		},
	})
	require.NoError(t, err)
	client := sandboxtest.Clientset(t, w.management)
	identity, err := client.CoreV1().ConfigMaps(snapshot.DefaultNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, o := range identity.Items {
		if id := o.Data["id"]; id != "" {
			w.plane = snapshot.Plane{Namespace: snapshot.DefaultNamespace, ID: id}
		}
	}
	require.NotEmpty(t, w.plane.ID)
	w.owner, err = sandboxtest.Clientset(t, w.west).RbacV1().ClusterRoles().Get(t.Context(), snapshot.RelayLeaveName(w.plane.ID), metav1.GetOptions{})
	require.NoError(t, err)
	w.made()
	return w
}

func (w *leavingWorld) store(kube.Clientset, snapshot.Plane) registration.RelayStore { return w.agents }

// made makes what the agent and serve have made in west.
func (w *leavingWorld) made() {
	w.Helper()
	client := sandboxtest.Clientset(w.T, w.west)
	_, err := client.CoreV1().Secrets(snapshot.DefaultNamespace).Create(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayClientSecret}}, metav1.CreateOptions{})
	require.NoError(w.T, err)
	w.ours()
}

func (w *leavingWorld) ours() {
	w.Helper()
	sandboxtest.Apply(w.T, w.west, []byte("apiVersion: certificates.mesh.gloo.solo.io/v1\nkind: IssuedCertificate\nmetadata:\n  name: ours\n  namespace: "+snapshot.DefaultNamespace+
		"\n  labels: {"+snapshot.NetworkingOwnerLabel+": "+snapshot.DefaultNamespace+", "+snapshot.ClusterLabel+": west, "+snapshot.PlaneLabel+": "+w.plane.ID+"}\n"))
}

// hasOurs reports whether what serve wrote is there.
func (w *leavingWorld) hasOurs() bool {
	client, err := dynamic.NewForConfig(w.west)
	require.NoError(w.T, err)
	_, err = client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Namespace(snapshot.DefaultNamespace).Get(w.Context(), "ours", metav1.GetOptions{})
	return err == nil
}

// agent starts the agent of west, with the rights of its account and no others; ended is closed when it has ended.
func (w *leavingWorld) agent() (ended <-chan struct{}) {
	w.Helper()
	account := rest.CopyConfig(w.west)
	account.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + snapshot.DefaultNamespace + ":" + registration.AgentName(w.plane.ID), Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	client, err := kube.NewClientset(kube.Unlimited(account))
	require.NoError(w.T, err)
	a, err := agent.New(agent.Options{
		Cluster: "west", UID: "uid", Plane: w.plane, Config: account, Hub: w.address, Version: "v9.0.0", Log: slog.New(slog.DiscardHandler),
		Dial:   []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}))},
		Redial: 50 * time.Millisecond, RedialMost: time.Second,
		Disk: agent.ConfigMaps{Client: client, Namespace: snapshot.DefaultNamespace},
		Home: agent.Registered{Client: client, Namespace: snapshot.DefaultNamespace, Plane: w.plane.ID},
	})
	require.NoError(w.T, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	w.Cleanup(func() { stop(); <-done })
	return done
}

// left checks that the agent has ended, and that all that is left of it in west goes with what it has deleted.
func (w *leavingWorld) left(ended <-chan struct{}) {
	w.Helper()
	until(w.T, "the agent ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	client := sandboxtest.Clientset(w.T, w.west)
	_, err := client.RbacV1().ClusterRoles().Get(w.Context(), w.owner.Name, metav1.GetOptions{})
	assert.True(w.T, apierrors.IsNotFound(err), "%v", err)
	assert.False(w.T, w.hasOurs())
	secret, err := client.CoreV1().Secrets(snapshot.DefaultNamespace).Get(w.Context(), snapshot.RelayClientSecret, metav1.GetOptions{})
	require.NoError(w.T, err)
	require.Len(w.T, secret.OwnerReferences, 1)
	assert.Equal(w.T, w.owner.UID, secret.OwnerReferences[0].UID)
}

// TestAClusterLeavesThroughItsAgent: one command on the management cluster, and nothing is left of it; what is waited for is told meanwhile.
func TestAClusterLeavesThroughItsAgent(t *testing.T) {
	t.Parallel()
	w := newLeavingWorld(t)
	sandboxtest.Apply(t, w.west, []byte("apiVersion: certificates.mesh.gloo.solo.io/v1\nkind: CertificateRequest\nmetadata: {name: mesh, namespace: "+snapshot.DefaultNamespace+"}\n"))
	ended := w.agent()
	list := func() registration.ClusterStatus {
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: w.management, Timeout: waittest.Limit()})
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	until(t, "the agent is connected", func() bool { return list().Health == snapshot.Healthy })
	var report registration.Report
	var err error
	deregistered := make(chan struct{})
	go func() {
		defer close(deregistered)
		report, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "west", MgmtConfig: w.management, Store: w.store})
	}()
	until(t, "it is told what is waited for", func() bool {
		c := list()
		r := c.Reasons.Of(snapshot.ClusterLeaving)
		return c.Health == snapshot.HealthLeaving && r != nil && r.Cause == snapshot.LeavingMeshes
	})
	assert.Contains(t, list().Reason, "mesh")
	client, clientErr := dynamic.NewForConfig(w.west)
	require.NoError(t, clientErr)
	requests := client.Resource(snapshot.CertificateRequest.GroupVersionResource()).Namespace(snapshot.DefaultNamespace)
	require.NoError(t, requests.Delete(t.Context(), "mesh", metav1.DeleteOptions{}))
	<-deregistered
	require.NoError(t, err)
	assert.Empty(t, report.Leftovers)
	w.left(ended)
	all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: w.management})
	require.NoError(t, err)
	assert.Empty(t, all)
}

// TestAForcedClusterIsLeftLater: an agent that was away when its cluster was deregistered comes back, and removes what it left.
func TestAForcedClusterIsLeftLater(t *testing.T) {
	t.Parallel()
	w := newLeavingWorld(t)
	_, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "west", MgmtConfig: w.management, Store: w.store, Force: true})
	require.NoError(t, err)
	assert.True(t, w.hasOurs())
	w.left(w.agent())
	assert.False(t, w.agents.Owes("west"))
}

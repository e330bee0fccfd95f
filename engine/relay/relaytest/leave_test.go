package relaytest

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// home is what an agent removes at the end. It stays for some time.
type home struct {
	mu    sync.Mutex
	stays error
	left  int
}

func (h *home) Leave(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stays == nil {
		h.left++
	}
	return h.stays
}

func (h *home) set(stays error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stays = stays
}

func (h *home) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.left
}

// leavingAgent starts an agent with a home; ended is closed when it has ended.
func (w *world) leavingAgent(h *home) (a *agent.Agent, ended <-chan struct{}, stop func()) {
	w.t.Helper()
	a, err := agent.New(agent.Options{
		Cluster: "west", UID: "uid-west", Plane: w.plane, Config: w.west, Hub: w.proxy.address(), Version: "test", Log: w.log,
		Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, Redial: 10 * time.Millisecond, RedialMost: 200 * time.Millisecond,
		Grace: time.Second, Disk: w.disk, Home: h, Times: w.times,
	})
	require.NoError(w.t, err)
	done := make(chan struct{})
	return a, done, w.run(func(ctx context.Context) { defer close(done); a.Run(ctx) })
}

// ours are the certificates in west.
func (w *world) ours() []string {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.west)
	require.NoError(w.t, err)
	list, err := client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	return out
}

// put makes an object in west, of the management plane or, without labels, of somebody else.
func (w *world) put(kind snapshot.Kind, name string, labels map[string]string) {
	w.t.Helper()
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  namespace: %s\n", kind.Info().GroupVersion(), kind, name, w.plane.Namespace)
	if len(labels) > 0 {
		text += "  labels:\n"
		for key, value := range labels {
			text += fmt.Sprintf("    %s: %q\n", key, value)
		}
	}
	sandboxtest.Apply(w.t, w.west, []byte(text))
}

// labels are those of the objects of the management plane in west.
func (w *world) labels() map[string]string {
	return map[string]string{snapshot.NetworkingOwnerLabel: w.plane.Namespace, snapshot.PlaneLabel: w.plane.ID, snapshot.ClusterLabel: "west"}
}

// TestAnAgentIsToldToLeave: only when it is told, it removes what is still there of ours, waits for meshes that have certificates of their
// VirtualMesh, removes itself at the very end, says so, and ends. Connections that are cut meanwhile change nothing.
func TestAnAgentIsToldToLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serving := w.server()
	h := &home{}
	a, ended, _ := w.leavingAgent(h)
	serving.want("a", "one")
	serving.written()
	w.put(snapshot.IssuedCertificate, "theirs", nil)
	w.put(snapshot.CertificateRequest, "mesh", nil)
	w.same()
	serving.stop()
	w.put(snapshot.IssuedCertificate, "late", w.labels())

	assert.Equal(t, hub.Parting{}, w.hub.Part("west"))
	waittest.Until(t, "ours is gone", func() bool { return assert.ObjectsAreEqual([]string{"theirs"}, w.ours()) })
	w.proxy.cut()
	waittest.Until(t, "what is stored is gone", func() bool {
		list, err := sandboxtest.Clientset(t, w.west).CoreV1().ConfigMaps(w.plane.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, o := range list.Items {
			if o.Name == snapshot.RelayOutputName(0) {
				return false
			}
		}
		return true
	})
	assert.Equal(t, 0, h.count(), "a mesh has not got back what it had")
	assert.False(t, a.Left())
	assert.Equal(t, hub.Parting{}, w.hub.Part("west"))

	client, err := dynamic.NewForConfig(w.west)
	require.NoError(t, err)
	require.NoError(t, client.Resource(snapshot.CertificateRequest.GroupVersionResource()).Namespace(w.plane.Namespace).Delete(t.Context(), "mesh", metav1.DeleteOptions{}))
	waittest.Until(t, "the agent says that it has gone", func() bool { return w.hub.Parting("west").Gone })
	waittest.Until(t, "it ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	assert.True(t, a.Left())
	assert.Equal(t, 1, h.count())
	assert.Equal(t, []string{"theirs"}, w.ours())
}

// TestAnAgentStays: one that may not remove itself says why, and goes on. When its cluster is registered again, it removes nothing any more.
func TestAnAgentStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := &home{stays: errors.New("it was invited")}
	a, _, _ := w.leavingAgent(h)
	serving := w.server()
	serving.written()
	w.same()
	w.hub.Part("west")
	waittest.Until(t, "it says why", func() bool { return w.hub.Parting("west").Stays == "it was invited" })
	assert.False(t, a.Left())

	w.hub.Remove("west")
	w.relayed.Remove("west")
	_, err := w.hub.Add(w.relayed, "west", "")
	require.NoError(t, err)
	serving.sink.Set("west", w.relayed.Link("west"))
	h.set(nil)
	serving.want("again", "one")
	serving.written()
	w.same()
	assert.Equal(t, hub.Parting{}, w.hub.Parting("west"))
	assert.Equal(t, 0, h.count())
	assert.Equal(t, []string{"again"}, w.ours())
}

// debtors are Agents of which that of west owes something.
type debtors struct {
	hub.Agents
	mu   sync.Mutex
	owes bool
}

func (*debtors) Admit(context.Context, []*x509.Certificate, string) (string, error) {
	return "west", nil
}

func (d *debtors) Owes(cluster string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owes && cluster == "west"
}

func (d *debtors) Paid(context.Context, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owes = false
	return nil
}

// TestAnAgentPaysADebt: an agent whose cluster was deregistered while it was away is told to remove what it left, and nothing else; without
// a debt, it is not heard at all.
func TestAnAgentPaysADebt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agents := &debtors{}
	h := hub.New(hub.Options{Agents: agents, Plane: w.plane.ID, Term: hub.Term{Epoch: 2, Since: time.Now()}, Version: "test", Log: w.log, Times: w.times})
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, h)
	listener := listen(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	w.proxy = newProxy(t, listener.Addr().String())
	w.put(snapshot.IssuedCertificate, "ours", w.labels())
	_, err := sandboxtest.Clientset(t, w.west).CoreV1().ConfigMaps(w.plane.Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	its := &home{}
	a, ended, _ := w.leavingAgent(its)
	waittest.Until(t, "it is not heard", func() bool { return a.Disconnected().Code != "" })
	assert.Equal(t, []string{"ours"}, w.ours())

	agents.mu.Lock()
	agents.owes = true
	agents.mu.Unlock()
	waittest.Until(t, "it has paid, and ended", func() bool {
		select {
		case <-ended:
			return !agents.Owes("west")
		default:
			return false
		}
	})
	assert.Empty(t, w.ours())
	assert.Equal(t, 1, its.count())
	assert.Empty(t, h.Statuses(), "it is not registered")
}

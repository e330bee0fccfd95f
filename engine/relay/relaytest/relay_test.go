// Package relaytest tests both sides of the relay with each other and with API servers.
package relaytest

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// world is a management cluster, a cluster west, and its agent, which dials the hub through a proxy.
type world struct {
	t          *testing.T
	management *rest.Config
	west       *rest.Config
	plane      snapshot.Plane
	log        *slog.Logger
	proxy      *proxy
	disk       agent.Disk
	hub        *hub.Hub
	// times are those of the streams.
	times pump.Times
	// dial are further options with which agents dial.
	dial []grpc.DialOption
	// relayed reads west through the agent, and direct without it.
	relayed, direct *watch.Source
}

// anybody is taken for the agent of west.
type anybody struct{ hub.Agents }

func (anybody) Admit(context.Context, []*x509.Certificate, string) (string, error) {
	return "west", nil
}

// lines receives the logs of a test.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, pump.Times{})
}

// newWorldWith is a world of streams on which nothing may happen for these times.
func newWorldWith(t *testing.T, times pump.Times) *world {
	t.Helper()
	servers := registrationtest.APIServers(t, 2)
	w := &world{t: t, times: times, log: slog.New(slog.NewTextHandler(lines{t}, nil)), plane: snapshot.Plane{Namespace: "gloo-mesh", ID: "plane-1"}}
	for i, config := range []**rest.Config{&w.management, &w.west} {
		var err error
		*config, err = servers[i].Config()
		require.NoError(t, err)
		sandboxtest.MakeNamespace(t, *config, w.plane.Namespace)
	}
	w.proxy = newProxy(t, w.serve(1))
	client, err := kube.NewClientset(w.west)
	require.NoError(t, err)
	w.disk = agent.ConfigMaps{Client: client, Namespace: w.plane.Namespace}
	w.direct = w.source()
	w.direct.Set("west", "", w.west, nil)
	return w
}

// serve starts a hub that knows nothing, in a term, and returns its address.
func (w *world) serve(epoch uint64) string {
	w.t.Helper()
	w.hub = hub.New(hub.Options{
		Agents: anybody{}, Plane: w.plane.ID, Term: hub.Term{Epoch: epoch, Since: time.Now()}, Version: "test",
		Grace: time.Second, Log: w.log, Times: w.times,
	})
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, w.hub)
	listener := listen(w.t)
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(server.Stop)
	w.relayed = w.source()
	_, err := w.hub.Add(w.relayed, "west", "")
	require.NoError(w.t, err)
	return listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}

// run runs something until the test ends.
func (w *world) run(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

func (w *world) source() *watch.Source {
	w.t.Helper()
	source, err := watch.New(watch.Options{Management: w.management, Namespace: w.plane.Namespace, PlaneID: w.plane.ID, Log: slog.New(slog.DiscardHandler), Grace: time.Millisecond})
	require.NoError(w.t, err)
	w.run(func(ctx context.Context) { assert.NoError(w.t, source.Run(ctx)) })
	return source
}

// agent starts an agent, and returns how to stop it.
func (w *world) agent() (stop func()) {
	w.t.Helper()
	return w.run(w.newAgent(w.proxy.address(), lines{w.t}, w.dial...).Run)
}

// newAgent is an agent that dials an address.
func (w *world) newAgent(hub string, log io.Writer, dial ...grpc.DialOption) *agent.Agent {
	w.t.Helper()
	a, err := agent.New(agent.Options{
		Cluster: "west", UID: "uid-west", Plane: w.plane, Config: w.west, Hub: hub, Version: "test", Log: slog.New(slog.NewTextHandler(log, nil)),
		Dial: append(dial, grpc.WithTransportCredentials(insecure.NewCredentials())), Redial: 10 * time.Millisecond, RedialMost: 200 * time.Millisecond,
		Grace: time.Second, Disk: w.disk, Times: w.times,
	})
	require.NoError(w.t, err)
	return a
}

// clusterOf is west as a source has it; nil before there is anything.
func clusterOf(s *watch.Source) *snapshot.Cluster {
	input := s.Input()
	if input == nil {
		return nil
	}
	for _, c := range input.Clusters {
		if c.Name == "west" {
			return c
		}
	}
	return nil
}

// difference is the first difference between west as it is read through the agent and directly; empty if there is none.
func (w *world) difference() string {
	through, directly := clusterOf(w.relayed), clusterOf(w.direct)
	switch {
	case through == nil || directly == nil:
		return "nothing was read yet"
	case through.Sync != snapshot.Synced || directly.Sync != snapshot.Synced:
		return fmt.Sprintf("it is %s (%s) through the agent, and %s directly", through.Sync, through.Reason, directly.Sync)
	}
	for kind, list := range through.Lists {
		other := directly.List(kind)
		if list.Len() != other.Len() {
			return fmt.Sprintf("%d of %s instead of %d", list.Len(), kind, other.Len())
		}
		for i := range list.Len() {
			if a, b := list.At(i), other.At(i); !equality.Semantic.DeepEqual(a, b) {
				return fmt.Sprintf("%s: %v instead of %v", kind, a, b)
			}
		}
	}
	return w.differenceOfMirrors()
}

func (w *world) differenceOfMirrors() string {
	through, directly := w.relayed.Link("west").State(), w.direct.Link("west").State()
	if through.Conn == nil || directly.Conn == nil || through.Suspended {
		return fmt.Sprintf("it cannot be written to: %v", through.Err)
	}
	objects := map[mirror.ID]mirror.Object{}
	for of, o := range directly.Conn.All() {
		objects[of] = o
	}
	for of, o := range through.Conn.All() {
		if !equality.Semantic.DeepEqual(objects[of], o) {
			return fmt.Sprintf("%v is %+v instead of %+v", of, o, objects[of])
		}
		delete(objects, of)
	}
	for of, o := range objects {
		return fmt.Sprintf("%v is not in the mirror: %+v", of, o)
	}
	for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		if a, b := through.Conn.State(kind), directly.Conn.State(kind); a != b {
			return fmt.Sprintf("%s is %+v instead of %+v", kind, a, b)
		}
	}
	return ""
}

// same waits until west is the same both ways.
func (w *world) same() {
	w.t.Helper()
	last := ""
	defer func() {
		if w.t.Failed() {
			w.t.Log("last difference: " + last)
		}
	}()
	waittest.Until(w.t, "west is the same through the agent and directly", func() bool {
		last = w.difference()
		return last == ""
	})
}

// edit changes something in west.
func (w *world) edit(client kubernetes.Interface, chance *rand.Rand) {
	w.t.Helper()
	name := fmt.Sprintf("n%d", chance.IntN(8))
	labels := map[string]string{"app": fmt.Sprintf("a%d", chance.IntN(5))}
	ctx := w.t.Context()
	var err error
	switch chance.IntN(4) {
	case 0:
		_, err = client.CoreV1().Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
	case 1:
		err = client.CoreV1().Services("default").Delete(ctx, name, metav1.DeleteOptions{})
	case 2:
		_, err = client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
			},
		}, metav1.CreateOptions{})
	case 3:
		err = client.AppsV1().Deployments("default").Delete(ctx, name, metav1.DeleteOptions{})
	}
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
}

// TestRelayIsLikeADirectConnection: with connections that end at any moment, and both sides starting again, west is in the end what it
// is when it is read directly, and what is to be written there is written.
func TestRelayIsLikeADirectConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.differs(w.server(), rand.New(rand.NewPCG(waittest.Seed(t), 0)), 30)
}

// TestRelayIsLikeADirectConnectionManyTimes is the same for 200 sequences of edits, with a thousand cuts.
func TestRelayIsLikeADirectConnectionManyTimes(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	w := newWorld(t)
	seed, serving := waittest.Seed(t), w.server()
	for n := range uint64(200) {
		w.differs(serving, rand.New(rand.NewPCG(seed, n)), 5)
	}
	chance, client := rand.New(rand.NewPCG(seed, 200)), sandboxtest.Clientset(t, w.west)
	w.agent()
	for before := w.proxy.ended(); before < 1000; before = w.proxy.ended() {
		w.edit(client, chance)
		serving.want(fmt.Sprintf("c%d", chance.IntN(5)), []string{"", "a", "b"}[chance.IntN(3)])
		w.proxy.cutAfter(chance.IntN(4000))
		waittest.Until(t, "a connection is cut", func() bool { return w.proxy.ended() > before })
	}
	w.proxy.whole()
	w.same()
	serving.written()
}

// differs edits west for some rounds while connections end, and waits until it is the same both ways.
func (w *world) differs(serving *server, chance *rand.Rand, rounds int) {
	w.t.Helper()
	client := sandboxtest.Clientset(w.t, w.west)
	stop := w.agent()
	defer func() { stop() }()
	w.same()
	for range rounds {
		for range chance.IntN(10) {
			w.edit(client, chance)
			serving.want(fmt.Sprintf("c%d", chance.IntN(5)), []string{"", "a", "b"}[chance.IntN(3)])
		}
		switch chance.IntN(4) {
		case 0:
			w.proxy.cut()
		case 1:
			w.proxy.cutAfter(chance.IntN(20_000))
		case 2:
			stop()
			stop = w.agent()
		}
		if chance.IntN(4) == 0 {
			w.proxy.whole()
			w.same()
			serving.written()
		}
	}
	w.proxy.whole()
	w.same()
	serving.written()
}

// TestTheHubIsAway: the agent keeps what stands, changes nothing else, and obeys the hub again once it is back. An agent that starts
// meanwhile knows what stood.
func TestTheHubIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serving := w.server()
	stop := w.agent()
	serving.want("a", "one")
	serving.want("b", "two")
	serving.written()
	waittest.Until(t, "what stands is stored", func() bool {
		documents, err := w.disk.Load(t.Context())
		return err == nil && len(documents) == 2
	})
	w.proxy.block(true)
	resources, err := dynamic.NewForConfig(w.west)
	require.NoError(t, err)
	certificates := resources.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Namespace(w.plane.Namespace)
	damage := func() {
		t.Helper()
		before, err := certificates.Get(t.Context(), "b", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = certificates.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"org":"changed"}}`), metav1.PatchOptions{FieldManager: "somebody"})
		require.NoError(t, err)
		require.NoError(t, certificates.Delete(t.Context(), "b", metav1.DeleteOptions{}))
		// What watches have seen may be of before the damage.
		waittest.Until(t, "it is put back", func() bool {
			a, errOfA := certificates.Get(t.Context(), "a", metav1.GetOptions{})
			b, errOfB := certificates.Get(t.Context(), "b", metav1.GetOptions{})
			if errOfA != nil || errOfB != nil || b.GetUID() == before.GetUID() {
				return false
			}
			org, _, _ := unstructured.NestedString(a.Object, "spec", "org")
			return org == "one"
		})
	}
	damage()
	serving.written()

	t.Log("the agent starts again, without a hub")
	stop()
	stop = w.agent()
	damage()
	serving.written()
	stop()

	t.Log("what is stored is damaged: nothing is changed")
	client := sandboxtest.Clientset(t, w.west).CoreV1().ConfigMaps(w.plane.Namespace)
	_, err = client.Patch(t.Context(), "meshctl-relay-output-0", types.MergePatchType, []byte(`{"binaryData":{"output":"AAAA"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = w.disk.Load(t.Context())
	require.ErrorContains(t, err, "damaged")

	w.agent()
	serving.want("c", "three")
	w.proxy.block(false)
	serving.written()
	w.same()
}

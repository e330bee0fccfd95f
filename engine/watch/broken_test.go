package watch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// panicky is stripPod that panics, halfway, at pods on the node "panic".
func panicky(o *corev1.Pod) bool {
	if o.Spec.NodeName == "panic" {
		o.Labels = nil
		panic("broken pod")
	}
	return stripPod(o)
}

func newPanickyPods(seed ...*corev1.Pod) *pods {
	p := &pods{}
	p.store = newStore(seed, panicky, func() { p.changes++ })
	return p
}

// nodes says on which node each pod of a list is.
func nodes(list []*corev1.Pod) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = p.Name + "@" + p.Spec.NodeName
	}
	return out
}

func TestAPanicCostsOneObject(t *testing.T) {
	t.Parallel()
	p := newPanickyPods()
	var rejected []string
	p.rejected = func(k key, err error) {
		rejected = append(rejected, fmt.Sprintf("%s/%s: %v", k.namespace, k.name, err))
	}
	items := func(nodeOfB string) []any {
		return []any{pod("x", "a", "n1"), pod("x", "b", nodeOfB), pod("x", "c", "n1")}
	}

	t.Log("an object that was never read is left out, its neighbours are not")
	require.NoError(t, p.Replace(items("panic"), ""))
	assert.True(t, p.isFilled())
	assert.Equal(t, []string{"a@n1", "c@n1"}, nodes(p.list()))
	assert.Equal(t, []string{"x/b: panic: broken pod"}, rejected)

	t.Log("one that was read stays as it was, however the broken version arrives")
	require.NoError(t, p.Update(pod("x", "b", "n1")))
	assert.Empty(t, p.broken)
	known := p.list()
	require.Len(t, known, 3)
	require.NoError(t, p.Update(pod("x", "b", "panic")))
	changes := p.changes
	require.NoError(t, p.Update(pod("x", "b", "panic")))
	require.NoError(t, p.Add(pod("x", "b", "panic")))
	require.NoError(t, p.Replace(items("panic"), ""))
	assert.True(t, snapshot.SameSlice(known, p.list()))
	assert.Len(t, rejected, 2, "the same reason is reported once")
	assert.Equal(t, changes, p.changes)

	t.Log("also over a new connection, and from a stream")
	again := newPanickyPods(known...)
	stream := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(again.Transformer()))
	for _, item := range items("panic") {
		require.NoError(t, stream.Add(item))
	}
	require.NoError(t, again.Replace(stream.List(), ""))
	assert.True(t, snapshot.SameSlice(known, again.list()))
	assert.Equal(t, map[key]string{{"x", "b"}: "panic: broken pod"}, again.broken)

	t.Log("a deletion is no panic, and ends the matter")
	require.NoError(t, p.Delete(pod("x", "b", "panic")))
	assert.Equal(t, []string{"a@n1", "c@n1"}, nodes(p.list()))
	assert.Empty(t, p.broken)
	require.NoError(t, again.Replace([]any{pod("x", "a", "n1")}, ""))
	assert.Equal(t, []string{"a@n1"}, nodes(again.list()))
	assert.Empty(t, again.broken)
}

// odd is an API type that cannot be compared.
type odd struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec struct{ hidden int }
}

func (o *odd) DeepCopyObject() runtime.Object { return o }

// TestAPanicInAComparisonCostsOneObject: the object was stripped without a panic.
func TestAPanicInAComparisonCostsOneObject(t *testing.T) {
	t.Parallel()
	oddity := func(name string, hidden int) *odd {
		o := &odd{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.Spec.hidden = hidden
		return o
	}
	c := newStore(nil, func(*odd) bool { return true }, func() {})
	first := oddity("a", 1)
	require.NoError(t, c.Replace([]any{first, oddity("b", 1)}, ""))
	require.NoError(t, c.Replace([]any{oddity("a", 2)}, ""))
	require.Len(t, c.list(), 1)
	assert.Same(t, first, c.list()[0])
	assert.Contains(t, c.broken[key{"", "a"}], "unexported field")
}

// logLines collects log lines from many goroutines.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestBrokenObjectsOfACluster watches real pods, of which some cannot be
// processed, until they are in a view and in failures.
func TestBrokenObjectsOfACluster(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	api, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = api.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pods := api.CoreV1().Pods("default")
	create := func(name, node string) {
		t.Helper()
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create("a", "n1")
	create("b", "panic")

	changed := make(chan struct{}, 1)
	log := &logLines{}
	p, err := newManagedCache(config, &mirror.Link{}, scheme.New(), snapshot.Plane{Namespace: "gloo-mesh"}, &snapshot.Cluster{Name: "west"}, withoutStatuses, nil, func() { signal(changed) })
	require.NoError(t, err)
	p.log = slog.New(slog.NewTextHandler(log, nil))
	for _, f := range p.feeds {
		if f, ok := f.(*feed[*corev1.Pod]); ok {
			f.strip = panicky
			require.NoError(t, f.read(t.Context()), "a plain list")
			assert.Equal(t, []string{"a@n1"}, nodes(f.list()))
			require.Len(t, f.brokenObjects("west"), 1)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.start(ctx)
	defer p.stop()
	p.published.Store(true)
	until := func(what string, want []string, failures ...string) {
		t.Helper()
		deadline := time.After(waittest.Limit())
		for {
			var view snapshot.Cluster
			p.copyTo(&view)
			var have []string
			for _, f := range sortedFailures(p.failures("west")) {
				have = append(have, f.Ref.String()+": "+f.Reason.String())
			}
			if p.isFilled() && assert.ObjectsAreEqual(want, nodes(view.Pods)) && assert.ObjectsAreEqual(failures, have) {
				return
			}
			select {
			case <-changed:
			case <-time.After(100 * time.Millisecond): // isFilled is no change
			case <-deadline:
				require.FailNow(t, "never came: "+what, "%v %v\n%s", nodes(view.Pods), have, log)
			}
		}
	}
	ignored := "Pod west/default/b: meshctl cannot process this object (panic: broken pod); it is ignored"
	until("the list", []string{"a@n1"}, ignored)
	create("c", "n1")
	until("an event", []string{"a@n1", "c@n1"}, ignored)
	require.NoError(t, pods.Delete(t.Context(), "b", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	until("no b", []string{"a@n1", "c@n1"})
	assert.Equal(t, 1, strings.Count(log.String(), "object=default/b"), log)
	assert.Contains(t, log.String(), "watch.panicky", "the stack")
}

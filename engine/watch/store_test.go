package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// pods is a store of pods that counts its changes.
type pods struct {
	*store[*corev1.Pod]
	changes int
}

func newPods(seed ...*corev1.Pod) *pods {
	p := &pods{}
	p.store = newStore(seed, stripPod, func() { p.changes++ })
	return p
}

func pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func names(pods []*corev1.Pod) []string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = p.Namespace + "/" + p.Name
	}
	return out
}

func TestCollectionIsOrderedByNamespaceThenName(t *testing.T) {
	t.Parallel()
	p := newPods()
	require.NoError(t, p.Replace([]any{pod("b", "a", ""), pod("a", "z", ""), pod("a", "b", "")}, ""))
	require.NoError(t, p.Add(pod("a", "c", "")))
	require.NoError(t, p.Add(pod("c", "a", "")))
	require.NoError(t, p.Delete(pod("a", "b", "")))
	assert.Equal(t, []string{"a/c", "a/z", "b/a", "c/a"}, names(p.list()))
}

func TestCollectionHandsOutTheSameSliceUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	p := newPods()
	require.NoError(t, p.Replace([]any{pod("a", "a", "n1"), pod("a", "b", "n1")}, ""))
	before := p.list()
	changes := p.changes

	t.Log("what stripping removes is no change")
	busy := pod("a", "a", "n1")
	busy.ResourceVersion = "77"
	busy.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	busy.Annotations = map[string]string{"control-plane.alpha.kubernetes.io/leader": "me"}
	require.NoError(t, p.Update(busy))
	t.Log("neither is a relist of the same objects")
	require.NoError(t, p.Replace([]any{pod("a", "b", "n1"), pod("a", "a", "n1")}, ""))
	t.Log("nor the deletion of what is not there")
	require.NoError(t, p.Delete(pod("a", "c", "n1")))
	assert.Equal(t, changes, p.changes)
	assert.True(t, snapshot.SameSlice(before, p.list()))

	require.NoError(t, p.Update(pod("a", "b", "n2")))
	assert.Equal(t, changes+1, p.changes)
	after := p.list()
	assert.False(t, snapshot.SameSlice(before, after))
	assert.Same(t, before[0], after[0], "the unchanged element is shared")
	assert.NotSame(t, before[1], after[1])
	assert.Equal(t, "n1", before[1].Spec.NodeName, "what was handed out never changes")
}

func TestCollectionForgetsAChangeThatWasTakenBack(t *testing.T) {
	t.Parallel()
	p := newPods()
	require.NoError(t, p.Replace([]any{pod("a", "a", "n1")}, ""))
	before := p.list()
	require.NoError(t, p.Update(pod("a", "a", "n2")))
	require.NoError(t, p.Update(pod("a", "a", "n1")))
	require.NoError(t, p.Add(pod("a", "b", "n1")))
	require.NoError(t, p.Delete(pod("a", "b", "n1")))
	assert.True(t, snapshot.SameSlice(before, p.list()))
}

func TestCollectionIsFilledByAnEmptyList(t *testing.T) {
	t.Parallel()
	p := newPods()
	assert.False(t, p.isFilled())
	require.NoError(t, p.Replace(nil, ""))
	assert.True(t, p.isFilled())
	assert.Equal(t, 1, p.changes, "being filled is news")
	assert.Empty(t, p.list())
}

func TestCollectionTakesUnchangedObjectsFromItsSeed(t *testing.T) {
	t.Parallel()
	old := newPods()
	require.NoError(t, old.Replace([]any{pod("a", "a", "n1"), pod("a", "b", "n1")}, ""))
	seed := old.list()

	same := newPods(seed...)
	require.NoError(t, same.Replace([]any{pod("a", "a", "n1"), pod("a", "b", "n1")}, ""))
	assert.True(t, snapshot.SameSlice(seed, same.list()))

	other := newPods(seed...)
	require.NoError(t, other.Replace([]any{pod("a", "b", "n1"), pod("a", "c", "n1")}, ""))
	require.Equal(t, []string{"a/b", "a/c"}, names(other.list()))
	assert.Same(t, seed[1], other.list()[0])
}

func TestCollectionDropsWhatDoesNotMatter(t *testing.T) {
	t.Parallel()
	changes := 0
	c := newStore(nil, stripConfigMap, func() { changes++ })
	config := func(name, key string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "istio-system", Name: name},
			Data:       map[string]string{key: "trustDomain: td", "other": "data"},
		}
	}
	require.NoError(t, c.Replace([]any{config("istio", "mesh"), config("istio-1-31", "mesh"), config("istio-sidecar-injector", "config"), config("mine", "of-another-program")}, ""))
	require.Len(t, c.list(), 2)
	assert.Equal(t, map[string]string{"mesh": "trustDomain: td"}, c.list()[0].Data)
	changes = 0
	require.NoError(t, c.Add(config("mine", "of-another-program")))
	assert.Zero(t, changes)
	require.NoError(t, c.Update(config("istio", "gone")))
	assert.Equal(t, 1, changes)
	assert.Len(t, c.list(), 1, "an object that no longer matters is as good as deleted")
}

func TestCollectionRefusesOtherTypes(t *testing.T) {
	t.Parallel()
	p := newPods()
	require.ErrorContains(t, p.Add(&corev1.Node{}), "*v1.Node")
	require.ErrorContains(t, p.Delete(&corev1.Node{}), "*v1.Node")
	require.ErrorContains(t, p.Replace([]any{&corev1.Node{}}, ""), "*v1.Node")
}

// TestStoreAgreesWithAMap does random things to a store and to a
// map, and compares them.
func TestStoreAgreesWithAMap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(waittest.Seed(t), 2))
	p, model := newPods(), map[key]string{}
	for step := range 5000 {
		o := pod(fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(20)), fmt.Sprint(random.IntN(2)))
		switch random.IntN(12) {
		case 0, 1, 2, 3, 4, 5:
			require.NoError(t, p.Update(o.DeepCopy()))
			model[keyOf(o)] = o.Spec.NodeName
		case 6, 7, 8:
			require.NoError(t, p.Delete(o))
			delete(model, keyOf(o))
		case 9:
			require.NoError(t, p.Replace([]any{o.DeepCopy()}, ""))
			model = map[key]string{keyOf(o): o.Spec.NodeName}
		default:
			list := p.list()
			require.True(t, slices.IsSortedFunc(list, func(a, b *corev1.Pod) int { return keyOf(a).compare(keyOf(b)) }))
			require.Len(t, list, len(model), "step %d", step)
			for _, o := range list {
				require.Equal(t, model[keyOf(o)], o.Spec.NodeName)
			}
		}
	}
}

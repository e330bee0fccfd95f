package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/registration"
)

// TestPodsBeyondTheFirstPage: those that run are found, however many do not, and ready ones come first.
func TestPodsBeyondTheFirstPage(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	namespace := "beyond-the-first-page"
	sandboxtest.MakeNamespace(t, config, namespace)
	core := sandboxtest.Clientset(t, config).CoreV1()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}}
	_, err := core.ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	pods := core.Pods(namespace)
	selector := map[string]string{"app": "jobs"}
	var group errgroup.Group
	group.SetLimit(8)
	for i := range 510 {
		group.Go(func() error {
			pod, err := pods.Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("jobs-%03d", i), Labels: selector},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "istio-proxy", Image: "proxy"}}},
			}, metav1.CreateOptions{})
			if err != nil || i < 508 {
				return err
			}
			pod.Status.Phase = corev1.PodRunning
			if i == 509 {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())

	system, err := core.Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	require.NoError(t, err)
	detours := registration.NewDetours(func() []registration.Context { return []registration.Context{{Name: "east", Config: config}} }, 0)
	registered := &multiclusterv1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster-1", Annotations: map[string]string{cluster.UIDAnnotation: string(system.UID)}}}
	proxies := check.NewProxies(t.Context(), detours, []*multiclusterv1alpha1.KubernetesCluster{registered}, registration.DefaultCheckTimeout)
	found, err := proxies.Pods("cluster-1", namespace, selector)
	require.NoError(t, err)
	var names []string
	for _, pod := range found {
		names = append(names, pod.Name)
	}
	assert.Equal(t, []string{"jobs-509", "jobs-508"}, names)
}

// registeredCluster is a registration with the UID by which contexts are found; relayed: the cluster is reached via relay.
func registeredCluster(name, uid string, relayed bool) *multiclusterv1alpha1.KubernetesCluster {
	kc := &multiclusterv1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "gloo-mesh"}}
	if uid != "" {
		kc.Annotations = map[string]string{cluster.UIDAnnotation: uid}
	}
	if relayed {
		kc.Status.Connection = &multiclusterv1alpha1.Connection{Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateConnected}
	}
	return kc
}

// TestProxiesThatCannotBeRead: the error says how the cluster is reached, and what to do.
func TestProxiesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registered *multiclusterv1alpha1.KubernetesCluster
		want       string
	}{
		"direct": {registeredCluster("west", "u1", false), "cluster west: no context of your kubeconfig leads to it"},
		"relay": {registeredCluster("west", "u1", true), "cluster west: it is reached via relay, its agent reads no proxies, and no context of your kubeconfig leads there: " +
			"add one, or name another file with --kubeconfig"},
		"relay, invited": {registeredCluster("west", "", true), "it is not recorded which context leads there: `meshctl cluster register west --relay --remote-context CONTEXT` records that"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			none := registration.NewDetours(func() []registration.Context { return nil }, 0)
			proxies := check.NewProxies(t.Context(), none, []*multiclusterv1alpha1.KubernetesCluster{c.registered}, registration.DefaultCheckTimeout)
			_, err := proxies.Pods("west", "shop", nil)
			require.ErrorContains(t, err, c.want)
			_, err = proxies.Config(explain.ProxyPod{Cluster: "west", Namespace: "shop", Name: "cart"}, 15000)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestSampleNamesWhoWasNotAsked: a sample says of each cluster whose proxies it could not read that it did not, even if no pair was drawn
// there.
func TestSampleNamesWhoWasNotAsked(t *testing.T) {
	t.Parallel()
	in, _, err := offline.Load(offline.Dir("../../testdata/translate/bookinfo/in"))
	require.NoError(t, err)
	for _, kc := range []*multiclusterv1alpha1.KubernetesCluster{registeredCluster("cluster-1", "u1", false), registeredCluster("cluster-2", "u2", true), registeredCluster("quiet", "u3", true)} {
		in, err = in.With("", kc)
		require.NoError(t, err)
	}
	index := explain.New(engine.Translate(in))
	none := registration.NewDetours(func() []registration.Context { return nil }, 0)
	checked := check.Sample(t.Context(), index, nil, check.Options{Proxies: 5, Seed: 7, Detours: none, Timeout: registration.DefaultCheckTimeout})
	require.NotEmpty(t, checked.Answers)
	checkup := index.Checkup(&explain.CheckFacts{Proxies: checked})
	at := slices.IndexFunc(checkup.Categories, func(c explain.CheckCategory) bool { return c.Title == "Proxies" })
	require.GreaterOrEqual(t, at, 0)
	said := map[string]string{}
	for _, c := range checkup.Categories[at].Checks {
		assert.Equal(t, explain.CheckWarning, c.Result, c.ID)
		said[c.ID] = c.Description + ": " + c.Message
	}
	assert.Len(t, said, 4, "each reason once, and that nothing was compared: %v", said)
	assert.Regexp(t, `^proxies of cluster-1 \(via direct\) not asked, and \d pairs? not evaluated: cluster cluster-1: no context of your kubeconfig leads to it`, said["proxies/not-asked/cluster-1"])
	assert.Regexp(t, `^proxies of cluster-2 \(via relay\) not asked, and \d pairs? not evaluated: cluster cluster-2: it is reached via relay, its agent reads no proxies, and`, said["proxies/not-asked/cluster-2"])
	assert.Contains(t, said["proxies/not-asked/quiet"], "proxies of quiet (via relay) not asked, and 0 pairs not evaluated: ")
	assert.Contains(t, said["proxies"], "for none of 5 pairs")
}

package check_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/cluster"
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

package pool_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/pool"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/waittest"
)

// served is a pool that other processes could use, too.
type served struct {
	*pool.Pool
	address string
	reports chan string
}

func newPool(t *testing.T) *served {
	t.Helper()
	return newPoolWith(t, 0)
}

// newPoolWith is a pool that pauses API servers which nobody has for a time.
func newPoolWith(t *testing.T, pauseAfter time.Duration) *served {
	t.Helper()
	binary, err := helper.Build(t.Context(), helper.Progress{Report: func(message string) { t.Log(message) }})
	require.NoError(t, err)
	guard, err := proc.NewGuard()
	require.NoError(t, err)
	t.Cleanup(guard.Close)
	p := &served{address: filepath.Join(t.TempDir(), "socket"), reports: make(chan string, 100)}
	p.Pool = pool.New(pool.Options{
		Dir: t.TempDir(), Helper: binary, Guard: guard, PauseAfter: pauseAfter,
		Report: func(message string) { p.reports <- message }, Note: func(message string) { t.Log(message) },
	})
	listener, err := net.Listen("unix", p.address)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- p.Serve(context.Background(), listener) }()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		require.NoError(t, <-done)
		p.Close()
	})
	return p
}

func borrow(t *testing.T, address, holder string) (pool.Loan, *local.Cluster, *kubernetes.Clientset) {
	t.Helper()
	loan, err := pool.Ask(t.Context(), address, pool.Wish{Holder: holder, Index: 1})
	require.NoError(t, err)
	cluster, err := local.Open(loan.Dir, nil)
	require.NoError(t, err)
	config, err := cluster.Config()
	require.NoError(t, err)
	return loan, cluster, kubernetes.NewForConfigOrDie(config)
}

const leftBehind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: left, finalizers: [example.com/never]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: left, namespace: left}
---
apiVersion: v1
kind: Service
metadata: {name: left, namespace: left}
spec: {type: NodePort, ports: [{port: 80, nodePort: 31021}], clusterIP: 10.101.0.7}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: left, namespace: kube-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nothing}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: nothing}
spec: {policyName: nothing, validationActions: [Deny]}
`

// TestAPIServersAreAsNew: a test gets the server of an earlier one, with nothing that it left.
func TestAPIServersAreAsNew(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	first, cluster, clients := borrow(t, p.address, "first")
	client, err := cluster.Client()
	require.NoError(t, err)
	before, err := cluster.Record(t.Context())
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, client.ApplyYAML(t.Context(), []byte(leftBehind)))
		require.NoError(t, clients.RbacV1().ClusterRoles().Delete(t.Context(), "view", metav1.DeleteOptions{}))
		require.NoError(t, clients.CoreV1().Namespaces().Delete(t.Context(), "left", metav1.DeleteOptions{})) // which ends never
		first.Return()

		again, other, clientsAgain := borrow(t, p.address, "second")
		assert.Equal(t, first.Dir, again.Dir)
		changed, err := other.Changes(t.Context(), before)
		require.NoError(t, err)
		assert.Len(t, local.Foreign(changed), 1, "what was restored is younger: %v", changed)
		_, err = clientsAgain.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = clientsAgain.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed-again"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		client, err = other.Client()
		require.NoError(t, err)
		first, clients = again, clientsAgain
	}
	first.Return()
	assert.Empty(t, p.reports)
}

// TestAPIServersInUse: nobody gets a server that another has, that was stopped, or that is still written.
func TestAPIServersInUse(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	first, cluster, _ := borrow(t, p.address, "first")
	second, _, _ := borrow(t, p.address, "second")
	assert.NotEqual(t, first.Dir, second.Dir)
	require.NoError(t, cluster.Restart(t.Context(), local.APIServer))
	first.Return()
	second.Return()
	third, cluster, clients := borrow(t, p.address, "third")
	assert.Equal(t, second.Dir, third.Dir)
	before, err := cluster.Record(t.Context())
	require.NoError(t, err)
	waittest.Until(t, "who writes after it has ended is noticed", func() bool {
		third.Return()
		waittest.Until(t, "the server is as it was", func() bool {
			left, err := cluster.Changes(t.Context(), before)
			require.NoError(t, err)
			return len(local.Foreign(left)) == 0
		})
		_, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		var next pool.Loan
		next, _, _ = borrow(t, p.address, "next")
		if next.Dir != third.Dir {
			next.Return()
			return true
		}
		third = next // it was written before the pool had looked for the last time
		return false
	})
	assert.Contains(t, <-p.reports, "writes after it has ended")
}

// TestTheAPIServerCorrects: what an API server says of addresses that no Service has any more is taken away, and nobody is blamed.
func TestTheAPIServerCorrects(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	first, cluster, clients := borrow(t, p.address, "first")
	before, err := cluster.Record(t.Context())
	require.NoError(t, err)
	first.Return()
	waittest.Until(t, "the server is as it was", func() bool {
		left, err := cluster.Changes(t.Context(), before)
		require.NoError(t, err)
		return len(local.Foreign(left)) == 0
	})
	_, err = clients.NetworkingV1().IPAddresses().Create(t.Context(), &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: "10.101.0.9", Labels: map[string]string{
			networkingv1.LabelManagedBy: "ipallocator.k8s.io", networkingv1.LabelIPAddressFamily: "IPv4",
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "pods", Namespace: "default", Name: "none"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	waittest.Until(t, "the API server says that the address has no Service", func() bool {
		events, err := clients.EventsV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=10.101.0.9"})
		require.NoError(t, err)
		return len(events.Items) > 0
	})

	second, _, clients := borrow(t, p.address, "second")
	assert.Equal(t, first.Dir, second.Dir)
	events, err := clients.EventsV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=10.101.0.9"})
	require.NoError(t, err)
	assert.Empty(t, events.Items)
	assert.Empty(t, p.reports)
}

// TestPreparedAPIServers: what a test has prepared is there for the next one that wants the same, without what that test did later, and
// for nobody else.
func TestPreparedAPIServers(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	ask := func(holder, prepared string) (pool.Loan, *kube.Client) {
		loan, err := pool.Ask(t.Context(), p.address, pool.Wish{Holder: holder, Index: 1, Prepared: prepared})
		require.NoError(t, err)
		cluster, err := local.Open(loan.Dir, nil)
		require.NoError(t, err)
		client, err := cluster.Client()
		require.NoError(t, err)
		return loan, client
	}
	things := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	thing := []byte("{apiVersion: example.com/v1, kind: Thing, metadata: {name: of-a-test, namespace: default}}")

	first, client := ask("first", "things")
	assert.False(t, first.Prepared)
	require.NoError(t, client.ApplyYAML(t.Context(), []byte(leftBehind)))
	require.NoError(t, first.Keep(t.Context()))
	require.NoError(t, client.ApplyYAML(t.Context(), thing))
	first.Return()

	second, client := ask("second", "things")
	assert.Equal(t, first.Dir, second.Dir)
	assert.True(t, second.Prepared)
	list, err := client.List(t.Context(), things, "default")
	require.NoError(t, err)
	assert.Empty(t, list, "the type stays, and not what a test made of it")
	require.NoError(t, client.ApplyYAML(t.Context(), thing))
	second.Return()

	for _, other := range []string{"", "others"} {
		third, _ := ask("third", other)
		assert.NotEqual(t, first.Dir, third.Dir, other)
		assert.False(t, third.Prepared, other)
		third.Return()
	}
	assert.Empty(t, p.reports)
}

// TestIdleAPIServersArePaused: one that nobody has stands still, and serves whoever gets it next.
func TestIdleAPIServersArePaused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the state of a process is read in /proc")
	}
	p := newPoolWith(t, time.Millisecond)
	paused := func(c *local.Cluster) (all, none bool) {
		all, none = true, true
		for _, process := range c.Processes() {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID))
			require.NoError(t, err)
			stopped := strings.Contains(string(status), "State:\tT")
			all, none = all && stopped, none && !stopped
		}
		return all, none
	}
	for range 3 {
		loan, cluster, clients := borrow(t, p.address, "one")
		_, none := paused(cluster)
		assert.True(t, none)
		_, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		loan.Return()
		waittest.Until(t, "it is paused", func() bool { all, _ := paused(cluster); return all })
	}
	_, cluster, _ := borrow(t, p.address, "another")
	require.NoError(t, p.Clear())
	_, none := paused(cluster)
	assert.True(t, none)
	assert.Empty(t, p.reports)
}

// TestClear: servers that nobody has end, and the others go on.
func TestClear(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	first, cluster, _ := borrow(t, p.address, "first")
	second, kept, _ := borrow(t, p.address, "second")
	first.Return()
	require.NoError(t, p.Clear())
	for _, process := range cluster.Processes() {
		assert.False(t, process.Alive(), process.Name)
	}
	_, err := kept.Changes(t.Context(), &local.Recording{})
	require.NoError(t, err)
	second.Return()
}

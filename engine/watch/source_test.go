package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

func TestMissingCRDsAreAnErrorThatNamesThem(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	source, err := watch.New(watch.Options{Management: config})
	require.NoError(t, err)
	err = source.Run(t.Context())
	var missing *watch.MissingCRDsError
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, missing.Names, "trafficpolicies.networking.mesh.gloo.solo.io")
	assert.Len(t, missing.Names, len(snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write)))
	assert.ErrorContains(t, err, "meshctl cluster register")

	_, err = watch.ReadOnce(t.Context(), config, "")
	require.ErrorAs(t, err, &missing)
	assert.Nil(t, source.Input())
}

func TestOnlyWhatChangedIsNew(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	createService(t, config, "first")
	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	w.Set("west", "", config, nil)
	w.Set("east", "east.example", config, nil)
	before := w.until("both", func(i *snapshot.Input) bool {
		return named(i, "west").Sync == snapshot.Synced && named(i, "east").Sync == snapshot.Synced
	})
	require.Len(t, before.Clusters, 2)
	assert.Equal(t, "east", before.Clusters[0].Name)
	assert.Equal(t, "east.example", before.Clusters[0].Domain)
	require.NotNil(t, serviceIn(before.Clusters[0], "first"))
	assert.Same(t, before, w.Input(), "nothing has changed")

	t.Log("one cluster goes, the other stays as it was")
	w.Remove("east")
	after := w.until("east gone", func(i *snapshot.Input) bool { return len(i.Clusters) == 1 })
	assert.Same(t, before.Clusters[1], after.Clusters[0])
	assert.Same(t, before.Management, after.Management)

	t.Log("a change that stripping removes is none; the next one is seen alone")
	patch := []byte(`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{}","other":"x"}}}`)
	_, err = client(t, config).CoreV1().Services("default").Patch(t.Context(), "first", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	createService(t, config, "second")
	// The API server may write objects of its own in between.
	west := named(w.until("the second service", func(i *snapshot.Input) bool {
		at := named(i, "west")
		return serviceIn(at, "second") != nil || !assert.True(t, snapshot.SameSlice(before.Clusters[1].Services, at.Services))
	}), "west")
	assert.Same(t, serviceIn(before.Clusters[1], "first"), serviceIn(west, "first"))
	assert.NotSame(t, before.Clusters[1], west)
	assert.Same(t, &before.Clusters[1].Namespaces[0], &west.Namespaces[0], "lists of other kinds are the same")
	assert.Len(t, west.Services, len(before.Clusters[1].Services)+1)

	t.Log("failures count as a change, but only once")
	failures := []snapshot.Failure{{Ref: snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "west", Name: "x"}, Reason: snapshot.Reason{What: "no"}}}
	w.SetFailures(failures)
	failed := w.until("failure", func(i *snapshot.Input) bool { return len(i.Failures) == 1 })
	w.SetFailures(failures)
	assert.Same(t, failed, w.Input())
	assert.Equal(t, west, named(failed, "west"))
}

func TestCredentialsAreReplacedMakeBeforeBreak(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	createService(t, config, "first")
	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	var oldWire, newWire wire
	w.Set("west", "", oldWire.tap(config), nil)
	before := w.is("west", snapshot.Synced)

	t.Log("a credential that does not work changes nothing while the old one does")
	bad := rest.AnonymousClientConfig(config)
	bad.BearerToken = "hush"
	w.Set("west", "", bad, nil)
	waittest.Until(t, "the credential is refused", func() bool {
		return assert.ObjectsAreEqual(before, named(w.Input(), "west")) && contains(w.log, "the new credential of the cluster does not work")
	})
	createService(t, config, "second")
	between := w.hasService("west", "second")
	assert.Equal(t, snapshot.Synced, between.Sync)

	t.Log("a credential that works takes over; the lists are the same slices")
	good := newWire.tap(config)
	w.Set("west", "", good, nil)
	waittest.Until(t, "the new credential is in use alone", func() bool {
		assert.True(t, oldWire.open.Load() > 0 || newWire.open.Load() > 0)
		return oldWire.open.Load() == 0 && newWire.open.Load() > 0
	})
	createService(t, config, "third")
	after := w.hasService("west", "third")
	assert.Equal(t, snapshot.Synced, after.Sync)
	assert.Same(t, serviceIn(between, "first"), serviceIn(after, "first"))
	assert.NotContains(t, w.log.String(), "hush")

	t.Log("an unusable credential freezes the lists")
	w.Set("west", "", nil, errors.New("its Secret holds no kubeconfig"))
	stale := w.is("west", snapshot.Stale)
	assert.Equal(t, "its Secret holds no kubeconfig", stale.Reason)
	assert.Equal(t, snapshot.CredentialInvalid, stale.Cause)
	assert.Same(t, serviceIn(after, "third"), serviceIn(stale, "third"))
	w.Set("west", "", good, nil)
	w.is("west", snapshot.Synced)

	t.Log("and a cluster that was never read has none")
	w.Set("new", "", nil, errors.New("its Secret holds no kubeconfig"))
	assert.Equal(t, "its Secret holds no kubeconfig", w.is("new", snapshot.Unsynced).Reason)
}

func TestAnAPIServerThatDiesFreezesItsCluster(t *testing.T) {
	t.Parallel()
	management := installed(t)
	clusters := sandboxtest.APIServers(t, 2)
	dying, err := clusters[0].Config()
	require.NoError(t, err)
	living, err := clusters[1].Config()
	require.NoError(t, err)
	createService(t, dying, "kept")
	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	w.Set("dying", "", dying, nil)
	w.Set("living", "", living, nil)
	w.is("living", snapshot.Synced)
	before := w.is("dying", snapshot.Synced)

	require.NoError(t, clusters[0].Kill(t.Context(), local.APIServer))
	stale := w.is("dying", snapshot.Stale)
	assert.Contains(t, stale.Reason, dying.Host)
	assert.Contains(t, stale.Reason, "refuses connections")
	assert.Same(t, before.Services[0], stale.Services[0], "the lists stay")
	createService(t, living, "meanwhile")
	w.hasService("living", "meanwhile")

	require.NoError(t, clusters[0].Restart(t.Context(), local.APIServer))
	after := w.is("dying", snapshot.Synced)
	assert.Empty(t, after.Reason)
	assert.Same(t, serviceIn(before, "kept"), serviceIn(after, "kept"), "an object that did not change is the same after the outage")
	createService(t, dying, "later")
	w.hasService("dying", "later")
}

func TestClustersThatNeverAnswerDelayNobody(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	silent := sandboxtest.Listen(t, "127.0.0.1:0") // nobody accepts
	closed := sandboxtest.Address(t)

	w := start(t, management, watch.Options{Namespace: namespace(t, management), Grace: time.Hour})
	w.Set("silent", "", &rest.Config{Host: "https://" + silent.Addr().String()}, nil)
	w.Set("closed", "", &rest.Config{Host: "https://" + closed}, nil)
	w.Set("stranger", "", &rest.Config{Host: config.Host}, nil)
	w.Set("anonymous", "", rest.AnonymousClientConfig(config), nil)
	w.Set("good", "", config, nil)
	w.is("good", snapshot.Synced)
	assert.Equal(t, "https://"+silent.Addr().String()+" does not answer in time", w.is("silent", snapshot.Unsynced).Reason)
	assert.Equal(t, "https://"+closed+" refuses connections", w.is("closed", snapshot.Unsynced).Reason)
	assert.Equal(t, snapshot.ServerUnanswered, w.is("closed", snapshot.Unsynced).Cause)
	assert.Equal(t, "the certificate of "+config.Host+" is signed by an unknown authority", w.is("stranger", snapshot.Unsynced).Reason)
	assert.Equal(t, snapshot.CertificateUntrusted, w.is("stranger", snapshot.Unsynced).Cause)
	forbidden := w.until("a reason", func(i *snapshot.Input) bool { return named(i, "anonymous").Reason != "" })
	assert.Contains(t, named(forbidden, "anonymous").Reason, "is forbidden")
}

func TestStormsCoalesce(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	w.Set("west", "", config, nil)
	w.is("west", snapshot.Synced)
	before := named(w.until("the API server's own Service", func(i *snapshot.Input) bool { return len(named(i, "west").Services) > 0 }), "west")
	drain(w)
	const storm = 1000
	k8s := client(t, config)
	for i := range storm {
		_, err := k8s.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i)}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	waittest.Until(t, "the storm is over", func() bool { return len(named(w.Input(), "west").Nodes) == storm })
	assert.LessOrEqual(t, drain(w), 2, "a thousand changes wake a reader that was busy once")
	after := named(w.Input(), "west")
	assert.Empty(t, before.Nodes, "what was handed out never changes")
	assert.Same(t, before.Services[0], after.Services[0])
}

// drain takes the signals that are there, and counts them.
func drain(w *watched) (signals int) {
	for {
		select {
		case <-w.Changed():
			signals++
		default:
			return signals
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	require.Empty(t, ours())
	source, err := watch.New(watch.Options{Management: management, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	closed := &rest.Config{Host: "https://127.0.0.1:1"}
	for range 3 {
		source.Set("west", "", config, nil)
		source.Set("closed", "", closed, nil)
		w := &watched{Source: source, t: t, log: &logged{}}
		w.is("west", snapshot.Synced)
		source.Remove("west")
		source.Remove("closed")
		waittest.Until(t, "no session is left", func() bool { return sessions() == 0 })
	}
	require.NotEmpty(t, ours())
	cancel()
	require.NoError(t, <-done)
	source.Set("late", "", config, nil)
	waittest.NoError(t, "no goroutine is left", func() error {
		if stacks := ours(); len(stacks) > 0 {
			return fmt.Errorf("there are %v", stacks)
		}
		return nil
	})
}

// sessions counts the goroutines that follow a registered cluster.
func sessions() int {
	count := 0
	for _, stack := range ours() {
		if strings.Contains(stack, "engine/watch.(*session)") {
			count++
		}
	}
	return count
}

// ours are the stacks of goroutines in this package's code, tests left out,
// and in the reflectors that it runs.
func ours() []string {
	buf := make([]byte, 4<<20)
	var found []string
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "engine/watch.(") || strings.Contains(stack, "tools/cache.(") {
			found = append(found, stack)
		}
	}
	return found
}

// register stores a KubernetesCluster.
func register(t *testing.T, management *rest.Config, namespace, name, domain string) {
	t.Helper()
	client, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	clusters := schema.GroupVersionResource{Group: "multicluster.solo.io", Version: "v1alpha1", Resource: "kubernetesclusters"}
	_, err = client.Resource(clusters).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.solo.io/v1alpha1", "kind": "KubernetesCluster",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"clusterDomain": domain},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestRegisteredClustersAreNeverTakenForGone(t *testing.T) {
	t.Parallel()
	management := installed(t)
	ns := namespace(t, management)
	register(t, management, ns, "ghost", "ghost.example")
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)

	synced := make(chan struct{})
	w := start(t, management, watch.Options{Namespace: ns, Grace: 10 * time.Second, RegistrySynced: synced})
	waittest.Until(t, "the ghost is waited for", func() bool { return w.Waiting() == "clusters have not been read: ghost" })
	assert.Nil(t, w.Input(), "the registry has not synced yet")
	w.Set("west", "", config, nil)
	close(synced)
	first := w.until("the first input", func(*snapshot.Input) bool { return true })
	require.Len(t, first.Clusters, 2)
	system, err := sandboxtest.Clientset(t, management).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, string(system.UID), first.Management.ClusterUID)
	assert.Equal(t, &snapshot.Cluster{Name: "ghost", Domain: "ghost.example", Reason: "its kubeconfig Secret has not been read"}, first.Clusters[0])
	assert.Equal(t, snapshot.Synced, first.Clusters[1].Sync, "a cluster that answers is read before the first input")
	assert.Contains(t, w.log.String(), "starting without them")
	assert.Empty(t, w.Waiting())

	w.SetFailures([]snapshot.Failure{{Reason: snapshot.Reason{What: "x"}}})
	second := w.until("a failure", func(i *snapshot.Input) bool { return len(i.Failures) == 1 })
	assert.Same(t, first.Clusters[0], second.Clusters[0])

	once, err := watch.ReadOnce(t.Context(), management, ns)
	require.NoError(t, err)
	require.Len(t, once.Management.KubernetesClusters, 1)
	require.Len(t, once.Clusters, 1)
	assert.Equal(t, "ghost", once.Clusters[0].Name)
	assert.Equal(t, "ghost.example", once.Clusters[0].Domain)
	assert.True(t, once.Clusters[0].Frozen())
	require.NoError(t, watch.CheckCRDs(t.Context(), management))
}

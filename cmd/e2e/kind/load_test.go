package kind

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

func (d *running) config(t *testing.T, cluster string) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: d.kubeconfig()}, &clientcmd.ConfigOverrides{CurrentContext: contextOf(cluster)}).ClientConfig()
	require.NoError(t, err)
	return config
}

// load sends requests to services of both clusters until it is stopped, which returns how many there
// were, and those that were not answered as they should be.
func (d *running) load(t *testing.T) (stop func() (sent int, wrong []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		mu    sync.Mutex
		all   sync.WaitGroup
		sent  int
		wrong []string
		first = make(chan struct{})
		once  sync.Once
	)
	for _, url := range []string{"http://reviews:9080/reviews/1", "http://details:9080/details/1"} {
		all.Go(func() {
			call := app.Call{URL: url, Rate: 25, Parallel: 5, EveryMs: 200}
			err := demo.Send(ctx, d.options, "productpage-v1", call, func(traffic demo.Traffic) {
				mu.Lock()
				defer mu.Unlock()
				sent += traffic.Requests
				for _, a := range traffic.Answers {
					once.Do(func() { close(first) })
					if a.Status != 200 {
						wrong = append(wrong, fmt.Sprintf("%s: %d x %d %s", url, a.Count, a.Status, a.Error))
					}
				}
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, err.Error())
			}
		})
	}
	select {
	case <-first:
	case <-t.Context().Done():
		require.NoError(t, t.Context().Err())
	}
	return func() (int, []string) {
		cancel()
		all.Wait()
		return sent, wrong
	}
}

// written are the kinds that meshctl writes for Istio.
var written = []schema.GroupVersionResource{
	kube.Networking("virtualservices"), kube.Networking("destinationrules"), kube.Networking("serviceentries"),
	kube.Networking("gateways"), {Group: "networking.istio.io", Version: "v1alpha3", Resource: "envoyfilters"}, kube.Security("authorizationpolicies"),
}

// history is what happened to the objects of these kinds.
type history struct {
	mu sync.Mutex
	// writes are changes, faults what should not happen: deletions, and writes that change nothing.
	writes int
	faults []string
}

// record watches the objects in both clusters until the test ends.
func (d *running) record(t *testing.T) *history {
	t.Helper()
	h := &history{}
	timed, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	for _, cluster := range clusters {
		client, err := dynamic.NewForConfig(d.config(t, cluster))
		require.NoError(t, err)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		for _, kind := range written {
			_, err := factory.ForResource(kind).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(before, after any) { h.changed(cluster, before, after) },
				DeleteFunc: func(object any) { h.fault("%s: %s was deleted", cluster, nameOf(object)) },
			})
			require.NoError(t, err)
		}
		factory.Start(t.Context().Done())
		for kind, synced := range factory.WaitForCacheSync(timed.Done()) {
			require.True(t, synced, kind)
		}
	}
	return h
}

func (h *history) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

func (h *history) changed(cluster string, before, after any) {
	old, ok1 := before.(*unstructured.Unstructured)
	now, ok2 := after.(*unstructured.Unstructured)
	if !ok1 || !ok2 || old.GetResourceVersion() == now.GetResourceVersion() {
		return // the informer has read it again
	}
	if reflect.DeepEqual(essence(old), essence(now)) {
		h.fault("%s: %s was written, but not changed", cluster, nameOf(now))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes++
}

// essence is an object without what the API server adds to each write.
func essence(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	o.SetGeneration(0)
	return o.Object
}

func nameOf(object any) string {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Sprintf("%T", object)
	}
	return strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
}

// seen returns what happened so far.
func (h *history) seen() (writes int, faults []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writes, append([]string(nil), h.faults...)
}

package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// ratingsElsewhere is the host name of a service of the second cluster in the first one.
const ratingsElsewhere = "ratings.bookinfo.svc.cluster-2.global"

// whose checks that callers of another cluster accept only certificates of the service
// accounts behind a service, and that they lose no request while those change.
func whose(t *testing.T, e *environment) {
	t.Helper()
	t.Run("of another service", func(t *testing.T) { foreign(t, e) })
	t.Run("of a new account", func(t *testing.T) { newAccount(t, e) })
}

// foreign leads connections for a service to a pod of another one, which the caller may
// call and which has a certificate of the common root.
func foreign(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	const right, wrong = "cluster-2 ratings-v1", "cluster-2 reviews-v1"
	call := app.Call{URL: "http://" + ratingsElsewhere + ":9080", Count: 20}
	waittest.NoError(t, "the service answers", func() error { return e.allAre(t.Context(), from, call, right) })
	written := e.named(t, ratingsElsewhere)
	e.pause(t)
	e.patchEntry(t, "cluster-2", "replace", "/spec/endpoints/0/address", e.pod(t, "cluster-2", "reviews-v1").IP)
	e.patchEntry(t, "cluster-1", "add", "/spec/subjectAltNames", []string{identity("bookinfo-reviews")})
	waittest.NoError(t, "the other pod can be reached", func() error { return e.allAre(t.Context(), from, call, wrong) })
	e.patchEntry(t, "cluster-1", "add", "/spec/subjectAltNames", written)
	waittest.NoError(t, "with the names that meshctl wrote, it is refused", func() error {
		all, err := e.send(t.Context(), from, call)
		if n := countIf(all, func(name string) bool { return strings.Contains(name, "remote connection failure") }); err == nil && n != call.Count {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
	e.signalServe(t, syscall.SIGCONT)
	waittest.NoError(t, "the service answers again", func() error { return e.allAre(t.Context(), from, call, right) })
}

// identity is that of a service account of the demo's second cluster.
func identity(account string) string {
	return "spiffe://cluster-2.example/ns/bookinfo/sa/" + account
}

// patchEntry changes a value in the ServiceEntry of the service in a cluster: in its own,
// it is for gateways, and in the other one for callers.
func (e *environment) patchEntry(t *testing.T, cluster, operation, path string, value any) {
	t.Helper()
	config, err := e.clusters[cluster].Config()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	patch, err := json.Marshal([]map[string]any{{"op": operation, "path": path, "value": value}})
	require.NoError(t, err)
	_, err = client.Resource(kube.Networking("serviceentries")).Namespace("istio-system").Patch(t.Context(), ratingsElsewhere,
		types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "liar"})
	require.NoError(t, err)
}

// newAccount rolls out a workload with another service account, and back, while callers
// of another cluster send requests.
func newAccount(t *testing.T, e *environment) {
	t.Helper()
	const before, after = "bookinfo-ratings", "bookinfo-ratings-next"
	w := e.workload(t, "cluster-2", "ratings-v1")
	require.NoError(t, w.client(t).ApplyYAML(t.Context(), []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+after+", namespace: bookinfo}\n")))
	pods := w.become(t, 1)
	l := e.under(t, e.pod(t, "cluster-1", "productpage-v1"), "http://"+ratingsElsewhere+":9080", 200)
	w.answers(t, pods...)
	for _, account := range []string{after, before, after, before} {
		require.NoError(t, unstructured.SetNestedField(w.object.Object, account, "spec", "template", "spec", "serviceAccountName"))
		require.NoError(t, w.client(t).Apply(t.Context(), w.object))
		pods = w.become(t, 1, pods...)
		w.answers(t, pods...)
		waittest.NoError(t, "callers accept "+account+" only", func() error {
			if got := e.named(t, ratingsElsewhere); !slices.Equal(got, []string{identity(account)}) {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
	}
	assert.Greater(t, l.clean(t), 1000)
}

// named are the identities that callers in the first cluster accept from a host.
func (e *environment) named(t *testing.T, host string) []string {
	t.Helper()
	entry, err := e.management.Get(t.Context(), kube.Networking("serviceentries"), "istio-system", host)
	require.NoError(t, err)
	names, _, err := unstructured.NestedStringSlice(entry.Object, "spec", "subjectAltNames")
	require.NoError(t, err)
	return names
}

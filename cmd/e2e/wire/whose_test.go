package wire

import (
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

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
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
	url := "http://" + ratingsElsewhere + ":9080"
	waittest.NoError(t, "the service answers", func() error {
		return e.allAre(t.Context(), from, proxies.Call{URL: url, Count: 20}, right)
	})
	e.pause(t)
	e.leads(t, e.pod(t, "cluster-2", "reviews-v1").IP)
	waittest.NoError(t, "the other pod is refused for its certificate", func() error {
		all, err := e.send(t.Context(), from, proxies.Call{URL: url, Count: 20})
		if err != nil {
			return err
		}
		require.Zero(t, all[wrong], "%v", all)
		if all[right] > 0 {
			e.disconnect(t, e.pod(t, "cluster-2", "ratings-v1"))
		}
		if n := countIf(all, func(name string) bool { return strings.Contains(name, "CERTIFICATE_VERIFY_FAILED") }); n != 20 {
			return fmt.Errorf("%v", all)
		}
		t.Logf("%v", all)
		return nil
	})
	e.signalServe(t, syscall.SIGCONT)
	waittest.NoError(t, "the service answers again", func() error {
		return e.allAre(t.Context(), from, proxies.Call{URL: url, Count: 20}, right)
	})
}

// disconnect ends the connections to a pod, which callers keep although gateways do not
// lead there any more. Its proxy is restarted.
func (e *environment) disconnect(t *testing.T, pod proxies.Pod) {
	t.Helper()
	if agent := programs(t, e.folder(pod))["agent"]; agent != 0 {
		kill(t, agent)
	}
}

// leads makes the gateways of the second cluster pass connections for the service on to
// another address.
func (e *environment) leads(t *testing.T, address string) {
	t.Helper()
	config, err := e.clusters["cluster-2"].Config()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/endpoints/0/address", "value": %q}]`, address)
	_, err = client.Resource(kube.Networking("serviceentries")).Namespace("istio-system").Patch(t.Context(), ratingsElsewhere,
		types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "liar"})
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
	for _, account := range []string{after, before} {
		require.NoError(t, unstructured.SetNestedField(w.object.Object, account, "spec", "template", "spec", "serviceAccountName"))
		require.NoError(t, w.client(t).Apply(t.Context(), w.object))
		pods = w.become(t, 1, pods...)
		w.answers(t, pods...)
		waittest.NoError(t, "callers accept "+account+" only", func() error {
			if got := e.named(t, ratingsElsewhere); !slices.Equal(got, []string{"spiffe://cluster.local/ns/bookinfo/sa/" + account}) {
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

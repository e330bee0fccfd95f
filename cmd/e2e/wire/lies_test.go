package wire

import (
	"context"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// lies changes what meshctl wrote while it is paused: the checks of this package
// notice, so they can fail. When it goes on, it corrects the objects, and requests get
// again what the policies say.
func lies(t *testing.T, e *environment) {
	t.Helper()
	e.during(t, `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: field, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}
  policy: {retries: {attempts: 2, perTryTimeout: 400ms}}
`)
	page, details := e.pod(t, "cluster-1", "productpage-v1"), e.pod(t, "cluster-1", "details-v1")
	for _, lie := range []struct {
		name   string
		kind   schema.GroupVersionResource
		object string
		patch  string
		check  func(context.Context) error
		// notices is what the check says then.
		notices string
	}{
		{
			"weight", kube.Networking("virtualservices"), "reviews",
			`[{"op": "replace", "path": "/spec/http/0/route/0/weight", "value": 55}, {"op": "replace", "path": "/spec/http/0/route/1/weight", "value": 35}]`,
			func(ctx context.Context) error { return e.shares(ctx, page) },
			`of 2000, want 1500`,
		},
		{
			"retries", kube.Networking("virtualservices"), "details",
			`[{"op": "replace", "path": "/spec/http/0/retries/attempts", "value": 1}, {"op": "replace", "path": "/spec/http/1/retries/attempts", "value": 1}]`,
			func(ctx context.Context) error { return retries(ctx, target{e, page, "http://details:9080"}) },
			`status 50[34], want 200|there were 2`,
		},
		{
			"anyone", kube.Security("authorizationpolicies"), "ratings",
			`[{"op": "remove", "path": "/spec/rules/0/from"}]`,
			func(ctx context.Context) error {
				return target{e, details, "http://ratings:9080"}.want(ctx, 403, app.Call{})
			},
			`status 200, want 403`,
		},
	} {
		check := func() error { return lie.check(t.Context()) }
		waittest.NoError(t, lie.name+": the truth", check)
		e.pause(t)
		e.patch(t, "cluster-1", lie.kind, lie.object, lie.patch)
		waittest.Until(t, lie.name+": the check notices the lie", func() bool {
			err := check()
			if err != nil {
				t.Logf("%s: %v", lie.name, err)
			}
			return err != nil && regexp.MustCompile(lie.notices).MatchString(err.Error())
		})
		e.signalServe(t, syscall.SIGCONT)
		waittest.NoError(t, lie.name+": corrected", check)
	}
}

// pause stops serve until the test continues it or ends.
func (e *environment) pause(t *testing.T) {
	t.Helper()
	e.signalServe(t, syscall.SIGSTOP)
	t.Cleanup(func() { e.signalServe(t, syscall.SIGCONT) })
}

func (e *environment) signalServe(t *testing.T, signal os.Signal) {
	t.Helper()
	report, err := demo.Status(context.WithoutCancel(t.Context()), e.options)
	require.NoError(t, err)
	process, err := os.FindProcess(report.Serve.PID)
	require.NoError(t, err)
	require.NoError(t, process.Signal(signal))
}

// patch changes the one object of a kind in namespace bookinfo whose name begins
// with a prefix.
func (e *environment) patch(t *testing.T, cluster string, kind schema.GroupVersionResource, prefix, patch string) {
	t.Helper()
	config, err := e.clusters[cluster].Config()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	objects := client.Resource(kind).Namespace("bookinfo")
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].GetName(), prefix) {
			names = append(names, list.Items[i].GetName())
		}
	}
	require.Len(t, names, 1, "%s that begin with %s", kind.Resource, prefix)
	_, err = objects.Patch(t.Context(), names[0], types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "liar"})
	require.NoError(t, err)
}

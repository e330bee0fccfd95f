package dashboard

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
)

// TestWhatIsInForce: with no server, what somebody changed in a cluster stays in force, and
// the dashboard says so; it follows the Lease, and what was written.
func TestWhatIsInForce(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	for _, manifests := range []string{virtualServices, aMesh, trafficPolicy("requestTimeout: 1s")} {
		sandboxtest.Apply(t, config, []byte(manifests))
	}
	source := startLive(t, config)
	var policy *explain.Policy
	var serving *snapshot.Serving
	until := func(what string, say func(n *tui.Update) bool) *explain.Index {
		t.Helper()
		t.Log(what)
		return await(t, source, func(n *tui.Update) bool {
			if n.Index == nil {
				return false
			}
			policy, _ = n.Index.Describe(patient).(*explain.Policy)
			serving = n.Serving
			return policy != nil && serving != nil && say(n)
		}).Index
	}
	leads := func() bool {
		leads, _ := serving.At(source.opts.factory.Now())
		return leads
	}
	options := serve.Options{Management: config, LeaderElect: true, Log: slog.New(slog.DiscardHandler)}
	stop := startServerWith(t, options)
	until("a server leads", func(*tui.Update) bool { return leads() && policy.State == "ACCEPTED" })
	assert.Empty(t, policy.Drifts)

	stop()
	index := until("none does", func(*tui.Update) bool { return !leads() })
	assert.Equal(t, snapshot.NotServed, index.Issues()[0].Code)
	require.Equal(t, "ACCEPTED", string(policy.State), "what was written is still in force")

	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	routes := client.Resource(snapshot.VirtualService.GroupVersionResource()).Namespace("bookinfo")
	_, err = routes.Patch(t.Context(), "reviews", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/http/0/timeout","value":"9s"}]`),
		metav1.PatchOptions{FieldManager: "kubectl-patch"})
	require.NoError(t, err)
	index = until("what is in force differs", func(*tui.Update) bool { return policy.State == explain.StateDiffers })
	require.Len(t, policy.Drifts, 1)
	assert.Equal(t, []snapshot.DriftField{{Path: "spec.http[0].timeout", InForce: "9s", Wanted: "1s"}}, policy.Drifts[0].Fields)
	assert.Equal(t, "kubectl-patch", policy.Drifts[0].By)
	destination, ok := index.Describe(index.Find(snapshot.Destination, "reviews")[0]).(*explain.Destination)
	require.True(t, ok)
	assert.Equal(t, policy.Drifts, destination.Drifts, "so says the service")
	assert.Equal(t, "Not in force as it should be", destination.Page().Sections[1].Title)

	stop = startServerWith(t, options)
	until("a server has put it right", func(*tui.Update) bool { return leads() && policy.State == "ACCEPTED" })
	stop()
	require.NoError(t, routes.Delete(t.Context(), "reviews", metav1.DeleteOptions{}))
	until("it is not there", func(*tui.Update) bool { return policy.State == explain.StateDiffers })
	assert.Equal(t, snapshot.DriftMissing, policy.Drifts[0].State)
}

package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// relayDemo is a demo whose cluster-2 is reached through its agent.
type relayDemo struct {
	t    *testing.T
	opts demo.Options
	// here reaches the management cluster without meshctl, and there cluster-2.
	here, there dynamic.Interface

	mu sync.Mutex
	// removed are the objects of meshctl that were deleted in one of them, and damaged the UIDs of those that the test deletes.
	removed []string
	damaged map[types.UID]bool
}

// startRelayDemo starts a demo whose cluster-2 is reached through its agent.
func startRelayDemo(t *testing.T) *relayDemo {
	t.Helper()
	buildHelper(t)
	d := &relayDemo{
		t: t, opts: demo.Options{Dir: filepath.Join(t.TempDir(), "demo"), Meshctl: sandboxtest.Meshctl(t), Relay: true}, damaged: map[types.UID]bool{},
	}
	t.Cleanup(func() {
		if err := demo.Down(context.Background(), d.opts); err != nil && !errors.Is(err, demo.ErrNotRunning) {
			t.Errorf("stopping the demo: %v", err)
		}
	})
	require.NoError(t, demo.Up(t.Context(), d.opts))
	d.here, d.there = d.client("cluster-1"), d.client("cluster-2")
	assert.Equal(t, "connected", d.state())
	d.meshctl("cluster", "verify", "cluster-2")
	d.watch()
	return d
}

func (d *relayDemo) client(cluster string) dynamic.Interface {
	d.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(d.opts.Dir, cluster, "kubeconfig"))
	require.NoError(d.t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(d.t, err)
	return client
}

// ends checks that nothing was deleted, and stops the demo.
func (d *relayDemo) ends() {
	d.t.Helper()
	d.mu.Lock()
	assert.Empty(d.t, d.removed, "objects were deleted")
	d.mu.Unlock()
	require.NoError(d.t, demo.Down(d.t.Context(), d.opts))
	requireNoProcess(d.t, d.opts.Dir)
	assert.NoDirExists(d.t, d.opts.Dir)
}

// TestRelay: cluster-2 is joined by its agent. Requests go on while the agent is cut off, while the management plane is gone, and while the
// cluster is moved to a direct connection and back; what is damaged meanwhile is repaired, and nothing is deleted.
// Not parallel: it starts two clusters.
func TestRelay(t *testing.T) {
	shard.Only(t, shard.Demo)
	d := startRelayDemo(t)
	ended := d.load()

	t.Log("the agent is cut off")
	changed, err := demo.BreakRelay(d.opts, demo.RelayFault{Cut: true})
	require.NoError(t, err)
	assert.True(t, changed)
	waittest.Until(t, "the list says that the agent is lost", func() bool { return d.state() == "lost" })
	d.damage()
	_, err = demo.BreakRelay(d.opts, demo.RelayFault{})
	require.NoError(t, err)
	waittest.Until(t, "the agent is back", func() bool { return d.state() == "connected" })

	t.Log("the management plane is gone")
	crashServe(t, d.opts)
	d.damage()
	require.NoError(t, demo.Up(t.Context(), d.opts))
	waittest.Until(t, "the agent is back", func() bool { return d.state() == "connected" })

	t.Log("the cluster is dialled, and joined by its agent again")
	at := []string{"--remote-context", "cluster-2", "--mgmt-context", "cluster-1"}
	d.meshctl(append([]string{"cluster", "register", "cluster-2"}, at...)...)
	waittest.Until(t, "the cluster is dialled", func() bool { return d.state() == "healthy" })
	d.meshctl(append([]string{"cluster", "register", "cluster-2", "--relay", "--relay-server", d.address()}, at...)...)
	waittest.Until(t, "the agent is back", func() bool { return d.state() == "connected" })
	d.meshctl("cluster", "verify", "cluster-2")

	ended()
	d.ends()
}

// meshctl runs the binary like a user of the demo.
func (d *relayDemo) meshctl(args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), d.opts.Meshctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(d.opts.Dir, "kubeconfig"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(d.t, err, "meshctl %s: %s", strings.Join(args, " "), stderr.String())
	return string(out)
}

// state is that of cluster-2 in the list of clusters.
func (d *relayDemo) state() string {
	d.t.Helper()
	for line := range strings.Lines(d.meshctl("cluster", "list")) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "cluster-2" {
			if fields[1] != "relay" && fields[1] != "direct" {
				return fields[1] // no cluster is reached through an agent, so that there is no column
			}
			return fields[2]
		}
	}
	return ""
}

// address is where the agent dials.
func (d *relayDemo) address() string {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.opts.Dir, "state.json"))
	require.NoError(d.t, err)
	var state struct {
		Relay struct {
			Address string `json:"address"`
		} `json:"relay"`
	}
	require.NoError(d.t, json.Unmarshal(raw, &state))
	return state.Relay.Address
}

// writtenKinds are those of the objects that meshctl writes in the clusters of the demo.
func writtenKinds() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		kube.Networking("serviceentries"), kube.Networking("gateways"), kube.Networking("virtualservices"), kube.Networking("destinationrules"),
		kube.Networking("sidecars"), kube.Security("authorizationpolicies"), {Group: "networking.istio.io", Version: "v1alpha3", Resource: "envoyfilters"},
		{Group: "certificates.mesh.gloo.solo.io", Version: "v1", Resource: "issuedcertificates"},
	}
}

// watch notes the deletions of objects of meshctl but those that the test makes.
func (d *relayDemo) watch() {
	d.t.Helper()
	for cluster, client := range map[string]dynamic.Interface{"cluster-1": d.here, "cluster-2": d.there} {
		for _, kind := range writtenKinds() {
			events, err := client.Resource(kind).Watch(d.t.Context(), metav1.ListOptions{LabelSelector: "owner.networking.mesh.gloo.solo.io"})
			require.NoError(d.t, err)
			d.t.Cleanup(events.Stop)
			go func() {
				for e := range events.ResultChan() {
					if o, isObject := e.Object.(*unstructured.Unstructured); isObject && e.Type == apiwatch.Deleted {
						d.gone(cluster, kind, o)
					}
				}
			}()
		}
	}
}

func (d *relayDemo) gone(cluster string, kind schema.GroupVersionResource, o *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.damaged[o.GetUID()] {
		d.removed = append(d.removed, cluster+" "+kind.Resource+" "+o.GetNamespace()+"/"+o.GetName())
	}
}

// damage deletes a DestinationRule, and waits until somebody has written it again.
func (d *relayDemo) damage() {
	d.t.Helper()
	rules := d.there.Resource(kube.Networking("destinationrules")).Namespace("bookinfo")
	before, err := rules.Get(d.t.Context(), "reviews", metav1.GetOptions{})
	require.NoError(d.t, err)
	d.mu.Lock()
	d.damaged[before.GetUID()] = true
	d.mu.Unlock()
	require.NoError(d.t, rules.Delete(d.t.Context(), "reviews", metav1.DeleteOptions{}))
	waittest.Until(d.t, "it is written again", func() bool {
		now, err := rules.Get(d.t.Context(), "reviews", metav1.GetOptions{})
		return err == nil && now.GetUID() != before.GetUID()
	})
}

// load sends requests between the clusters until the function that it returns is called, and checks what became of them. It needs nothing
// where proxies cannot run.
func (d *relayDemo) load() (end func()) {
	d.t.Helper()
	if _, err := proxies.Prepare(d.t.Context(), helper.Progress{}); errors.Is(err, proxies.ErrUnavailable) && os.Getenv("CI") != "true" {
		d.t.Logf("no requests are sent: %v", err)
		return func() {}
	}
	ctx, stop := context.WithCancel(d.t.Context())
	var last demo.Traffic
	ended := make(chan error, 1)
	go func() {
		call := app.Call{URL: "http://reviews:9080/reviews/1", Parallel: 2, Rate: 20}
		ended <- demo.Send(ctx, d.opts, "productpage-v1", call, func(traffic demo.Traffic) { last = traffic })
	}()
	return func() {
		stop()
		if err := <-ended; err != nil {
			require.ErrorIs(d.t, err, context.Canceled)
		}
		total := 0
		for _, answer := range last.Answers {
			assert.Equal(d.t, http.StatusOK, answer.Status, "%+v", answer)
			total += answer.Count
		}
		d.t.Logf("%d requests", total)
		assert.Greater(d.t, total, 100)
	}
}

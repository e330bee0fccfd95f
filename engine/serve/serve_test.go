package serve

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/watch"
)

// replica is a Run under way.
type replica struct {
	t   testing.TB
	log *sandboxtest.Buffer
	// metrics and debug are URLs; token lets requests through to debug.
	metrics, debug, token string
	cancel                context.CancelFunc
	ended                 chan error
}

// start runs a replica until the test ends.
func start(t testing.TB, management *rest.Config, identity string, change ...func(*Options)) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &replica{t: t, log: &sandboxtest.Buffer{}, cancel: cancel, ended: make(chan error, 1)}
	listening := make(chan [2]net.Addr, 1)
	o := Options{
		Management: management, MetricsBind: "127.0.0.1:0", DebugBind: "127.0.0.1:0", LeaderElect: true, identity: identity, probeInterval: time.Second,
		Log:      slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnListen: func(metrics, debug net.Addr) { listening <- [2]net.Addr{metrics, debug} },
		// A busy machine may take longer than a short Lease lasts.
		lease: leaseTimes{length: 60 * time.Second, renew: 30 * time.Second, retry: 500 * time.Millisecond},
	}
	for _, c := range change {
		c(&o)
	}
	go func() { r.ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Logf("log of %s:\n%s", identity, r.log)
		}
	})
	select {
	case a := <-listening:
		r.metrics, r.debug = "http://"+a[0].String(), "http://"+a[1].String()
	case err := <-r.ended:
		require.FailNow(t, "it ended", "%v", err)
	case <-time.After(waittest.Limit()):
		require.FailNow(t, "it does not listen")
	}
	return r
}

// stop ends the replica as SIGTERM does, and returns what Run said and after how long.
func (r *replica) stop() (time.Duration, error) {
	r.t.Helper()
	began := time.Now()
	r.cancel()
	select {
	case err := <-r.ended:
		return time.Since(began), err
	case <-time.After(waittest.Limit()):
		require.FailNow(r.t, "it does not end")
		return 0, nil
	}
}

// get reads metrics and health; inspect a debug endpoint, with the token of the replica.
func (r *replica) get(path string) (int, string) { r.t.Helper(); return r.read(r.metrics+path, "") }

func (r *replica) inspect(path string) (int, string) {
	r.t.Helper()
	return r.read(r.debug+path, r.token)
}

func (r *replica) read(url, token string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, url, nil)
	require.NoError(r.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return response.StatusCode, string(body)
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	waittest.Until(t, what, condition)
}

// world is n clusters with Istio and bookinfo, all registered with the first.
func world(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	clusters := unregistered(t, n)
	for _, c := range clusters {
		register(t, c, clusters[0])
	}
	return clusters
}

// unregistered is n clusters with Istio and bookinfo.
func unregistered(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	clusters := sandboxtest.Clusters(t, n)
	var group errgroup.Group
	for _, c := range clusters {
		group.Go(func() error {
			if err := c.InstallIstio(t.Context(), local.IstioOptions{}); err != nil {
				return err
			}
			client, err := c.Client()
			if err != nil {
				return err
			}
			return manifests.InstallBookinfo(t.Context(), client, c.Name())
		})
	}
	require.NoError(t, group.Wait())
	return clusters
}

func register(t testing.TB, c, management *local.Cluster) {
	t.Helper()
	_, err := registration.Register(t.Context(), registration.Options{
		Name: c.Name(), RemoteConfig: configOf(t, c), MgmtConfig: configOf(t, management), TokenTTL: 10 * time.Minute,
	})
	require.NoError(t, err)
}

func configOf(t testing.TB, c *local.Cluster) *rest.Config {
	t.Helper()
	config, err := c.Config()
	require.NoError(t, err)
	return config
}

func clientOf(t testing.TB, c *local.Cluster) *kube.Client {
	t.Helper()
	client, err := c.Client()
	require.NoError(t, err)
	return client
}

// routes are the weights of the only route of a VirtualService, or none.
func routes(t *testing.T, client *kube.Client) []int64 {
	t.Helper()
	object, err := client.Get(t.Context(), kube.Networking("virtualservices"), "bookinfo", "reviews")
	if err != nil {
		return nil
	}
	http, _, err := unstructured.NestedSlice(object.Object, "spec", "http")
	require.NoError(t, err)
	var weights []int64
	for _, route := range http {
		destinations, _, err := unstructured.NestedSlice(route.(map[string]any), "route")
		require.NoError(t, err)
		for _, d := range destinations {
			weight, _, err := unstructured.NestedInt64(d.(map[string]any), "weight")
			require.NoError(t, err)
			weights = append(weights, weight)
		}
	}
	return weights
}

func TestServe(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	clusters := world(t, 2)
	management := configOf(t, clusters[0])
	client := clientOf(t, clusters[0])
	exported, ended := make(chan prometheus.Gatherer, 1), make(chan struct{})
	first := start(t, management, "first", func(o *Options) {
		o.Export = func(ctx context.Context, identity string, metrics prometheus.Gatherer) {
			defer close(ended)
			assert.Equal(t, "first", identity)
			exported <- metrics
			<-ctx.Done()
		}
	})
	guarded(t, first, management)

	t.Log("it becomes ready, and finds what is there")
	until(t, "ready", func() bool { code, _ := first.get("/readyz"); return code == http.StatusOK })
	until(t, "discovered", func() bool {
		meshes, err := client.List(t.Context(), kube.Discovery("meshes"), "gloo-mesh")
		require.NoError(t, err)
		return len(meshes) == 2
	})

	t.Log("policies become Istio's objects")
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.VirtualMesh()))
	require.NoError(t, client.ApplyYAML(t.Context(), manifests.Policies()))
	until(t, "three routes", func() bool { return len(routes(t, client)) == 3 })
	assert.ElementsMatch(t, []int64{75, 15, 10}, routes(t, client))
	until(t, "settled", func() bool {
		_, metrics := first.get("/metrics")
		return strings.Contains(metrics, "meshctl_edit_seconds_count") && strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-1"} 0`)
	})
	_, metrics := first.get("/metrics")
	for _, line := range []string{
		"meshctl_leader 1", `meshctl_cluster_sync{cluster="cluster-2",state="synced"} 1`,
		`meshctl_objects{cluster="cluster-1",kind="VirtualService"}`, "meshctl_translate_seconds_count",
		`meshctl_credential_expiry_timestamp_seconds{cluster="cluster-2"}`, `meshctl_parts_total{result="reused"}`,
		"meshctl_apply_changes_total",
	} {
		assert.Contains(t, metrics, line)
	}
	families, err := (<-exported).Gather()
	require.NoError(t, err)
	for _, name := range []string{"meshctl_leader", "meshctl_apply_changes_total"} { // of the process, and of the term
		assert.True(t, slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name }), "%s is exported", name)
	}
	edit(t, client)
	assert.Contains(t, first.log.String(), `cause="TrafficPolicy gloo-mesh/reviews-shift`)

	t.Log("another replica stands by")
	second := start(t, management, "second")
	second.token = first.token
	until(t, "standing by", func() bool {
		_, text := second.get("/readyz")
		return strings.Contains(text, "standing by; the leader is first")
	})
	code, _ := second.inspect("/debug/snapshot")
	assert.Equal(t, http.StatusServiceUnavailable, code)

	t.Log("a cluster that dies is frozen; nothing is collected")
	require.NoError(t, clusters[1].Kill(t.Context(), local.APIServer))
	until(t, "stale", func() bool { return syncOf(first, "cluster-2") == "stale" })
	assert.Len(t, routes(t, client), 3)
	require.NoError(t, clusters[1].Restart(t.Context(), local.APIServer))
	until(t, "synced", func() bool { return syncOf(first, "cluster-2") == "synced" })
	assert.Len(t, routes(t, client), 3)

	t.Log("it ends cleanly, and the other one takes over at once")
	took, err := first.stop()
	require.NoError(t, err)
	assert.Less(t, took, 2*waittest.Soon(), "Kubernetes would kill it")
	select {
	case <-ended:
	default:
		assert.Fail(t, "metrics are exported until the end")
	}
	until(t, "taken over", func() bool { _, text := second.get("/readyz"); return text == "ok\n" })
	until(t, "quiet", func() bool {
		_, body := second.inspect("/debug/snapshot?part=output")
		return strings.Contains(body, `"reviews"`)
	})
	assert.Len(t, routes(t, client), 3)
	assert.NotContains(t, second.log.String(), "configured=1", "the next one has nothing to write")

	logs := first.log.String() + second.log.String()
	noSecrets(t, management, logs+metrics)
	assert.NotContains(t, logs, first.token)
}

// guarded checks that only a token with the right to it reads a debug endpoint, and
// gives the replica such a token.
func guarded(t *testing.T, r *replica, management *rest.Config) {
	t.Helper()
	t.Log("debug endpoints need a token")
	const path = "/debug/snapshot"
	r.token = sandboxtest.Token(t, management, sandboxtest.MayGet(path))
	without := sandboxtest.Token(t, management)
	assert.Regexp(t, `^http://127\.0\.0\.1:`, r.debug)
	code, text := r.get(path)
	assert.Equal(t, http.StatusNotFound, code, "the address of metrics: %s", text)
	code, text = r.read(r.debug+path, "")
	assert.Equal(t, http.StatusUnauthorized, code, text)
	code, text = r.read(r.debug+path, "e30.e30.e30")
	assert.Equal(t, http.StatusUnauthorized, code, text)
	code, text = r.read(r.debug+path, without)
	assert.Equal(t, http.StatusForbidden, code, text)
	until(t, "allowed", func() bool {
		code, _ := r.inspect(path)
		return code != http.StatusForbidden
	})
	until(t, "the first translation", func() bool { code, text = r.inspect(path + "?part=input"); return code == http.StatusOK })
	assert.Contains(t, text, `"clusters"`)
	code, text = r.inspect("/debug/other")
	assert.Equal(t, http.StatusForbidden, code, "another path: %s", text)
}

// edit changes a weight and waits for it to arrive.
func edit(t *testing.T, client *kube.Client) {
	t.Helper()
	policies := strings.Replace(strings.Replace(string(manifests.Policies()), "weight: 75", "weight: 70", 1), "weight: 15", "weight: 20", 1)
	began := time.Now()
	require.NoError(t, client.ApplyYAML(t.Context(), []byte(policies)))
	until(t, "the edit", func() bool {
		w := routes(t, client)
		return len(w) == 3 && w[0]+w[1]+w[2] == 100 && (w[0] == 70 || w[1] == 70 || w[2] == 70)
	})
	t.Logf("edit: %s", time.Since(began))
}

// syncOf is the state of a cluster as /debug/snapshot tells it.
func syncOf(r *replica, name string) string {
	r.t.Helper()
	_, body := r.inspect("/debug/snapshot?part=input")
	var input struct{ Clusters []struct{ Name, Sync string } }
	require.NoError(r.t, json.Unmarshal([]byte(body), &input))
	for _, c := range input.Clusters {
		if c.Name == name {
			return c.Sync
		}
	}
	return ""
}

// steal takes the Lease by force.
func steal(t *testing.T, management *rest.Config) {
	t.Helper()
	api, err := kubernetes.NewForConfig(management)
	require.NoError(t, err)
	leases := api.CoordinationV1().Leases("gloo-mesh")
	until(t, "stolen", func() bool {
		lease, err := leases.Get(t.Context(), cluster.LeaseName, metav1.GetOptions{})
		require.NoError(t, err)
		lease.Spec.HolderIdentity = new("thief")
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err == nil
	})
}

// noSecrets checks that a text has nothing of the stored credentials.
func noSecrets(t *testing.T, management *rest.Config, text string) {
	t.Helper()
	api, err := kubernetes.NewForConfig(management)
	require.NoError(t, err)
	secrets, err := api.CoreV1().Secrets("gloo-mesh").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	checked := 0
	for _, s := range secrets.Items {
		for line := range strings.Lines(string(s.Data[cluster.SecretKey])) {
			if _, token, ok := strings.Cut(line, "token: "); ok {
				checked++
				assert.NotContains(t, text, strings.TrimSpace(token))
			}
		}
	}
	assert.Equal(t, 2, checked)
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	management := sandboxtest.APIServer(t)
	err := Run(t.Context(), Options{Management: management})
	var missing *watch.MissingCRDsError
	require.ErrorAs(t, err, &missing)

	_, err = registration.InstallCRDs(t.Context(), management)
	require.NoError(t, err)
	taken := sandboxtest.Listen(t, "127.0.0.1:0")
	err = Run(t.Context(), Options{Management: management, MetricsBind: taken.Addr().String()})
	require.ErrorContains(t, err, "choose another address with --metrics-bind")
	err = Run(t.Context(), Options{Management: management, DebugBind: taken.Addr().String()})
	require.ErrorContains(t, err, "choose another address with --debug-bind")
	require.Error(t, Run(t.Context(), Options{}))
}

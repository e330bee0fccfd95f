package serve

import (
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
)

// incidents is two clusters in which what happened to others happens; see incidents.md.
type incidents struct {
	*testing.T
	// whole is the test of all incidents, which a replica may outlive one of.
	whole         *testing.T
	clusters      []*local.Cluster
	client, other *kube.Client
	serve         *replica
	edits         int
}

func TestIncidents(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	clusters := unregistered(t, 2)
	n := &incidents{T: t, whole: t, clusters: clusters, client: clientOf(t, clusters[0]), other: clientOf(t, clusters[1])}
	register(t, clusters[0], clusters[0])
	n.start()
	//nolint:paralleltest // one after another: they share the clusters
	for _, incident := range []struct {
		name   string
		happen func(*incidents)
	}{
		{"SecondClusterJoins", (*incidents).secondClusterJoins},
		{"GatewayMoves", (*incidents).gatewayMoves},
		{"RestartLoop", (*incidents).restartLoop},
		{"DeadSpokeAtStart", (*incidents).deadSpokeAtStart},
		{"AnswersTake30s", (*incidents).answersTake30s},
	} {
		t.Run(incident.name, func(t *testing.T) {
			n.T = t
			incident.happen(n)
		})
	}
}

// TestIncidentsHaveTests: each row of incidents.md names tests that exist.
func TestIncidentsHaveTests(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("incidents.md")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Incident ") {
			continue
		}
		rows++
		tests := regexp.MustCompile("`(\\w+)\\.(Test\\w+)(?:/(\\w+))?`").FindAllStringSubmatch(line, -1)
		assert.NotEmpty(t, tests, line)
		for _, names := range tests {
			files, err := filepath.Glob(filepath.Join("..", names[1], "*_test.go"))
			require.NoError(t, err)
			source := ""
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				source += string(text)
			}
			assert.Contains(t, source, "func "+names[2]+"(t *testing.T)")
			if names[3] != "" {
				assert.Contains(t, source, fmt.Sprintf("%q, (*", names[3]), names[0])
			}
		}
	}
	assert.GreaterOrEqual(t, rows, 11)
}

func (n *incidents) start() {
	n.Helper()
	n.serve = start(n.whole, configOf(n.T, n.clusters[0]), "serve", func(o *Options) { o.lease = leaseFor(3 * DefaultLeaseDuration) })
}

func (n *incidents) stop() {
	n.Helper()
	_, err := n.serve.stop()
	require.NoError(n, err)
}

// arrives makes an edit and waits until it has arrived in the first cluster.
func (n *incidents) arrives() time.Duration {
	n.Helper()
	n.edits++
	timeout := fmt.Sprintf("%ds", 100+n.edits)
	began := time.Now()
	require.NoError(n, n.client.ApplyYAML(n.Context(), fmt.Appendf(nil, `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: edited, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {requestTimeout: %s}
`, timeout)))
	until(n.T, "the edit has arrived", func() bool {
		o, err := n.client.Get(n.Context(), kube.Networking("virtualservices"), "bookinfo", "details")
		return err == nil && strings.Contains(fmt.Sprint(o.Object["spec"]), timeout)
	})
	return time.Since(began)
}

// standing are the generated objects of clusters, without the routes that edits change.
func (n *incidents) standing(clusters ...*local.Cluster) []string {
	n.Helper()
	return slices.DeleteFunc(specs(n.T, clusters), func(s string) bool { return strings.Contains(s, "VirtualService") })
}

func (n *incidents) enforced() []string {
	n.Helper()
	return slices.DeleteFunc(n.standing(n.clusters[0]), func(s string) bool { return !strings.Contains(s, "AuthorizationPolicy") })
}

// synced waits until the second cluster is read and everything is written.
func (n *incidents) synced() {
	n.Helper()
	until(n.T, "cluster-2 is synced", func() bool { return n.sync("synced") })
	var before []string
	until(n.T, "everything is written", func() bool {
		last := before
		before = n.standing(n.clusters...)
		_, metrics := n.serve.get("/metrics")
		return slices.Equal(before, last) && strings.Contains(metrics, `meshctl_apply_queue_depth{cluster="cluster-2"} 0`)
	})
}

func (n *incidents) sync(state string) bool {
	_, metrics := n.serve.get("/metrics")
	return strings.Contains(metrics, fmt.Sprintf(`meshctl_cluster_sync{cluster="cluster-2",state=%q} 1`, state))
}

// secondClusterJoins: what one cluster enforces stays as it is when another is registered,
// and when it joins the VirtualMesh.
func (n *incidents) secondClusterJoins() {
	alone := strings.Replace(string(manifests.VirtualMesh()), "  - name: istiod-istio-system-cluster-2\n    namespace: gloo-mesh\n", "", 1)
	require.NotEqual(n, string(manifests.VirtualMesh()), alone)
	require.NoError(n, n.client.ApplyYAML(n.Context(), []byte(alone)))
	require.NoError(n, n.client.ApplyYAML(n.Context(), manifests.Policies()))
	n.arrives()
	var before []string
	until(n.T, "policies are enforced", func() bool {
		last := before
		before = n.enforced()
		return len(before) >= 5 && slices.Equal(before, last)
	})
	register(n.T, n.clusters[1], n.clusters[0])
	n.synced()
	n.arrives()
	n.keeps(before)
	require.NoError(n, n.client.ApplyYAML(n.Context(), manifests.VirtualMesh()))
	until(n.T, "routes to the other cluster", func() bool { return len(routes(n.T, n.client)) == 3 })
	until(n.T, "the routes are known there", func() bool { // after the rules that they need
		_, err := n.other.Get(n.Context(), kube.Networking("virtualservices"), "istio-system", "reviews-bookinfo-cluster-1")
		return err == nil
	})
	n.synced()
	n.keeps(before)
}

// keeps checks that policies are there and are wanted: what is not stays for a while.
func (n *incidents) keeps(policies []string) {
	n.Helper()
	assert.Equal(n, policies, n.enforced())
	_, metrics := n.serve.get("/metrics")
	assert.Contains(n, metrics, fmt.Sprintf(`meshctl_objects{cluster="cluster-1",kind="AuthorizationPolicy"} %d`, len(policies)))
}

// gatewayMoves: a load balancer's host name is left to proxies, which resolve it again and
// again; another one follows.
func (n *incidents) gatewayMoves() {
	for _, host := range []string{"lb-1.example", "lb-2.example"} {
		require.NoError(n, n.other.ApplyStatus(n.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "istio-system", "name": "istio-eastwestgateway"},
			"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"hostname": host}}}},
		}}))
		until(n.T, "it is the endpoint in the other cluster", func() bool {
			o, err := n.client.Get(n.Context(), kube.Networking("serviceentries"), "istio-system", "ratings.bookinfo.svc.cluster-2.global")
			require.NoError(n, err)
			text := fmt.Sprint(o.Object["spec"])
			return strings.Contains(text, "address:"+host) && strings.Contains(text, "resolution:DNS")
		})
	}
	n.synced()
}

// restartLoop: a process that ends again and again, at any moment, changes nothing.
func (n *incidents) restartLoop() {
	before := specs(n.T, n.clusters)
	logs := ""
	for i := range 6 {
		n.stop()
		logs += n.serve.log.String()
		n.start()
		if i%2 == 0 {
			until(n.T, "it leads", func() bool { _, m := n.serve.get("/metrics"); return strings.Contains(m, "meshctl_leader 1") })
			// It ends at any moment of its start.
			time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		}
	}
	n.synced()
	assert.Equal(n, before, specs(n.T, n.clusters))
	assert.NotRegexp(n, `msg=applied .*deleted=[1-9]`, logs, "also not what was discovered")
}

// deadSpokeAtStart: a process that starts while a cluster is dead serves the others, and
// takes nothing in them for gone that follows from it.
func (n *incidents) deadSpokeAtStart() {
	before := n.standing(n.clusters...)
	n.stop()
	require.NoError(n, n.clusters[1].Kill(n.Context(), local.APIServer))
	near := n.standing(n.clusters[0])
	n.start()
	n.Logf("the first edit took %s", n.arrives())
	assert.Equal(n, near, n.standing(n.clusters[0]))
	require.NoError(n, n.clusters[1].Restart(n.Context(), local.APIServer))
	n.synced()
	assert.Equal(n, before, n.standing(n.clusters...))
}

// answersTake30s: the others go on at their pace, and the cluster is frozen, not empty.
func (n *incidents) answersTake30s() {
	slow := n.behindProxy()
	n.synced()
	before := n.standing(n.clusters...)
	slow.Store(true)
	began := time.Now()
	for time.Since(began) < 20*time.Second || !n.sync("stale") {
		took := n.arrives()
		require.Less(n, took, 2*waittest.Soon())
	}
	n.Logf("frozen after %s", time.Since(began))
	assert.Equal(n, before, n.standing(n.clusters...))
	slow.Store(false)
	n.synced()
	assert.Equal(n, before, n.standing(n.clusters...))
}

// behindProxy has the management plane reach the second cluster through a proxy that may
// be slow.
func (n *incidents) behindProxy() *atomic.Bool {
	n.Helper()
	config := rest.AnonymousClientConfig(configOf(n.T, n.clusters[1]))
	target, err := url.Parse(config.Host)
	require.NoError(n, err)
	transport, err := rest.TransportFor(config)
	require.NoError(n, err)
	slow, requests := &atomic.Bool{}, &atomic.Int64{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if slow.Load() {
			select {
			case <-time.After(30 * time.Second):
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	n.Cleanup(func() { n.serve.cancel(); server.CloseClientConnections(); server.Close() })

	management := configOf(n.T, n.clusters[0])
	secret := sandboxtest.Secret(n.T, management, "gloo-mesh", "cluster-2")
	kubeconfig, err := clientcmd.Load(secret.Data[cluster.SecretKey])
	require.NoError(n, err)
	for _, c := range kubeconfig.Clusters {
		c.Server = server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	secret.Data[cluster.SecretKey], err = clientcmd.Write(*kubeconfig)
	require.NoError(n, err)
	_, err = sandboxtest.Clientset(n.T, management).CoreV1().Secrets("gloo-mesh").Update(n.Context(), secret, metav1.UpdateOptions{})
	require.NoError(n, err)
	until(n.T, "the proxy is used", func() bool { return requests.Load() > 0 })
	return slow
}

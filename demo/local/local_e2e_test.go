package local_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/envoy"
)

// TestTwoClusters covers the base of a demo: two clusters with Istio, sidecars that
// are injected, invalid objects that are rejected, and an API server that is
// restarted after a crash.
//
// Not parallel: it measures, and would slow down other tests.
func TestTwoClusters(t *testing.T) {
	shard.Only(t, shard.Demo)
	ctx := t.Context()
	started := time.Now()
	clusters := sandboxtest.Clusters(t, 2)
	t.Logf("two clusters: %s", time.Since(started).Round(time.Millisecond))

	// Programs that ignore reservations take two of istiod's ports.
	takePort(t, clusters[0].Port("istiod-https"))
	takePort(t, clusters[0].Port("istiod-monitoring"))
	var group errgroup.Group
	for _, c := range clusters {
		group.Go(func() error { return c.InstallIstio(ctx, local.IstioOptions{}) })
	}
	require.NoError(t, group.Wait())
	t.Logf("with Istio: %s", time.Since(started).Round(time.Millisecond))

	for _, c := range clusters {
		group.Go(func() error { return installBookinfo(ctx, c) })
	}
	require.NoError(t, group.Wait())
	t.Logf("with bookinfo: %s", time.Since(started).Round(time.Millisecond))

	gateways := map[string]bool{}
	for i, c := range clusters {
		client, err := c.Client()
		require.NoError(t, err)
		pods, err := client.List(ctx, kube.Pods(), "bookinfo")
		require.NoError(t, err)
		assert.Len(t, pods, []int{5, 4}[i], "cluster %s", c.Name())
		for _, pod := range pods {
			assert.Equal(t, "2/2", kube.ReadyContainers(&pod), "pod %s", pod.GetName())
		}
		addresses, err := client.LoadBalancerAddresses(ctx, "istio-system")
		require.NoError(t, err)
		assert.Len(t, addresses, 2, "cluster %s", c.Name())
		for _, address := range addresses {
			assert.False(t, gateways[address], "%s is given twice", address)
			gateways[address] = true
		}
		err = client.ApplyYAML(ctx, []byte(badVirtualService))
		require.ErrorContains(t, err, `"validation.istio.io" denied the request`, "cluster %s", c.Name())
	}

	assertProxies(ctx, t, clusters[0])

	c := clusters[1]
	client, err := c.Client()
	require.NoError(t, err)
	require.NoError(t, c.Kill(ctx, local.APIServer))
	require.Error(t, client.Ready(ctx))
	require.NoError(t, c.Restart(ctx, local.APIServer))
	pods, err := client.List(ctx, kube.Pods(), "bookinfo")
	require.NoError(t, err)
	assert.Len(t, pods, 4, "stored objects are still there")

	// This is what a reboot looks like: all processes are gone.
	require.NoError(t, c.Stop(ctx))
	// The API server's port is in kubeconfigs now, so it must not change.
	taken := takePort(t, c.Port("kube-apiserver"))
	revived, err := c.Revive(ctx)
	require.ErrorContains(t, err, fmt.Sprintf("port %d is in use by another program; end that program", c.Port("kube-apiserver")))
	assert.Equal(t, local.Etcd, revived[0])
	require.NoError(t, taken.Close())
	_, err = c.Revive(ctx)
	require.NoError(t, err)
	for _, p := range c.Processes() {
		assert.True(t, p.Alive(), p.Name)
	}
	require.NoError(t, client.WaitInjected(ctx, "bookinfo"))
	require.NoError(t, c.Kill(ctx, local.Etcd))
	revived, err = c.Revive(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{local.Etcd}, revived)
	require.NoError(t, client.Ready(ctx))

	log, err := os.ReadFile(c.AuditLog())
	require.NoError(t, err)
	assert.Contains(t, string(log), `"username":"admin"`)
	assert.NotContains(t, string(log), `"username":"kwok"`)
}

// takePort listens on the port of a component, like another program.
func takePort(t *testing.T, port int) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestStartOnOtherPorts: the ports of etcd and of the API server are taken after
// they were chosen, and before the two listen there.
func TestStartOnOtherPorts(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "starts an API server")
	binary, err := helper.Build(t.Context(), helper.Progress{})
	require.NoError(t, err)
	guard, err := proc.NewGuard()
	require.NoError(t, err)
	t.Cleanup(guard.Close)
	c, err := local.Create(local.Options{Name: "cluster-1", Dir: t.TempDir(), Helper: binary, Index: 1, Guard: guard, APIServerOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop(context.Background())) })
	peer, server := c.Port("etcd-peer"), c.Port("kube-apiserver")
	takePort(t, peer)
	takePort(t, server)

	require.NoError(t, c.Launch(t.Context()))
	assert.NotEqual(t, peer, c.Port("etcd-peer"))
	assert.NotEqual(t, server, c.Port("kube-apiserver"))
	config, err := c.Config()
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("https://127.0.0.1:%d", c.Port("kube-apiserver")), config.Host)
	again, err := local.Open(filepath.Dir(c.Kubeconfig()), nil)
	require.NoError(t, err)
	assert.Equal(t, c.Port("kube-apiserver"), again.Port("kube-apiserver"), "the new port is stored")
}

// assertProxies checks the configuration of sidecars and gateways.
func assertProxies(ctx context.Context, t *testing.T, c *local.Cluster) {
	t.Helper()
	client, err := c.Client()
	require.NoError(t, err)
	const ratings = "ratings.bookinfo.svc.cluster.local"
	proxies := 0
	for _, namespace := range []string{"bookinfo", "istio-system"} {
		pods, err := client.List(ctx, kube.Pods(), namespace)
		require.NoError(t, err)
		for _, pod := range pods {
			if pod.GetLabels()["app"] == "istiod" {
				_, err := c.Proxy(ctx, namespace, pod.GetName())
				require.ErrorContains(t, err, "it has no container istio-proxy")
				continue
			}
			data, err := c.Proxy(ctx, namespace, pod.GetName())
			require.NoError(t, err)
			config, err := envoy.Parse(data)
			require.NoError(t, err)
			proxies++
			endpoints := config.EndpointsOf("outbound|9080||" + ratings)
			if assert.Len(t, endpoints, 1, "pod %s", pod.GetName()) {
				assert.Equal(t, uint32(9080), endpoints[0].Port)
				assert.Contains(t, endpoints[0].Address, "10.1.")
			}
			if namespace == "bookinfo" {
				assert.NotNil(t, config.VirtualHost(ratings, 9080), "pod %s", pod.GetName())
				assert.NotEmpty(t, config.HTTPFilters(15006, 9080), "pod %s", pod.GetName())
			}
		}
	}
	assert.Equal(t, 7, proxies, "five sidecars and two gateways")
}

func installBookinfo(ctx context.Context, c *local.Cluster) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return manifests.InstallBookinfo(ctx, client, c.Name())
}

// badVirtualService is valid for the schema; only istiod rejects the expression.
const badVirtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: bad-expression
  namespace: bookinfo
spec:
  hosts: [reviews]
  http:
  - match:
    - uri: {regex: "["}
    route:
    - destination: {host: reviews}
`

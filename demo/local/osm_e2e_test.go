package local_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/envoy"
)

// TestOpenServiceMesh: osm-controller rejects invalid objects and configures
// proxies, also after a crash, and two of them run on one machine.
//
// Not parallel: it starts whole clusters.
func TestOpenServiceMesh(t *testing.T) {
	shard.Only(t, shard.OSM)
	helper := sandboxtest.OSM(t)
	ctx := t.Context()
	clusters := sandboxtest.Clusters(t, 2)
	takePort(t, clusters[0].Port("osm-ads"))
	for _, c := range clusters {
		require.NoError(t, c.InstallOSM(ctx, local.OSMOptions{Helper: helper}))
	}
	c := clusters[0]
	client, err := c.Client()
	require.NoError(t, err)
	require.NoError(t, client.ApplyYAML(ctx, []byte(osmShop)))
	err = client.ApplyYAML(ctx, []byte(badTrafficTarget))
	require.ErrorContains(t, err, `"osm-validator.k8s.io" denied the request`)

	const host, port = "web.shop.svc.cluster.local", 80
	assertConfigured(ctx, t, c, client, "client", func(config *envoy.Config) error {
		if config.VirtualHost(host, port) != nil {
			return fmt.Errorf("it may call %s, which is not allowed", host)
		}
		return nil
	})
	require.NoError(t, client.ApplyYAML(ctx, []byte(goodTrafficTarget)))
	allowed := func(config *envoy.Config) error {
		if config.VirtualHost(host, port) == nil {
			return fmt.Errorf("no routes to %s", host)
		}
		return nil
	}
	assertConfigured(ctx, t, c, client, "client", allowed)

	require.NoError(t, c.Kill(ctx, local.OSMController))
	_, err = c.Proxy(ctx, "shop", podOf(ctx, t, client, "client"))
	require.Error(t, err)
	require.NoError(t, c.Restart(ctx, local.OSMController))
	assertConfigured(ctx, t, c, client, "client", allowed)
	err = client.ApplyYAML(ctx, []byte(badTrafficTarget))
	assert.ErrorContains(t, err, `"osm-validator.k8s.io" denied the request`)
}

// assertConfigured waits until the proxy of an application has the expected
// configuration.
func assertConfigured(ctx context.Context, t *testing.T, c *local.Cluster, client *kube.Client, app string, holds func(*envoy.Config) error) {
	t.Helper()
	pod := podOf(ctx, t, client, app)
	waittest.NoError(t, "the proxy of "+app+" has its configuration", func() error {
		data, err := c.Proxy(ctx, "shop", pod)
		if err != nil {
			return err
		}
		config, err := envoy.Parse(data)
		if err != nil {
			return err
		}
		return holds(config)
	})
}

// podOf waits for the pod of an application.
func podOf(ctx context.Context, t *testing.T, client *kube.Client, app string) (name string) {
	t.Helper()
	waittest.NoError(t, "the pod of "+app+" is ready", func() error {
		pods, err := client.List(ctx, kube.Pods(), "shop")
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.GetLabels()["app"] == app && kube.ReadyContainers(&pod) == "2/2" {
				name = pod.GetName()
				return nil
			}
		}
		return errors.New("none is ready")
	})
	return name
}

const osmShop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {openservicemesh.io/monitored-by: osm}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: client, namespace: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop, labels: {app: client, osm-proxy-uuid: 7a6b8a52-7c1f-4a0c-9a36-6d1b0a3f0001}}
spec:
  serviceAccountName: client
  containers: [{name: client, image: example.com/client}, {name: envoy, image: example.com/envoy}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web, osm-proxy-uuid: 7a6b8a52-7c1f-4a0c-9a36-6d1b0a3f0002}}
spec:
  serviceAccountName: web
  containers: [{name: web, image: example.com/web}, {name: envoy, image: example.com/envoy}]
`

const badTrafficTarget = `
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: bad, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: web, namespace: elsewhere}
  rules: [{kind: HTTPRouteGroup, name: all, matches: [all]}]
  sources: [{kind: ServiceAccount, name: client, namespace: shop}]
`

const goodTrafficTarget = `
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: all, namespace: shop}
spec:
  matches: [{name: all, pathRegex: /.*, methods: [GET]}]
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: good, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: web, namespace: shop}
  rules: [{kind: HTTPRouteGroup, name: all, matches: [all]}]
  sources: [{kind: ServiceAccount, name: client, namespace: shop}]
`

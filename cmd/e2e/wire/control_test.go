package wire

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// controlNamespace has workloads that no test touches: a caller in the first cluster, and in the second
// a service that it calls through a gateway of the same kind as those of the VirtualMesh. All of its Istio
// objects are written here, and none by meshctl. Requests there show what the machine makes fail.
const controlNamespace = "control"

const controlURL = "http://answerer.control.svc.cluster.local:9080/control"

const controlWorkload = `apiVersion: v1
kind: Namespace
metadata: {name: control, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: control}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: app
        image: docker.io/istio/examples-bookinfo-ratings-v1:1.20.3
        ports: [{containerPort: 9080}]
---
`

// controlCaller knows the service by its address at the gateway.
const controlCaller = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: answerer, namespace: control}
spec:
  hosts: [answerer.control.svc.cluster.local]
  exportTo: ["."]
  location: MESH_INTERNAL
  resolution: STATIC
  addresses: [240.240.0.7]
  ports: [{number: 9080, name: http, protocol: HTTP}]
  endpoints:
  - {address: 192.0.2.200, ports: {http: 15443}, labels: {security.istio.io/tlsMode: istio}}
`

const controlAnswerer = `apiVersion: v1
kind: Service
metadata: {name: answerer, namespace: control}
spec:
  selector: {app: answerer}
  ports: [{name: http, port: 9080, targetPort: 9080}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: everybody, namespace: control}
spec: {rules: [{}]}
---
apiVersion: v1
kind: Service
metadata: {name: passage, namespace: control}
spec:
  type: LoadBalancer
  selector: {app: passage}
  ports: [{name: passage, port: 15443, targetPort: 15443}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: passage, namespace: control}
spec:
  selector: {matchLabels: {app: passage}}
  template:
    metadata:
      labels: {app: passage, sidecar.istio.io/inject: "true"}
      annotations: {inject.istio.io/templates: gateway}
    spec:
      containers:
      - name: istio-proxy
        image: auto
        env: [{name: ISTIO_META_ROUTER_MODE, value: sni-dnat}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: passage, namespace: control}
spec:
  selector: {app: passage}
  servers:
  - hosts: ["*.control.svc.cluster.local"]
    port: {number: 15443, name: passage, protocol: TLS}
    tls: {mode: AUTO_PASSTHROUGH}
`

// control makes the workloads of the control namespace, once, and returns the caller.
func (e *environment) control(t testing.TB) proxies.Pod {
	t.Helper()
	if e.caller.Pod != "" {
		return e.caller
	}
	apply(t, e.clusters["cluster-1"], fmt.Sprintf(controlWorkload, "caller")+controlCaller)
	second := apply(t, e.clusters["cluster-2"], fmt.Sprintf(controlWorkload, "answerer")+controlAnswerer)
	require.NoError(t, second.ApplyStatus(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": controlNamespace, "name": "passage"},
		"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.200"}}}},
	}}))
	waittest.NoError(t, "control requests are answered", func() error {
		all, err := e.plane.Pods(t.Context())
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.Namespace == controlNamespace && p.Workload == "caller" {
				e.caller = p
			}
		}
		if e.caller.Pod == "" {
			return fmt.Errorf("there is no caller")
		}
		counts, err := e.send(t.Context(), e.caller, app.Call{URL: controlURL, Count: 20})
		if err == nil && len(counts.failed()) > 0 {
			err = fmt.Errorf("%v", counts)
		}
		return err
	})
	return e.caller
}

// uncontrol removes the control namespace for good: what comes next changes the trust between all workloads, so
// that no request is left that it does not touch.
func uncontrol(t *testing.T, e *environment) {
	t.Helper()
	for _, c := range e.clusters {
		client, err := c.Client()
		require.NoError(t, err)
		require.NoError(t, client.Delete(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", controlNamespace))
	}
	waittest.NoError(t, "its pods are gone", func() error {
		all, err := e.plane.Pods(t.Context())
		for _, p := range all {
			if p.Namespace == controlNamespace {
				return fmt.Errorf("pod %s", p.Pod)
			}
		}
		return err
	})
	e.caller, e.uncontrolled = proxies.Pod{}, true
}

func apply(t testing.TB, cluster *local.Cluster, documents string) *kube.Client {
	t.Helper()
	client, err := cluster.Client()
	require.NoError(t, err)
	require.NoError(t, client.ApplyYAML(context.WithoutCancel(t.Context()), []byte(documents)))
	return client
}

// beyond returns how many of the failed requests the machine does not explain, which made so many requests
// of the control stream fail at the same time: 0 if it may. Both fail at random, so the numbers differ.
func beyond(failed, control int) int {
	if control == 0 {
		return failed
	}
	return max(0, failed-control-int(4*math.Sqrt(float64(control))))
}

// pods are those of all workloads but the control namespace's.
func (e *environment) pods(ctx context.Context) ([]proxies.Pod, error) {
	all, err := e.plane.Pods(ctx)
	var pods []proxies.Pod
	for _, p := range all {
		if p.Namespace != controlNamespace {
			pods = append(pods, p)
		}
	}
	return pods, err
}

func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ failed, control, want int }{
		{0, 0, 0}, {1, 0, 1}, {3, 3, 0}, {8, 1, 3}, {0, 9, 0}, {200, 100, 60},
	} {
		require.Equal(t, c.want, beyond(c.failed, c.control), "%+v", c)
	}
}

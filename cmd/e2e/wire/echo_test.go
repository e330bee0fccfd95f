package wire

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// echo is a service with a port for gRPC and one for TCP, of which each cluster has a
// pod.
const echo = `apiVersion: v1
kind: ServiceAccount
metadata: {name: bookinfo-echo, namespace: bookinfo}
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: bookinfo, labels: {app: echo}}
spec:
  selector: {app: echo}
  ports:
  - {name: grpc, port: 9090}
  - {name: tcp-lines, port: 9000}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo-v1, namespace: bookinfo}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo, version: v1}}
    spec:
      serviceAccountName: bookinfo-echo
      containers:
      - name: echo
        image: example.com/echo
        ports:
        - {name: grpc, containerPort: 9090}
        - {name: tcp-lines, containerPort: 9000}
`

// withEcho starts the service in both clusters, and removes it after the test.
func (e *environment) withEcho(t *testing.T) {
	t.Helper()
	for name, c := range e.clusters {
		client, err := c.Client()
		require.NoError(t, err)
		require.NoError(t, client.ApplyYAML(t.Context(), []byte(echo)))
		t.Cleanup(func() { require.NoError(t, client.DeleteYAML(context.WithoutCancel(t.Context()), []byte(echo))) })
		waittest.NoError(t, "echo runs in "+name, func() error { return e.ready(t.Context(), name, "echo-v1", 1) })
	}
}

// ready returns an error unless a workload has so many pods that are ready, and no
// other.
func (e *environment) ready(ctx context.Context, cluster, workload string, want int) error {
	pods, err := e.pods(ctx)
	if err != nil {
		return err
	}
	all, ready := 0, 0
	for _, p := range pods {
		if p.Cluster == cluster && p.Workload == workload {
			all++
			if p.Ready {
				ready++
			}
		}
	}
	if all != want || ready != want {
		return fmt.Errorf("%d of %d pods of %s in %s are ready, want %d", ready, all, workload, cluster, want)
	}
	return nil
}

// protocols calls gRPC methods and opens TCP connections, in the same cluster and to
// the other one.
func protocols(t *testing.T, e *environment) {
	t.Helper()
	e.withEcho(t)
	allowed, refused := e.pod(t, "cluster-1", "productpage-v1"), e.pod(t, "cluster-1", "details-v1")
	for cluster, host := range echoHosts() {
		for _, url := range []string{"grpc://" + host + ":9090", "tcp://" + host + ":9000"} {
			waittest.NoError(t, url, func() error {
				return errors.Join(
					e.allAre(t.Context(), allowed, app.Call{URL: url, Count: 20}, cluster+" echo-v1"),
					e.noneAnswered(t.Context(), refused, app.Call{URL: url, Count: 10}),
				)
			})
		}
	}
	onePort(t, e, refused)
	// A connection does not tell that an application fails, so only readiness does.
	failover(t, e, "echo", "tcp", 9000, []outage{{"the pods are not ready", proxies.Fault{Unready: true}, 0}})
	grpcFields(t, e, allowed)
	e.accepts(t, 15) // 13, and the two of the service
}

// echoHosts are the names by which callers in the first cluster know the service, by
// its cluster.
func echoHosts() map[string]string {
	return map[string]string{"cluster-1": "echo", "cluster-2": "echo.bookinfo.svc.cluster-2.global"}
}

// onePort allows a caller to use one of two ports.
func onePort(t *testing.T, e *environment, from proxies.Pod) {
	t.Helper()
	e.during(t, `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: one-port, namespace: gloo-mesh}
spec:
  sourceSelector:
  - kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-details, namespace: bookinfo, clusterName: cluster-1}]}
  destinationSelector:
  - kubeServiceMatcher: {labels: {app: echo}}
  allowedPorts: [9090]
`)
	for cluster, host := range echoHosts() {
		waittest.NoError(t, "one port of "+host, func() error {
			return errors.Join(
				e.allAre(t.Context(), from, app.Call{URL: "grpc://" + host + ":9090", Count: 10}, cluster+" echo-v1"),
				e.noneAnswered(t.Context(), from, app.Call{URL: "tcp://" + host + ":9000", Count: 10}),
			)
		})
	}
}

// grpcFields sees fields of a TrafficPolicy in the answers to gRPC calls.
func grpcFields(t *testing.T, e *environment, from proxies.Pod) {
	t.Helper()
	const policy = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: field, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: echo, namespace: bookinfo, clusterName: cluster-1}
  policy: `
	const url = "grpc://echo:9090"
	for spec, check := range map[string]func() error{
		"{retries: {attempts: 2}}": func() error {
			return e.allAre(t.Context(), from, app.Call{URL: url, Count: 1, Headers: fails(503, 2)}, "cluster-1 echo-v1")
		},
		"{requestTimeout: 300ms}": func() error {
			x, err := e.one(t.Context(), from, app.Call{URL: url, Headers: header("X-App-Delay", "3s")})
			if err == nil && x.status == 0 {
				err = fmt.Errorf("it is answered after %s", x.took)
			}
			return err
		},
		"{faultInjection: {abort: {httpStatus: 503}}}": func() error {
			x, err := e.one(t.Context(), from, app.Call{URL: url})
			if err == nil && x.status != grpcUnavailable {
				err = fmt.Errorf("status %d %s, want %d", x.status, x.error, grpcUnavailable)
			}
			return err
		},
		"{trafficShift: {destinations: [{kubeService: {name: echo, namespace: bookinfo, clusterName: cluster-2, port: 9090}, weight: 30}, {kubeService: {name: echo, namespace: bookinfo, clusterName: cluster-1, port: 9090}, weight: 70}]}}": func() error {
			all, err := e.send(t.Context(), from, app.Call{URL: url, Count: 800})
			if err != nil {
				return err
			}
			if n := all["cluster-2 echo-v1"] + all["cluster-1 echo-v1"]; n != 800 {
				return fmt.Errorf("%d of 800 calls are answered: %v", n, all)
			}
			return withinFourSigma(all["cluster-2 echo-v1"], 800, 0.3)
		},
	} {
		e.during(t, policy+spec+"\n")
		waittest.NoError(t, "gRPC: "+spec, check)
	}
}

// grpcUnavailable is UNAVAILABLE in https://grpc.io/docs/guides/status-codes/.
const grpcUnavailable = 14

// allAre returns an error unless all requests have one outcome.
func (e *environment) allAre(ctx context.Context, from proxies.Pod, call app.Call, outcome string) error {
	all, err := e.send(ctx, from, call)
	if err == nil && (all[outcome] != call.Count || all.total() != call.Count) {
		err = fmt.Errorf("%s from %s: %v, want %d %s", call.URL, from.Workload, all, call.Count, outcome)
	}
	return err
}

// noneAnswered returns an error if an application answers a request.
func (e *environment) noneAnswered(ctx context.Context, from proxies.Pod, call app.Call) error {
	all, err := e.send(ctx, from, call)
	if failed := len(all.failed()); err == nil && (failed == 0 || failed != len(all)) {
		err = fmt.Errorf("%s from %s: %v, want no answer", call.URL, from.Workload, all)
	}
	return err
}

package dashboard

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
)

// TestReadersAgreeWithTheServer: a server refuses a policy with which a
// hand-written object intersects, because of a flag that only it was given. The
// dashboard, which reads the clusters, comes to the same; describe, which does
// not, says what the server says and what it would have said. So it is with the
// last accepted spec, and with edits while no server runs.
func TestReadersAgreeWithTheServer(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	apply := func(manifests string) {
		t.Helper()
		sandboxtest.Apply(t, config, []byte(manifests))
	}
	apply(virtualServices)
	apply(aMesh)
	stop := startServer(t, config, "v1")
	apply(handWritten)
	apply(trafficPolicy("requestTimeout: 1s"))

	source := startLive(t, config)
	live := func(what string, say func(*explain.Policy) bool) *explain.Policy {
		t.Log(what)
		var policy *explain.Policy
		await(t, source, func(n *tui.Update) bool {
			if n.Index == nil {
				return false
			}
			policy, _ = n.Index.Describe(patient).(*explain.Policy)
			return policy != nil && say(policy)
		})
		return policy
	}
	stored := func() *explain.Policy {
		read, err := reading.Management{Config: config, Namespace: snapshot.DefaultNamespace, Version: "dev"}.Stored(t.Context())
		require.NoError(t, err)
		policy, ok := read.Index(nil).Describe(patient).(*explain.Policy)
		require.True(t, ok)
		return policy
	}
	settled := func(state string) func(*explain.Policy) bool {
		return func(p *explain.Policy) bool {
			return string(p.State) == state && p.Stored == nil && len(p.Targets) == 1
		}
	}

	refused := live("refused", settled("INVALID"))
	assert.Equal(t, snapshot.HandWritten, refused.Targets[0].Issues[0].Code)
	blind := stored()
	assert.Equal(t, "INVALID", string(blind.State))
	require.NotNil(t, blind.Stored)
	assert.Contains(t, blind.Stored.Differences, explain.Difference{Field: "state", Stored: "INVALID", WouldBe: "ACCEPTED"})
	assert.Equal(t, "the server is meshctl v1, this is dev; the server also reads the registered clusters, which were not read here", blind.Stored.Why)
	assert.Equal(t, "ACCEPTED", blind.Targets[0].WouldBe)
	assert.Contains(t, blind.Targets[0].Issues[0].Message, "the hand-written VirtualService cluster-1/bookinfo/by-hand")

	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	require.NoError(t, client.Resource(snapshot.VirtualService.GroupVersionResource()).Namespace("bookinfo").Delete(t.Context(), "by-hand", metav1.DeleteOptions{}))
	live("accepted", settled("ACCEPTED"))
	assert.Nil(t, stored().Stored)

	apply(trafficPolicy("trafficShift: {destinations: [{kubeService: {name: none, namespace: bookinfo, clusterName: cluster-1}}]}"))
	broken := live("the last accepted spec is in force", settled("INVALID"))
	assert.True(t, broken.Targets[0].LastGood)
	blind = stored()
	assert.Nil(t, blind.Stored)
	assert.True(t, blind.Targets[0].LastGood)

	stop()
	apply(trafficPolicy("requestTimeout: 2s"))
	waiting := live("no server runs", func(p *explain.Policy) bool { return p.State == "PENDING" })
	for _, policy := range []*explain.Policy{waiting, stored()} {
		require.NotNil(t, policy.Stored)
		assert.Contains(t, policy.Stored.Differences, explain.Difference{Field: "state", Stored: "INVALID", WouldBe: "ACCEPTED"})
		assert.Contains(t, policy.Stored.Why, "the server has not processed generation 3 of it")
	}
}

var patient = snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: snapshot.DefaultNamespace, Name: "patient"}

// startServer runs a server until stop, or the end of the test.
func startServer(t *testing.T, config *rest.Config, version string) (stop func()) {
	t.Helper()
	return startServerWith(t, serve.Options{Management: config, RefuseIntersecting: true, Version: version, Log: slog.New(slog.DiscardHandler)})
}

func startServerWith(t *testing.T, options serve.Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, options)
	}()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func trafficPolicy(policy string) string {
	return `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: patient, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: reviews, namespace: bookinfo, clusterName: cluster-1}
  policy: {` + policy + "}\n"
}

const handWritten = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: by-hand, namespace: bookinfo}
spec:
  hosts: [reviews]
  http: [{route: [{destination: {host: reviews}}]}]
`

// aMesh is a control plane, and a service that belongs to it though no pods run.
const aMesh = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: bookinfo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "trustDomain: cluster.local"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system, labels: {app: istiod, istio.io/rev: default}}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod, istio.io/rev: default}}
    spec:
      serviceAccountName: istiod
      containers: [{name: discovery, image: "docker.io/istio/pilot:1.31.1"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {app: sidecar-injector, istio.io/rev: default}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: istio-system, path: /inject}}
  namespaceSelector: {matchLabels: {nothing: is-injected}}
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: bookinfo, annotations: {discovery.mesh.gloo.solo.io/enabled: "true"}}
spec:
  selector: {app: reviews}
  ports: [{name: http, port: 9080}]
`

// virtualServices are the one kind of Istio's that is read and written here.
const virtualServices = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualservices.networking.istio.io}
spec:
  group: networking.istio.io
  scope: Namespaced
  names: {kind: VirtualService, listKind: VirtualServiceList, plural: virtualservices, singular: virtualservice}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

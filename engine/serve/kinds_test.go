package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestObjectsOfAnyKindAreEdited goes over all kinds that are watched, by the
// Source or by the Sink, on a cluster with Istio. It creates an object of each,
// edits it in every way and deletes it while serve works. After each step serve
// has seen it, if it is anything to see, and still reacts to an edit of a policy.
func TestObjectsOfAnyKindAreEdited(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	c := world(t, 1)[0]
	config, client := configOf(t, c), clientOf(t, c)
	for kind := range samples {
		switch kind {
		case snapshot.MeshConfig, snapshot.HTTPRouteGroup, snapshot.TCPRoute, snapshot.TrafficTarget, snapshot.TrafficSplit,
			snapshot.HTTPRoute, snapshot.GRPCRoute, snapshot.GatewayTCPRoute, snapshot.TLSRoute, snapshot.KubeGateway, snapshot.ListenerSet, snapshot.ReferenceGrant,
			snapshot.BackendTLSPolicy:
			installLoose(t, config, kind)
		}
	}
	require.NoError(t, client.ApplyYAML(t.Context(), []byte(kindsNamespace)))
	e := newEditor(t, config, client)
	require.NoError(t, client.ApplyYAML(t.Context(), []byte(timeoutPolicy)))
	until(t, "the first VirtualService", func() bool { return len(routes(t, client)) > 0 })

	for _, kind := range watchedKinds() {
		e.play(kind, samples[kind])
	}
	require.NotContains(t, e.log.String(), "cannot be processed")
}

// kindsNamespace is where the objects are, with a Deployment because of which the ConfigMap
// istio there is read. Nothing shows that it is a control plane.
const kindsNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: kinds}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: kinds, labels: {app: istiod}}
spec:
  replicas: 0
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec:
      containers: [{name: discovery, image: istio/pilot:1.31.1}]
`

const timeoutPolicy = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: timeout, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]
  policy: {requestTimeout: 100s}
`

// editor edits objects while serve works.
type editor struct {
	t       *testing.T
	client  *kube.Client
	dynamic dynamic.Interface
	worker  *worker
	log     *sandboxtest.Buffer
	ended   chan error
	// edits counts the edits of the policy.
	edits int
}

func newEditor(t *testing.T, config *rest.Config, client *kube.Client) *editor {
	t.Helper()
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	api, err := dynamic.NewForConfig(unlimited)
	require.NoError(t, err)
	e := &editor{t: t, client: client, dynamic: api, log: &sandboxtest.Buffer{}, ended: make(chan error, 1)}
	o, err := Options{Management: config, Log: slog.New(slog.NewTextHandler(e.log, nil))}.withDefaults()
	require.NoError(t, err)
	e.worker, err = newWorker(o, "", nil, newMetrics(prometheus.NewRegistry(), "test"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { e.ended <- e.worker.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Log(e.log.String())
		}
	})
	return e
}

// play creates, edits and deletes an object.
func (e *editor) play(kind snapshot.Kind, s sample) {
	e.t.Helper()
	began := time.Now()
	info := kind.Info()
	o := &unstructured.Unstructured{}
	require.NoError(e.t, json.Unmarshal([]byte(s.object), &o.Object), kind.String())
	o.SetGroupVersionKind(info.GroupVersionKind)
	o.SetName("sample")
	ref := snapshot.Ref{Kind: kind, Name: "sample", Namespace: "kinds", Cluster: "cluster-1"}
	switch {
	case info.ClusterScoped:
		ref.Namespace = ""
	case info.Side == snapshot.ManagementSide:
		ref.Namespace, ref.Cluster = "gloo-mesh", ""
	}
	if kind == snapshot.ConfigMap {
		ref.Name = "istio" // others are not read
		o.SetName(ref.Name)
	}
	api := e.dynamic.Resource(kind.GroupVersionResource()).Namespace(ref.Namespace)

	// The namespace's ServiceAccount may not be there yet.
	waittest.NoError(e.t, kind.String()+" is created", func() error {
		_, err := api.Create(e.t.Context(), o, metav1.CreateOptions{})
		return err
	})
	e.after(ref, "create", `"name":"`+ref.Name+`"`, len(s.seen) > 0)
	steps := []struct{ name, patch, subresource string }{
		{editLabels, `{"metadata":{"labels":{"edited":"label"}}}`, ""},
		{editAnnotations, `{"metadata":{"annotations":{"discovery.mesh.gloo.solo.io/enabled":"edited"}}}`, ""},
		{editStatus, s.status, "status"},
		{editSpec, s.spec, ""},
	}
	for _, step := range steps {
		if step.patch == "" {
			continue
		}
		_, err := api.Patch(e.t.Context(), ref.Name, types.MergePatchType, []byte(step.patch), metav1.PatchOptions{}, subresources(step.subresource)...)
		require.NoError(e.t, err, "%s: %s", kind, step.name)
		seen, reads := s.seen[step.name]
		e.after(ref, step.name, seen, reads)
	}
	require.NoError(e.t, api.Delete(e.t.Context(), ref.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	until(e.t, kind.String()+" deleted", func() bool { return e.find(ref) == "" })
	e.react(kind.String() + ": delete")
	e.t.Logf("%s: %s", kind, time.Since(began))
}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// after waits until serve has seen a step, if it reads what was edited, and has
// answered an edit of a policy.
func (e *editor) after(ref snapshot.Ref, step, seen string, reads bool) {
	e.t.Helper()
	what := ref.Kind.String() + ": " + step
	if reads {
		waittest.NoError(e.t, what+" is seen", func() error {
			if has := e.find(ref); !strings.Contains(has, seen) {
				return fmt.Errorf("the Input has %s", has)
			}
			return nil
		})
	}
	e.react(what)
}

// react edits a policy and waits for what follows from it.
func (e *editor) react(what string) {
	e.t.Helper()
	e.edits++
	timeout := fmt.Sprintf("%ds", 100+e.edits)
	policies := e.dynamic.Resource(kube.Policies("trafficpolicies")).Namespace("gloo-mesh")
	patch := `{"spec":{"policy":{"requestTimeout":"` + timeout + `"}}}`
	_, err := policies.Patch(e.t.Context(), "timeout", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(e.t, err)
	services := e.dynamic.Resource(kube.Networking("virtualservices")).Namespace("bookinfo")
	until(e.t, what+": the edit of a policy", func() bool {
		select {
		case err := <-e.ended:
			require.FailNow(e.t, "serve ended", "after %s: %v", what, err)
		default:
		}
		o, err := services.Get(e.t.Context(), "reviews", metav1.GetOptions{})
		require.NoError(e.t, err)
		return strings.Contains(fmt.Sprint(o.Object["spec"]), "timeout:"+timeout)
	})
}

// find returns the JSON of an object in serve's Input; empty if there is none.
func (e *editor) find(ref snapshot.Ref) string {
	e.t.Helper()
	input := e.worker.clusters.Source.Input()
	if input == nil {
		return ""
	}
	o := input.Find(ref)
	if o == nil {
		return ""
	}
	raw, err := json.Marshal(o)
	require.NoError(e.t, err)
	return string(raw)
}

// installLoose serves a kind whose objects may hold anything.
func installLoose(t *testing.T, config *rest.Config, k snapshot.Kind) {
	t.Helper()
	info := k.Info()
	loose := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	crds := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	_, err := crds.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: info.Resource + "." + info.Group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: info.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: info.Kind, Plural: info.Resource, ListKind: info.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: info.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &loose},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

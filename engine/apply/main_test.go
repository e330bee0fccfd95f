package apply_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/api/crds"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestMain runs the tests without the pauses of client-go after errors: they are one for the process, and a test in a bubble has a
// clock of its own, after which one in another bubble may wait for years.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// world is one test's part of an API server: a namespace of its own, and sinks
// that own what carries that namespace's name.
type world struct {
	t         testing.TB
	config    *rest.Config
	dynamic   dynamic.Interface
	namespace string
}

var worlds atomic.Int32

// newWorld makes a world on the shared API server. Every sink watches all
// namespaces, so a test with many objects takes a server of its own.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := worldOn(t, sandboxtest.APIServer(t))
	w.install(istioKinds...)
	w.installManagement()
	return w
}

// worldOn makes a world on any API server, with no CRDs.
func worldOn(t testing.TB, config *rest.Config) *world {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	w := &world{t: t, config: config, dynamic: client, namespace: fmt.Sprintf("apply-%d", worlds.Add(1))}
	w.createNamespace(w.namespace)
	return w
}

func (w *world) createNamespace(name string) {
	w.t.Helper()
	_, err := kubernetes.NewForConfigOrDie(w.config).CoreV1().Namespaces().
		Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

var istioKinds = []snapshot.Kind{
	snapshot.ServiceEntry, snapshot.Gateway, snapshot.DestinationRule, snapshot.VirtualService, snapshot.AuthorizationPolicy,
}

// install makes kinds known to the API server: hosts must be strings, mode has
// a default, of strict only what is known is stored, all else goes.
func (w *world) install(kinds ...snapshot.Kind) {
	w.t.Helper()
	for _, k := range kinds {
		w.installCRD(simpleCRD(k))
	}
}

func (w *world) installManagement() {
	w.t.Helper()
	all, err := crds.All()
	require.NoError(w.t, err)
	for _, crd := range all {
		w.installCRD(crd)
	}
}

func (w *world) installCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	client := apiextensions.NewForConfigOrDie(w.config).ApiextensionsV1().CustomResourceDefinitions()
	w.eventually("CRD "+crd.Name+" is established", func() bool {
		// A former one may be about to go.
		_, err := client.Create(w.t.Context(), crd, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(w.t, err)
		}
		got, err := client.Get(w.t.Context(), crd.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && got.DeletionTimestamp != nil) {
			return false
		}
		require.NoError(w.t, err)
		for _, c := range got.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

func simpleCRD(k snapshot.Kind) *apiextensionsv1.CustomResourceDefinition {
	info := k.Info()
	yes := true
	loose := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	spec := *loose.DeepCopy()
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{
		"hosts": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
			Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
		"mode":   {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"auto"`)}},
		"nested": loose,
		"strict": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"known": {Type: "string"}}},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: info.Resource + "." + info.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: info.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: info.Kind, Plural: info.Resource, ListKind: info.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: info.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": loose},
				}},
			}},
		},
	}
}

// running is a sink at work, with what it said.
type running struct {
	*sinkOf
	sets chan apply.ChangeSet
}

// run starts a sink that ends with the test, or when stop is called.
func (w *world) run(change ...func(*apply.Options)) (r *running, stop func()) {
	w.t.Helper()
	r = &running{sets: make(chan apply.ChangeSet, 1000)}
	o := apply.Options{
		Namespace: w.namespace, Log: slog.New(slog.NewTextHandler(logTo{w.t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnChange: func(s apply.ChangeSet) { r.sets <- s }, Widen: istio.Renderer{}.Widen,
	}
	for _, c := range change {
		c(&o)
	}
	r.sinkOf = &sinkOf{apply.New(o), newFleet(w.t, snapshot.Plane{Namespace: o.Namespace, ID: o.PlaneID})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	stop = func() { cancel(); <-done; r.fleet.stop() }
	w.t.Cleanup(stop)
	return r, stop
}

// apply hands over an output and waits until it is settled.
func (r *running) apply(out *snapshot.Output) {
	r.t.Helper()
	r.Apply(out)
	r.settle()
}

// Failures leaves out that other tests write to the same API server, too, and what is reported of objects that wait for longer than two
// seconds: whether a test takes that long depends on the machine. TestObjectsThatWaitForLongAreReported has a clock of its own for that.
func (r *running) Failures() []snapshot.Failure {
	return slices.DeleteFunc(r.Sink.Failures(), func(f snapshot.Failure) bool {
		return f.Code == snapshot.AnotherPlane || f.Code == snapshot.ObjectsWait
	})
}

// settle waits until nothing is left to do.
func (r *running) settle() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waittest.Limit())
	defer cancel()
	require.NoError(r.t, r.Settled(ctx), "the sink does not settle")
}

// total adds up the change sets so far.
func (r *running) total() (sum apply.ChangeSet) {
	for {
		select {
		case s := <-r.sets:
			sum.Created += s.Created
			sum.Configured += s.Configured
			sum.Unchanged += s.Unchanged
			sum.Deleted += s.Deleted
			sum.Statuses += s.Statuses
			sum.Failed += s.Failed
			sum.Changes = append(sum.Changes, s.Changes...)
		default:
			return sum
		}
	}
}

type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// eventually waits for a condition.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	waittest.Until(w.t, what, condition)
}

// of is the API of a kind in the world's namespace.
func (w *world) of(k snapshot.Kind) dynamic.ResourceInterface {
	return w.dynamic.Resource(k.GroupVersionResource()).Namespace(w.namespace)
}

func (w *world) get(k snapshot.Kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	o, err := w.of(k).Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return o
}

func (w *world) exists(k snapshot.Kind, name string) bool {
	w.t.Helper()
	_, err := w.of(k).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(w.t, err)
	return true
}

// user creates an object as somebody else.
func (w *world) user(k snapshot.Kind, name string, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(k.Info().GroupVersionKind)
	u.SetName(name)
	u.SetLabels(labels)
	made, err := w.of(k).Create(w.t.Context(), u, metav1.CreateOptions{FieldManager: "somebody"})
	require.NoError(w.t, err)
	return made
}

// object is one to have in a cluster, owned by the world.
func (w *world) object(k snapshot.Kind, cluster, name string, spec any) *snapshot.Object {
	owner := snapshot.NetworkingOwnerLabel
	labels := map[string]string{}
	if cluster == "" {
		owner = snapshot.DiscoveryOwnerLabel
	}
	labels[owner] = w.namespace
	return &snapshot.Object{
		Ref:     snapshot.Ref{Kind: k, Cluster: cluster, Namespace: w.namespace, Name: name},
		Content: &snapshot.Content{Labels: labels, Spec: spec},
	}
}

// related states the relations of a route or a rule as their renderer does. A service is at home in the cluster that its host names.
func related(o *snapshot.Object) *snapshot.Object {
	r := &o.Content.Relations
	named := func(host, subset string) snapshot.Name {
		return snapshot.Name{Name: host + "/" + subset, Local: strings.HasSuffix(host, ".svc.cluster.local")}
	}
	switch spec := o.Content.Spec.(type) {
	case *networking.VirtualService:
		for _, route := range spec.Http {
			for _, to := range route.Route {
				r.Needs = append(r.Needs, named(to.Destination.Host, to.Destination.Subset))
			}
		}
	case *networking.Gateway:
		for _, server := range spec.Servers {
			for _, host := range server.Hosts {
				r.Provides = append(r.Provides, named(host, ""))
			}
		}
	case *networking.DestinationRule:
		for _, s := range spec.Subsets {
			provided := named(spec.Host, s.Name)
			provided.Home = strings.Contains(spec.Host, ".svc."+o.Ref.Cluster+".")
			r.Provides = append(r.Provides, provided)
		}
	}
	return o
}

// output is an Output of these objects, a part each.
func output(clusters []string, objects ...*snapshot.Object) *snapshot.Output {
	var parts []*snapshot.Part
	for i, o := range objects {
		parts = append(parts, &snapshot.Part{Key: fmt.Sprintf("part/%06d", i), Objects: []*snapshot.Object{o}})
	}
	return &snapshot.Output{Clusters: clusters, Parts: snapshot.ListOf(parts)}
}

func hosts(names ...string) map[string]any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return map[string]any{"hosts": list}
}

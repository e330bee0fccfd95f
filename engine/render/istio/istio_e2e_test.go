package istio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
)

var sandbox sandboxtest.Sandbox

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m)) }

// golden has what is rendered for every case.
const golden = "../../../testdata/translate"

// rendered are the kinds that this package makes.
var rendered = map[string]schema.GroupVersionResource{
	"VirtualService":      {Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"},
	"DestinationRule":     {Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"},
	"ServiceEntry":        {Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"},
	"Gateway":             {Group: "networking.istio.io", Version: "v1", Resource: "gateways"},
	"Sidecar":             {Group: "networking.istio.io", Version: "v1", Resource: "sidecars"},
	"EnvoyFilter":         {Group: "networking.istio.io", Version: "v1alpha3", Resource: "envoyfilters"},
	"AuthorizationPolicy": {Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"},
}

// TestIstioTakesWhatIsRendered: an API server with Istio's definitions and a
// running istiod accept every object of every golden case.
func TestIstioTakesWhatIsRendered(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cluster := sandbox.Clusters(t, 1)[0]
	require.NoError(t, cluster.InstallIstio(ctx, local.IstioOptions{}))
	config, err := cluster.Config()
	require.NoError(t, err)
	config = rest.CopyConfig(config)
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	core, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	wrong := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{"name": "wrong", "namespace": "default"},
		"spec": map[string]any{"hosts": []any{"wrong"}, "http": []any{map[string]any{
			"match": []any{map[string]any{"uri": map[string]any{"regex": "("}}},
			"route": []any{map[string]any{"destination": map[string]any{"host": "wrong"}}},
		}}},
	}}
	require.ErrorContains(t, apply(ctx, objects, wrong), "denied the request", "istiod does not judge, so nothing is proved")

	namespaces := map[string]bool{}
	count := 0
	for name, o := range outputs(t) {
		if namespace := o.GetNamespace(); !namespaces[namespace] {
			namespaces[namespace] = true
			_, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
			if !apierrors.IsAlreadyExists(err) {
				require.NoError(t, err)
			}
		}
		assert.NoError(t, apply(ctx, objects, o), name)
		count++
	}
	t.Logf("%d objects", count)
	require.Greater(t, count, 50)
}

// apply asks the API server to take an object, without keeping it.
func apply(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	_, err := client.Resource(rendered[o.GetKind()]).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{
		FieldManager: "meshctl", Force: true, DryRun: []string{metav1.DryRunAll},
	})
	return err
}

// outputs are the objects of all golden cases that go to Istio meshes, by file and name.
func outputs(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	files, err := fs.Glob(os.DirFS(golden), "*/out/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.Contains(file, "/out/management/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(golden, file))
		require.NoError(t, err)
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := documents.Decode(o)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			if strings.HasSuffix(o.GroupVersionKind().Group, ".smi-spec.io") {
				continue // OSM's, rendered by package smi
			}
			require.Contains(t, rendered, o.GetKind(), file)
			out[fmt.Sprintf("%s: %s/%s", file, o.GetNamespace(), o.GetName())] = o
		}
	}
	return out
}

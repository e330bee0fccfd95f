package sandboxtest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
)

// Rendered validates objects that were rendered for a mesh, by a cluster with that
// mesh. It maps the group and kind of the known objects to their resources.
type Rendered map[schema.GroupKind]schema.GroupVersionResource

// Read reads the objects of some API groups from YAML files, by file, kind and
// name. An unknown kind fails the test, because it would not be validated.
func (r Rendered) Read(t testing.TB, pattern string, mine func(group string) bool) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	out := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		objects, err := kube.Decode(data)
		require.NoError(t, err, file)
		for _, o := range objects {
			if mine(o.GroupVersionKind().Group) {
				require.Contains(t, r, o.GroupVersionKind().GroupKind(), file)
				out[file+": "+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
			}
		}
	}
	return out
}

// Validator returns a function that applies an object to a cluster in the same way
// as meshctl, as a dry run.
func (r Rendered) Validator(t testing.TB, cluster *local.Cluster) func(context.Context, *unstructured.Unstructured) error {
	t.Helper()
	config, err := cluster.Config()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return func(ctx context.Context, o *unstructured.Unstructured) error {
		kind, ok := r[o.GroupVersionKind().GroupKind()]
		if !ok {
			return &meta.NoKindMatchError{GroupKind: o.GroupVersionKind().GroupKind()}
		}
		_, err := client.Resource(kind).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{
			FieldManager: "meshctl", Force: true, DryRun: []string{metav1.DryRunAll},
		})
		return err
	}
}

// Namespaces creates the namespaces of objects, with labels.
func Namespaces(ctx context.Context, t testing.TB, cluster *local.Cluster, objects map[string]*unstructured.Unstructured, labels map[string]string) {
	t.Helper()
	client, err := cluster.Client()
	require.NoError(t, err)
	namespaces := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.GetNamespace()},
		}}
		namespace.SetLabels(labels)
		namespaces[o.GetNamespace()] = namespace
	}
	require.NoError(t, client.Apply(ctx, slices.Collect(maps.Values(namespaces))...))
}

package smi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
)

var sandbox sandboxtest.Sandbox

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m)) }

// golden has what is rendered for every case.
const golden = "../../../testdata/translate"

// rendered are the kinds that this package makes.
var rendered = map[string]schema.GroupVersionResource{
	"TrafficSplit":   {Group: "split.smi-spec.io", Version: "v1alpha2", Resource: "trafficsplits"},
	"TrafficTarget":  {Group: "access.smi-spec.io", Version: "v1alpha3", Resource: "traffictargets"},
	"HTTPRouteGroup": {Group: "specs.smi-spec.io", Version: "v1alpha4", Resource: "httproutegroups"},
	"TCPRoute":       {Group: "specs.smi-spec.io", Version: "v1alpha4", Resource: "tcproutes"},
}

// TestOSMTakesWhatIsRendered: an API server with the definitions of Open Service
// Mesh and a running osm-controller accept every object of every golden case.
func TestOSMTakesWhatIsRendered(t *testing.T) {
	helper := sandbox.OSM(t) // which may take longer than all else
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cluster := sandbox.Clusters(t, 1)[0]
	require.NoError(t, cluster.InstallOSM(ctx, local.OSMOptions{Helper: helper}))
	config, err := cluster.Config()
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	core, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	all := outputs(t)
	namespaces := map[string]bool{"judged": true}
	for _, o := range all {
		namespaces[o.GetNamespace()] = true
	}
	for name := range namespaces {
		// The controller judges what is in namespaces of its mesh.
		_, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"openservicemesh.io/monitored-by": "osm"},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, wrong := range wrongs(t) {
		err := apply(ctx, objects, wrong.object)
		require.ErrorContains(t, err, wrong.says, "nobody judges, so nothing is proved")
	}

	kinds := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		assert.NoError(t, apply(ctx, objects, all[name]), name)
		kinds[all[name].GetKind()]++
	}
	t.Logf("%v", kinds)
	assert.Len(t, kinds, len(rendered), "a kind is in no golden case")
}

type wrong struct {
	object *unstructured.Unstructured
	says   string
}

// wrongs are what the controller's webhook has to refuse, and what the
// definitions have to.
func wrongs(t *testing.T) []wrong {
	t.Helper()
	return []wrong{
		{decode(t, `
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: wrong, namespace: judged}
spec:
  destination: {kind: ServiceAccount, name: a, namespace: other}
  rules: [{kind: HTTPRouteGroup, name: a}]
  sources: [{kind: ServiceAccount, name: b, namespace: judged}]
`), `admission webhook "osm-validator.k8s.io" denied the request: The traffic target namespace (judged) must match`},
		{decode(t, `
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: wrong, namespace: judged}
spec:
  matches: [{name: a, pathRegex: /, methods: [MOVE]}]
`), `Unsupported value: "MOVE"`},
	}
}

func decode(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
	return o
}

// apply asks the API server to take an object, without keeping it.
func apply(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	_, err := client.Resource(rendered[o.GetKind()]).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{
		FieldManager: "meshctl", Force: true, DryRun: []string{metav1.DryRunAll},
	})
	return err
}

// outputs are the objects of all golden cases that go to OSM meshes, by file and name.
func outputs(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	files, err := fs.Glob(os.DirFS(golden), "*/out/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
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
				require.Contains(t, rendered, o.GetKind(), file)
				out[fmt.Sprintf("%s: %s %s/%s", file, o.GetKind(), o.GetNamespace(), o.GetName())] = o
			}
		}
	}
	return out
}

package osm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
)

// rendered are the kinds that this package makes.
var rendered = sandboxtest.Rendered{
	{Group: "split.smi-spec.io", Kind: "TrafficSplit"}:   {Group: "split.smi-spec.io", Version: "v1alpha2", Resource: "trafficsplits"},
	{Group: "access.smi-spec.io", Kind: "TrafficTarget"}: {Group: "access.smi-spec.io", Version: "v1alpha3", Resource: "traffictargets"},
	{Group: "specs.smi-spec.io", Kind: "HTTPRouteGroup"}: {Group: "specs.smi-spec.io", Version: "v1alpha4", Resource: "httproutegroups"},
	{Group: "specs.smi-spec.io", Kind: "TCPRoute"}:       {Group: "specs.smi-spec.io", Version: "v1alpha4", Resource: "tcproutes"},
}

// TestOSMTakesWhatIsRendered: an API server with the definitions of Open Service
// Mesh and a running osm-controller accept every object of every golden case.
func TestOSMTakesWhatIsRendered(t *testing.T) {
	shard.Only(t, shard.OSM)
	helper := sandboxtest.OSM(t) // which may take longer than all else
	ctx := t.Context()
	cluster := sandboxtest.Clusters(t, 1)[0]
	require.NoError(t, cluster.InstallOSM(ctx, local.OSMOptions{Helper: helper}))
	judge := rendered.Validator(t, cluster)
	objects := rendered.Read(t, "../../../testdata/translate/*/out/*/*.yaml", func(group string) bool {
		return strings.HasSuffix(group, ".smi-spec.io")
	})
	wrongs := wrongs(t)
	for _, wrong := range wrongs {
		objects[wrong.says] = wrong.object
	}
	// The controller judges what is in namespaces of its mesh.
	sandboxtest.Namespaces(ctx, t, cluster, objects, map[string]string{"openservicemesh.io/monitored-by": "osm"})
	for _, wrong := range wrongs {
		delete(objects, wrong.says)
		require.ErrorContains(t, judge(ctx, wrong.object), wrong.says, "nobody judges, so nothing is proved")
	}

	kinds := map[string]int{}
	for name, o := range objects {
		assert.NoError(t, judge(ctx, o), name)
		kinds[o.GetKind()]++
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

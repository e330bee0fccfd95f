package istio_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
)

// rendered are the kinds that this package makes.
var rendered = sandboxtest.Rendered{
	{Group: "networking.istio.io", Kind: "VirtualService"}:    istioResource("v1", "virtualservices"),
	{Group: "networking.istio.io", Kind: "DestinationRule"}:   istioResource("v1", "destinationrules"),
	{Group: "networking.istio.io", Kind: "ServiceEntry"}:      istioResource("v1", "serviceentries"),
	{Group: "networking.istio.io", Kind: "Gateway"}:           istioResource("v1", "gateways"),
	{Group: "networking.istio.io", Kind: "Sidecar"}:           istioResource("v1", "sidecars"),
	{Group: "networking.istio.io", Kind: "EnvoyFilter"}:       istioResource("v1alpha3", "envoyfilters"),
	{Group: "security.istio.io", Kind: "AuthorizationPolicy"}: {Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"},
}

func istioResource(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "networking.istio.io", Version: version, Resource: resource}
}

// TestIstioTakesWhatIsRendered: an API server with Istio's definitions and a
// running istiod accept every object of every golden case.
func TestIstioTakesWhatIsRendered(t *testing.T) {
	shard.Only(t, shard.Proof)
	ctx := t.Context()
	cluster := sandboxtest.Clusters(t, 1)[0]
	require.NoError(t, cluster.InstallIstio(ctx, local.IstioOptions{}))
	judge := rendered.Validator(t, cluster)
	wrong := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{"name": "wrong", "namespace": "default"},
		"spec": map[string]any{"hosts": []any{"wrong"}, "http": []any{map[string]any{
			"match": []any{map[string]any{"uri": map[string]any{"regex": "("}}},
			"route": []any{map[string]any{"destination": map[string]any{"host": "wrong"}}},
		}}},
	}}
	require.ErrorContains(t, judge(ctx, wrong), "denied the request", "istiod does not judge, so nothing is proved")

	objects := rendered.Read(t, "../../../testdata/translate/*/out/*/*.yaml", func(group string) bool {
		// The others are the management plane's, and what package smi renders.
		return !strings.HasSuffix(group, ".solo.io") && !strings.HasSuffix(group, ".smi-spec.io")
	})
	sandboxtest.Namespaces(ctx, t, cluster, objects, nil)
	kinds := map[string]int{}
	for name, o := range objects {
		assert.NoError(t, judge(ctx, o), name)
		kinds[o.GetKind()]++
	}
	t.Logf("%v", kinds)
	assert.Len(t, kinds, len(rendered), "a kind is in no golden case")
}

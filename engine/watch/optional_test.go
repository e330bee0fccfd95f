package watch_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestAKindThatComesWithAMeshMayBeAbsent: its cluster is synced without it, and
// gets it, and loses it, as its CRD comes and goes.
func TestAKindThatComesWithAMeshMayBeAbsent(t *testing.T) {
	t.Parallel()
	management := installed(t)
	server := sandboxtest.APIServers(t, 1)[0]
	config, err := server.Config()
	require.NoError(t, err)
	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	w.Set("west", "", config, nil)
	before := w.is("west", snapshot.Synced)
	assert.Empty(t, before.OfMeshes[snapshot.MeshConfig])

	crds := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	crd, err := crds.Create(t.Context(), looseCRD(snapshot.MeshConfig), metav1.CreateOptions{})
	require.NoError(t, err)
	createOSMConfig(t, config)
	with := named(w.until("the MeshConfig", func(i *snapshot.Input) bool { return len(named(i, "west").OfMeshes[snapshot.MeshConfig]) == 1 }), "west")
	assert.Equal(t, snapshot.Synced, with.Sync)
	settings, ok := with.OfMeshes[snapshot.MeshConfig][0].(*osmconfigv1alpha2.MeshConfig)
	require.True(t, ok)
	assert.True(t, settings.Spec.Traffic.EnablePermissiveTrafficPolicyMode)
	assert.Empty(t, settings.Spec.Observability.OSMLogLevel, "what nobody reads is not kept")
	assert.Less(t, refusals(t, server.AuditLog(), "meshconfigs"), 12, "questions while there was none")

	require.NoError(t, crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}))
	without := named(w.until("no MeshConfig", func(i *snapshot.Input) bool { return len(named(i, "west").OfMeshes[snapshot.MeshConfig]) == 0 }), "west")
	assert.Equal(t, snapshot.Synced, without.Sync)
	createService(t, config, "later")
	assert.Equal(t, snapshot.Synced, w.hasService("west", "later").Sync)
	assert.NotContains(t, w.log.String(), "meshconfigs", "nothing is wrong")
}

// looseCRD serves a kind whose objects may hold anything.
func looseCRD(k snapshot.Kind) *apiextensionsv1.CustomResourceDefinition {
	info := k.Info()
	yes := true
	loose := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: info.Resource + "." + info.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: info.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: info.Kind, Plural: info.Resource, ListKind: info.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: info.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &loose},
			}},
		},
	}
}

// createOSMConfig makes the settings of an Open Service Mesh as soon as they may be made.
func createOSMConfig(t *testing.T, config *rest.Config) {
	t.Helper()
	info := snapshot.MeshConfig.Info()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "osm-mesh-config", "namespace": "default"},
		"spec": map[string]any{
			"traffic":       map[string]any{"enablePermissiveTrafficPolicyMode": true},
			"observability": map[string]any{"osmLogLevel": "trace"},
		},
	}}
	o.SetGroupVersionKind(info.GroupVersionKind)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := client.Resource(snapshot.MeshConfig.GroupVersionResource()).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		assert.NoError(c, err)
	}, waittest.Limit(), 50*time.Millisecond)
}

// refusals counts how often an API server answered that there is no such resource.
func refusals(t *testing.T, auditLog, resource string) int {
	t.Helper()
	raw, err := os.ReadFile(auditLog)
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(raw)) {
		var e struct {
			Verb           string
			ObjectRef      struct{ Resource string }
			ResponseStatus struct{ Code int }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.ObjectRef.Resource == resource && e.ResponseStatus.Code == 404 && (e.Verb == "list" || e.Verb == "watch") {
			count++
		}
	}
	return count
}

// TestAnObjectOfANewerMeshIsLeftOut: a value that this program does not know
// makes one object unreadable, not its cluster.
func TestAnObjectOfANewerMeshIsLeftOut(t *testing.T) {
	t.Parallel()
	management := installed(t)
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions().
		Create(t.Context(), looseCRD(snapshot.ServiceEntry), metav1.CreateOptions{})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	entries := client.Resource(snapshot.ServiceEntry.GroupVersionResource()).Namespace("default")
	create := func(name, resolution string) *unstructured.Unstructured {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"hosts": []any{name}, "resolution": resolution},
		}}
		o.SetGroupVersionKind(snapshot.ServiceEntry.Info().GroupVersionKind)
		var made *unstructured.Unstructured
		waittest.NoError(t, name+" is created", func() (err error) {
			made, err = entries.Create(t.Context(), o, metav1.CreateOptions{})
			return err
		})
		return made
	}
	edit := func(o *unstructured.Unstructured, resolution string) *unstructured.Unstructured {
		t.Helper()
		require.NoError(t, unstructured.SetNestedField(o.Object, resolution, "spec", "resolution"))
		o, err := entries.Update(t.Context(), o, metav1.UpdateOptions{})
		require.NoError(t, err)
		return o
	}
	create("a", "DNS")
	b := create("b", "TELEPATHY")

	w := start(t, management, watch.Options{Namespace: namespace(t, management)})
	w.Set("west", "", config, nil)
	reads := func(what string, failures string, names ...string) {
		t.Helper()
		w.until(what, func(i *snapshot.Input) bool {
			var have []string
			for _, o := range named(i, "west").OfMeshes[snapshot.ServiceEntry] {
				have = append(have, o.GetName())
			}
			var failed []string
			for _, f := range i.Failures {
				failed = append(failed, f.Ref.Name+": "+f.Reason.String())
			}
			return assert.ObjectsAreEqual(names, have) && len(failed) == min(1, len(failures)) && strings.Contains(strings.Join(failed, ""), failures)
		})
		assert.Equal(t, snapshot.Synced, named(w.Input(), "west").Sync)
	}
	reads("the list", "it is ignored", "a")
	c := create("c", "STATIC")
	reads("an event", "it is ignored", "a", "c")
	b = edit(b, "DNS")
	reads("b that can be read", "", "a", "b", "c")
	edit(b, "TELEPATHY")
	reads("b as it was before", `TELEPATHY`, "a", "b", "c")
	edit(c, "NONE")
	require.NoError(t, entries.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	reads("no b", "", "a", "c")
}

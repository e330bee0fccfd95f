package crds_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/api/scheme"
)

const fixtures = "../../../testdata/api"

// fixture is a manifest of testdata/api.
type fixture struct {
	name string
	data []byte
	// expect are parts of the API server's answer, from lines "# expect: ...".
	expect []string
	object *unstructured.Unstructured
}

func readFixtures(t *testing.T, folder string) []fixture {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(fixtures, folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := make([]fixture, 0, len(paths))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		f := fixture{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), data: data, object: &unstructured.Unstructured{}}
		for line := range strings.Lines(string(data)) {
			if sentence, ok := strings.CutPrefix(line, "# expect: "); ok {
				f.expect = append(f.expect, strings.TrimSpace(sentence))
			}
		}
		require.NoError(t, yaml.UnmarshalStrict(data, &f.object.Object), path)
		all = append(all, f)
	}
	return all
}

// What a user writes comes back unchanged from the Go types: no field is missing there, renamed or of another shape.
func TestAcceptedFixturesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, f := range readFixtures(t, "accepted") {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			object, err := scheme.New().New(f.object.GroupVersionKind())
			require.NoError(t, err)
			require.NoError(t, yaml.UnmarshalStrict(f.data, object))

			want, err := yaml.YAMLToJSON(f.data)
			require.NoError(t, err)
			// An empty spec says the same as none, and none is what Go writes.
			want = bytes.Replace(want, []byte(`,"spec":{}`), nil, 1)
			got, err := json.Marshal(object)
			require.NoError(t, err)
			assert.JSONEq(t, string(want), string(got))
			assert.Equal(t, object, object.DeepCopyObject())

			// Server-side apply goes by way of unstructured objects.
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			require.NoError(t, err)
			got, err = json.Marshal(content)
			require.NoError(t, err)
			assert.JSONEq(t, string(want), string(got))
			back, err := scheme.New().New(f.object.GroupVersionKind())
			require.NoError(t, err)
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, back, true))
			assert.Equal(t, object, back)
		})
	}
}

func TestFixturesCoverEveryKind(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"accepted", "refused"} {
		seen := map[string]bool{}
		for _, f := range readFixtures(t, folder) {
			seen[f.object.GroupVersionKind().GroupKind().String()] = true
			if folder == "refused" {
				assert.NotEmpty(t, f.expect, "%s: write what the API server answers as # expect: ...", f.name)
			}
		}
		for _, crd := range all(t) {
			kind := crd.Spec.Names.Kind + "." + crd.Spec.Group
			assert.True(t, seen[kind], "testdata/api/%s has no manifest of %s; add one", folder, kind)
		}
	}
}

// Together the accepted fixtures use every field that the schemas know, so that the tests around them leave none out. A
// message that occurs in many places, such as a selector, is looked at by the name of the field that holds it.
func TestFixturesCoverEveryField(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, f := range readFixtures(t, "accepted") {
		usedFields(f.object.Object["spec"], "spec", used)
		usedFields(f.object.Object["status"], "status", used)
	}
	for _, crd := range all(t) {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			for _, field := range schemaFields(schema.Properties[part], part) {
				names := strings.Split(strings.ReplaceAll(field.path, "[]", ""), ".")
				parent, name := names[len(names)-2], names[len(names)-1]
				assert.True(t, name == "*" || used[parent+"."+name],
					"%s: no manifest of testdata/api/accepted uses %s", crd.Name, field.path)
			}
		}
	}
}

// usedFields adds each field in value to used, after the name of the field that holds it. The holder may also be a map,
// which schemaFields writes as *.
func usedFields(value any, holder string, used map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			used[holder+"."+name] = true
			used["*."+name] = true
			usedFields(inner, name, used)
		}
	case []any:
		for _, inner := range value {
			usedFields(inner, holder, used)
		}
	}
}

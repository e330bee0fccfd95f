package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/admission"
)

// fixtures are the manifests that a real API server accepts and refuses in the
// tests of engine/api/crds.
func fixtures(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../testdata/api", folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	out := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(path), ".yaml")] = data
	}
	return out
}

func check(t *testing.T, checker *admission.Checker, manifest []byte) []admission.Complaint {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(manifest, object))
	before := object.DeepCopy()
	complaints, err := checker.Check(object)
	require.NoError(t, err)
	assert.Equal(t, before, object, "a check changes nothing")
	return complaints
}

func TestAcceptsWhatAPIServersAccept(t *testing.T) {
	t.Parallel()
	checker := admission.NewChecker()
	for name, manifest := range fixtures(t, "accepted") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, check(t, checker, manifest))
		})
	}
}

// The sentences are those that the tests of engine/api/crds expect of a real API server.
func TestRefusesWhatAPIServersRefuseInTheirWords(t *testing.T) {
	t.Parallel()
	checker := admission.NewChecker()
	for name, manifest := range fixtures(t, "refused") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := admission.Error(check(t, checker, manifest))
			require.Error(t, err)
			for line := range strings.Lines(string(manifest)) {
				if want, ok := strings.CutPrefix(strings.TrimSpace(line), "# expect: "); ok {
					assert.ErrorContains(t, err, want)
				}
			}
		})
	}
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\n"
	cases := map[string]struct {
		manifest string
		want     []string
	}{
		"nothing wrong": {head + "metadata: {name: slow, namespace: bookinfo}\n", nil},
		"a name that cannot be": {
			head + "metadata: {name: Slow_1, namespace: bookinfo}\n",
			[]string{`metadata.name: "Slow_1" is no name: one has lower-case letters, digits, - and . only`},
		},
		"no name": {
			head + "metadata: {namespace: bookinfo}\n",
			[]string{"metadata.name: Required value: name or generateName is required"},
		},
		"a field that is not there, and one of a wrong type": {
			head + "metadata: {name: slow, namespace: bookinfo}\nspec: {policy: {timeout: 3s, retries: {attempts: many}}}\n",
			[]string{
				`spec.policy.retries.attempts: must be of type integer: "string"`,
				`spec.policy.timeout: unknown field "spec.policy.timeout"; correct the spelling or the indentation`,
			},
		},
		"a broken rule": {
			head + "metadata: {name: slow, namespace: bookinfo}\nspec: {policy: {requestTimeout: soon}}\n",
			[]string{"spec.policy.requestTimeout: must be a duration: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"},
		},
		"out of bounds": {
			head + "metadata: {name: slow, namespace: bookinfo}\nspec: {policy: {outlierDetection: {maxEjectionPercent: 101}}}\n",
			[]string{"spec.policy.outlierDetection.maxEjectionPercent: should be less than or equal to 100"},
		},
	}
	checker := admission.NewChecker()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complaints := check(t, checker, []byte(c.manifest))
			require.Len(t, complaints, len(c.want), "%v", complaints)
			for i := range c.want {
				assert.Contains(t, complaints[i].String(), c.want[i])
			}
		})
	}
}

func TestUnknownKind(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("apiVersion: v1\nkind: Pod\n"), object))
	_, err := admission.NewChecker().Check(object)
	require.ErrorContains(t, err, "Kind=Pod is not a kind of meshctl; correct apiVersion and kind")
}

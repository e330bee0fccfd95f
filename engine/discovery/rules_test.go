package discovery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseImage(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]Image{
		"registry.example/istio/pilot:1.31.1":             {"istio/pilot", "1.31.1"},
		"istio/pilot:1.31.1-distroless":                   {"istio/pilot", "1.31.1-distroless"},
		"registry:5000/mirror/pilot@" + someDigest:        {"mirror/pilot", someDigest},
		"registry.example/istio/pilot:1.31@" + someDigest: {"istio/pilot", "1.31"},
		"registry.example:5000/a/b/istio-pilot":           {"a/b/istio-pilot", ""},
		"pilot":                                           {"library/pilot", ""},
		"[2001:db8::1]:5000/istio/proxyv2:1.31.1-abc":     {"istio/proxyv2", "1.31.1-abc"},
	} {
		got, ok := ParseImage(ref)
		assert.True(t, ok, ref)
		assert.Equal(t, want, got, ref)
	}
	for _, ref := range []string{"", "auto:", "lower/UPPER", "a b", "istio/pilot@sha256:short", "https://istio/pilot"} {
		_, ok := ParseImage(ref)
		assert.False(t, ok, ref)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	revisions := func(list ...string) *detected {
		d := &detected{Detector: Detector{Name: "Istio", RevisionName: "revision", Fix: "restart it"}}
		for _, r := range list {
			d.controlPlanes = append(d.controlPlanes, &ControlPlane{Revision: r, Mesh: &discoveryv1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "istiod-" + r}}})
		}
		return d
	}
	for name, c := range map[string]struct {
		detected *detected
		claim    Claim
		want     string
		code     snapshot.Code
	}{
		"its revision":                 {revisions("default", "new"), Claim{Revision: "new"}, "new", ""},
		"silent, one mesh":             {revisions("new"), Claim{Requested: true}, "new", ""},
		"silent, two meshes":           {revisions("default", "new"), Claim{Requested: true}, "", snapshot.AmbiguousMesh},
		"two of its revision":          {revisions("default", "default"), Claim{Revision: "default"}, "", snapshot.AmbiguousMesh},
		"a tag, one mesh":              {revisions("new"), Claim{Revision: "prod", Requested: true}, "new", ""},
		"a tag, two meshes":            {revisions("default", "new"), Claim{Revision: "prod", Requested: true}, "", snapshot.WorkloadWithoutMesh},
		"revision gone, one mesh left": {revisions("new"), Claim{Revision: "old"}, "new", snapshot.WorkloadWithoutMesh},
		"revision gone, two left":      {revisions("default", "new"), Claim{Revision: "old"}, "", snapshot.WorkloadWithoutMesh},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.detected.resolve(c.claim)
			assert.Equal(t, c.code, got.code)
			assert.Equal(t, c.code != "", got.message != "" && got.hint != "", "an issue has words, and only an issue")
			if c.want == "" {
				assert.Nil(t, got.plane)
				return
			}
			require.NotNil(t, got.plane)
			assert.Equal(t, c.want, got.plane.Revision)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	source := func(namespace, name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.Service, Cluster: "c", Namespace: namespace, Name: name}
	}
	long := strings.Repeat("a", 31) + "-" + strings.Repeat("b", 31)
	n := newNames(snapshot.Destination, 0)
	seen := map[string]bool{}
	for i, c := range []struct{ name, namespace string }{{"x", "a"}, {"x", "b"}, {"x", "c"}, {long, "a"}, {long, "b"}} {
		got := n.claim(c.name, source(c.namespace, c.name))
		first := i == 0 || i == 3
		assert.Equal(t, first, got == c.name)
		assert.Equal(t, !first, isHashedName(got, c.name))
		assert.False(t, seen[got], "%s was given twice", got)
		assert.Empty(t, validation.IsDNS1123Label(got))
		seen[got] = true
	}
	assert.Equal(t, "a-b-c", objectName("a.b", "c"))
	for name, want := range map[string]bool{
		"a-b-0123456789ab": true, "a-b-01234567": true, "a-b": false, "a-b-0123456789": false,
		"a-b-0123456789AB": false, "a-b-x123456789ab": false, "a-c-0123456789ab": false,
	} {
		assert.Equal(t, want, isHashedName(name, "a-b"), name)
	}
}

func TestSubsets(t *testing.T) {
	t.Parallel()
	type labels = map[string]string
	for name, c := range map[string]struct {
		workloads []labels
		want      map[string]discoveryv1.KubeServiceSubsets
	}{
		"one workload":       {[]labels{{"version": "v1"}}, nil},
		"alike":              {[]labels{{"version": "v1"}, {"version": "v1"}}, nil},
		"values ascend":      {[]labels{{"version": "v2"}, {"version": "v1"}, {"version": "v2"}}, map[string]discoveryv1.KubeServiceSubsets{"version": {Values: []string{"v1", "v2"}}}},
		"a missing label":    {[]labels{{"version": "v1"}, {}}, nil},
		"generated labels":   {[]labels{{"pod-template-hash": "1", "service.istio.io/canonical-revision": "1"}, {"pod-template-hash": "2", "service.istio.io/canonical-revision": "2"}}, nil},
		"an empty value too": {[]labels{{"tier": ""}, {"tier": "x"}}, map[string]discoveryv1.KubeServiceSubsets{"tier": {Values: []string{"", "x"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var backing []*workload
			for _, l := range c.workloads {
				backing = append(backing, &workload{controller: &controller{template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}}}})
			}
			assert.Equal(t, c.want, subsets(backing, []string{"service.istio.io/canonical-revision"}))
		})
	}
}

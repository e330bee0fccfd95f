package discovery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestOnlyArgumentsThatAreReadAreKept(t *testing.T) {
	t.Parallel()
	controller := &corev1.Container{
		Name: "osm-controller",
		Args: []string{"--vault-token", "hush", "--trust-domain", "a.example", "--mesh-name=one", "--mesh-name", "two", "--trust-domain-x=b"},
	}
	kept := osmArgs(controller)
	assert.Equal(t, []string{"--mesh-name=two", "--trust-domain=a.example"}, kept)
	controller.Args = kept
	assert.Equal(t, kept, osmArgs(controller), "twice is once")
	controller.Args = []string{"--trust-domain"}
	assert.Empty(t, osmArgs(controller), "a flag without a value")
	assert.Empty(t, osmArgs(&corev1.Container{Name: "app", Args: []string{"--trust-domain=a"}}))
}

func FuzzFlag(f *testing.F) {
	for _, seed := range []string{"", "--trust-domain", "--trust-domain=", "--trust-domain=--trust-domain"} {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		c := &corev1.Container{Name: osmControllerName, Args: []string{first, second}}
		kept := osmArgs(c)
		c.Args = kept
		assert.Equal(t, kept, osmArgs(c))
	})
}

func TestOSMSidecar(t *testing.T) {
	t.Parallel()
	w := &Index{Namespaces: map[string]*corev1.Namespace{"in": {}, "out": {}}}
	w.Namespaces["in"].Labels = map[string]string{osmMonitorKey: "osm"}
	pod := func(namespace, label string, containers ...string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace = namespace
		if label != "" {
			p.Labels = map[string]string{osmProxyKey: label}
		}
		for _, name := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "mirror.example/proxy"})
		}
		return p
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want Claim
		is   bool
	}{
		"monitored":           {pod("in", "id", "app", "envoy"), Claim{Revision: "osm"}, true},
		"namespace not known": {pod("else", "id", "envoy"), Claim{}, true},
		"an Envoy of its own": {pod("in", "", "envoy"), Claim{}, false},
		"a label alone":       {pod("in", "id", "app"), Claim{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, is := osmSidecar(w, c.pod)
			assert.Equal(t, c.is, is)
			assert.Equal(t, c.want, got)
		})
	}
	left, is := osmSidecar(w, pod("out", "id", "envoy"))
	assert.True(t, is)
	assert.NotEmpty(t, left.Doubt)
}

package osm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/discovery"
)

func TestOnlyArgumentsThatAreReadAreKept(t *testing.T) {
	t.Parallel()
	controller := &corev1.Container{
		Name: "osm-controller",
		Args: []string{"--vault-token", "hush", "--trust-domain", "a.example", "--mesh-name=one", "--mesh-name", "two", "--trust-domain-x=b"},
	}
	kept := argsRead(controller)
	assert.Equal(t, []string{"--mesh-name=two", "--trust-domain=a.example"}, kept)
	controller.Args = kept
	assert.Equal(t, kept, argsRead(controller), "twice is once")
	controller.Args = []string{"--trust-domain"}
	assert.Empty(t, argsRead(controller), "a flag without a value")
	assert.Empty(t, argsRead(&corev1.Container{Name: "app", Args: []string{"--trust-domain=a"}}))
}

func FuzzFlag(f *testing.F) {
	for _, seed := range []string{"", "--trust-domain", "--trust-domain=", "--trust-domain=--trust-domain"} {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		c := &corev1.Container{Name: controllerName, Args: []string{first, second}}
		kept := argsRead(c)
		c.Args = kept
		assert.Equal(t, kept, argsRead(c))
	})
}

func TestOSMSidecar(t *testing.T) {
	t.Parallel()
	w := &discovery.Index{Namespaces: map[string]*corev1.Namespace{"in": {}, "out": {}}}
	w.Namespaces["in"].Labels = map[string]string{monitorKey: "osm"}
	pod := func(namespace, label string, containers ...string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace = namespace
		if label != "" {
			p.Labels = map[string]string{proxyKey: label}
		}
		for _, name := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "mirror.example/proxy"})
		}
		return p
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want discovery.Claim
		is   bool
	}{
		"monitored":           {pod("in", "id", "app", "envoy"), discovery.Claim{Revision: "osm"}, true},
		"namespace not known": {pod("else", "id", "envoy"), discovery.Claim{}, true},
		"an Envoy of its own": {pod("in", "", "envoy"), discovery.Claim{}, false},
		"a label alone":       {pod("in", "id", "app"), discovery.Claim{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, is := sidecarOf(w, c.pod)
			assert.Equal(t, c.is, is)
			assert.Equal(t, c.want, got)
		})
	}
	left, is := sidecarOf(w, pod("out", "id", "envoy"))
	assert.True(t, is)
	assert.NotEmpty(t, left.Doubt)
}

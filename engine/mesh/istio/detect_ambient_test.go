package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
)

func TestModeOfPods(t *testing.T) {
	t.Parallel()
	asks := map[string]string{"istio.io/dataplane-mode": "ambient"}
	optsOut := map[string]string{"istio.io/dataplane-mode": "none"}
	for name, c := range map[string]struct {
		namespace, pod map[string]string
		annotation     string
		hostNetwork    bool
		unknown        bool // the namespace is not known
		want           discoveryv1.DataPlaneMode
	}{
		"nothing":                             {},
		"redirected":                          {annotation: "enabled", want: discoveryv1.ModeAmbient},
		"redirected, although it opts out":    {pod: optsOut, annotation: "enabled", want: discoveryv1.ModeAmbient},
		"redirection has not ended":           {namespace: asks, annotation: "pending", want: discoveryv1.ModePending},
		"redirection of something else":       {annotation: "disabled"},
		"namespace asks":                      {namespace: asks, want: discoveryv1.ModePending},
		"namespace asks, the pod opts out":    {namespace: asks, pod: optsOut},
		"pod asks":                            {pod: asks, want: discoveryv1.ModePending},
		"pod asks, the namespace does not":    {namespace: optsOut, pod: asks, want: discoveryv1.ModePending},
		"pod asks, in an unknown namespace":   {unknown: true, pod: asks, want: discoveryv1.ModePending},
		"network of the node":                 {namespace: asks, hostNetwork: true},
		"a label with another value":          {namespace: map[string]string{"istio.io/dataplane-mode": "Ambient"}},
		"the network of the node, redirected": {annotation: "enabled", hostNetwork: true, want: discoveryv1.ModeAmbient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: c.namespace}}
			if c.unknown {
				ns = nil
			}
			pod := &metav1.ObjectMeta{Labels: c.pod, Annotations: map[string]string{"ambient.istio.io/redirection": c.annotation}}
			assert.Equal(t, c.want, ambientMode(ns, pod, &corev1.PodSpec{HostNetwork: c.hostNetwork}))
		})
	}
}

func TestWaypointThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespace, service map[string]string
		want               *discoveryv1.Waypoint
	}{
		"none":              {},
		"of the namespace":  {namespace: map[string]string{"istio.io/use-waypoint": "a"}, want: &discoveryv1.Waypoint{Name: "a", Namespace: "shop"}},
		"of the service":    {namespace: map[string]string{"istio.io/use-waypoint": "a"}, service: map[string]string{"istio.io/use-waypoint": "b"}, want: &discoveryv1.Waypoint{Name: "b", Namespace: "shop"}},
		"the service opts":  {namespace: map[string]string{"istio.io/use-waypoint": "a"}, service: map[string]string{"istio.io/use-waypoint": "none"}},
		"elsewhere":         {service: map[string]string{"istio.io/use-waypoint": "b", "istio.io/use-waypoint-namespace": "edge"}, want: &discoveryv1.Waypoint{Name: "b", Namespace: "edge"}},
		"namespace, apart":  {namespace: map[string]string{"istio.io/use-waypoint": "a", "istio.io/use-waypoint-namespace": "edge"}, want: &discoveryv1.Waypoint{Name: "a", Namespace: "edge"}},
		"of each its own":   {namespace: map[string]string{"istio.io/use-waypoint-namespace": "edge"}, service: map[string]string{"istio.io/use-waypoint": "b"}, want: &discoveryv1.Waypoint{Name: "b", Namespace: "shop"}},
		"only a namespace":  {service: map[string]string{"istio.io/use-waypoint-namespace": "edge"}},
		"namespace opts":    {namespace: map[string]string{"istio.io/use-waypoint": "none"}},
		"an empty name":     {namespace: map[string]string{"istio.io/use-waypoint": "a"}, service: map[string]string{"istio.io/use-waypoint": ""}},
		"another namespace": {service: map[string]string{"istio.io/use-waypoint": "none", "istio.io/use-waypoint-namespace": "edge"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: c.namespace}}
			assert.Equal(t, c.want, waypointFor(ns, &metav1.ObjectMeta{Namespace: "shop", Labels: c.service}))
		})
	}
}

// TestEvidenceOfAmbientMode: it is in the namespace of the control plane.
func TestEvidenceOfAmbientMode(t *testing.T) {
	t.Parallel()
	ztunnel := func(b clustertest.Builder, namespace, image string) {
		b.DaemonSets = append(b.DaemonSets, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "node-proxy", Namespace: namespace},
			Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "istio-proxy", Image: image}}}}},
		})
	}
	for name, c := range map[string]struct {
		change func(clustertest.Builder, *appsv1.Deployment)
		want   *discoveryv1.IstioAmbient
	}{
		"nothing": {func(clustertest.Builder, *appsv1.Deployment) {}, nil},
		"a setting": {func(_ clustertest.Builder, d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PILOT_ENABLE_AMBIENT", Value: "true"}, {Name: "AMBIENT_ENABLE_MULTI_NETWORK", Value: "1"}}
		}, &discoveryv1.IstioAmbient{Evidence: "PILOT_ENABLE_AMBIENT of Deployment istio-system/istiod", MultiNetwork: true}},
		"it is off": {func(_ clustertest.Builder, d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PILOT_ENABLE_AMBIENT", Value: "false"}}
		}, nil},
		"a DaemonSet": {func(b clustertest.Builder, _ *appsv1.Deployment) {
			ztunnel(b, "istio-system", "registry.example/istio/ztunnel:1.31.1")
		}, &discoveryv1.IstioAmbient{Evidence: "DaemonSet istio-system/node-proxy"}},
		"another DaemonSet": {func(b clustertest.Builder, _ *appsv1.Deployment) {
			ztunnel(b, "istio-system", "registry.example/istio/install-cni:1.31.1")
		}, nil},
		"one that anyone can have made": {func(b clustertest.Builder, _ *appsv1.Deployment) {
			ztunnel(b, "shop", "registry.example/istio/ztunnel:1.31.1")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("east")
			c.change(b, b.Istiod("default"))
			found := discovery.Discover(b.Cluster, discovery.Options{Detectors: discovery.Detectors{Detector()}})
			assert.Len(t, found.Meshes, 1)
			assert.Equal(t, c.want, found.Meshes[0].Spec.Istio.Ambient)
		})
	}
}

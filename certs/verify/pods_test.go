package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestNewWorkload(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := &mesh{namespace: "istio-system", controlPlane: labels.Everything(), hosts: []string{"istiod.example.com"}}
	running := corev1.ContainerStatus{Name: proxyContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}}
	pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "a", Annotations: map[string]string{excludedPorts: "9090, 9091"}},
			Spec: corev1.PodSpec{ServiceAccountName: "reviews", Containers: []corev1.Container{
				{Name: "app", Ports: []corev1.ContainerPort{{ContainerPort: 9090}, {ContainerPort: 8080}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}}},
				{Name: proxyContainer, Env: []corev1.EnvVar{{Name: caAddress, Value: "istiod.istio-system.svc:15012"}}, Ports: []corev1.ContainerPort{{ContainerPort: 15090}}},
			}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{running}},
		}
		for _, c := range change {
			c(p)
		}
		return p
	}
	env := func(name, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[1].Env = append(p.Spec.Containers[1].Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	w, ok := m.newWorkload(pod(env(dynamicProxy, "true")), now)
	require.True(t, ok)
	assert.Equal(t, Workload{Namespace: "apps", Name: "a", Started: now, TTL: 24 * time.Hour, FollowsRoots: true, ip: "10.0.0.1", account: "reviews", ports: []uint16{8080}}, w)

	for address, want := range map[string]bool{
		"istiod-1-26.istio-system.svc:15012": true, "istiod.istio-system.svc.cluster.local:15012": true, "istiod.example.com:15012": true, "istiod.istio-system.svc": true,
		"istiod.other.svc:15012": false, "istiodx.istio-system.svc:15012": false, "": false, "istiod.istio-system.example.com:15012": false,
	} {
		_, ok := m.newWorkload(pod(env(caAddress, address)), now)
		assert.Equal(t, want, ok, address)
	}
	for value, want := range map[string]time.Duration{"1h": time.Hour, "often": 24 * time.Hour, "0s": 0, "-1h": 0} {
		w, _ := m.newWorkload(pod(env(secretTTL, value)), now)
		assert.Equal(t, want, w.TTL, value)
	}
	cases := map[string]struct {
		change          func(*corev1.Pod)
		counts, gateway bool
	}{
		"not ready": {func(*corev1.Pod) {}, true, false},
		"a native sidecar": {func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers[1:], p.Spec.Containers[:1]
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		}, true, false},
		"a gateway":         {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] }, true, true},
		"a router":          {func(p *corev1.Pod) { p.Spec.Containers[1].Args = []string{"proxy", "router"} }, true, true},
		"its node is lost":  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, true, false},
		"it ends":           {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }, true, false},
		"should have ended": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-2 * time.Minute)} }, false, false},
		"is not started":    {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, false, false},
		"waits after crash": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: proxyContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
		}, false, false},
		"is done":      {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false, false},
		"has no proxy": {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, false, false},
	}
	for name, c := range cases {
		w, ok := m.newWorkload(pod(c.change), now)
		assert.Equal(t, c.counts, ok, name)
		assert.Equal(t, c.gateway, w.Gateway, name)
	}
}

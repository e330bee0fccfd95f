package kind

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsOfARestartedNode(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 6, 1, 12, 0, 0, 700_000_000, time.UTC)
	running := func(at time.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Truncate(time.Second))}}}
	}
	waiting := corev1.ContainerStatus{Name: "other", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	for name, c := range map[string]struct {
		containers []corev1.ContainerStatus
		stale      bool
	}{
		"from before":          {[]corev1.ContainerStatus{running(begin.Add(-time.Minute))}, true},
		"one of them":          {[]corev1.ContainerStatus{running(begin.Add(time.Minute)), running(begin.Add(-time.Minute))}, true},
		"since, in the second": {[]corev1.ContainerStatus{running(begin.Add(100 * time.Millisecond))}, false},
		"it crashes":           {[]corev1.ContainerStatus{running(begin.Add(time.Minute)), waiting}, false},
		"nothing is known":     {nil, false},
	} {
		err := startedSince(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: c.containers}}, begin)
		assert.Equal(t, c.stale, err != nil, name)
	}
	assert.True(t, isAt([]string{"10.0.0.1"}, "10.0.0.1"))
	assert.False(t, isAt([]string{"10.0.0.1"}, "10.0.0.2"))
	assert.False(t, isAt([]string{"10.0.0.1"}, ""))
	assert.True(t, isAt([]string{"fd00::1"}, "10.0.0.2"), "of the other family")
}

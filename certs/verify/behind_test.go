package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// waited is a mesh whose control plane hands out next since two days, and one namespace does not take it up.
type waited struct {
	t         *testing.T
	now       time.Time
	old, next *pki.Authority
}

func newWaited(t *testing.T) *waited {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &waited{t, now, newRoot(t, now), newRoot(t, now)}
}

func (w *waited) ago(d time.Duration) time.Time { return w.now.Add(-d) }

func (w *waited) behind(since time.Time, leftOut bool) certificatesv1.NamespaceBehind {
	return certificatesv1.NamespaceBehind{Namespace: "tenant", Since: rootSince(w.old, since).Since, Workloads: 1, First: "tenant/b", LeftOut: leftOut}
}

func (w *waited) look(change func(*Request, *Observed)) Result {
	w.t.Helper()
	old, next, now, ago, mesh := w.old, w.next, w.now, w.ago, newMesh(w.t, w.now, w.old, w.next)
	signing := rootSince(old, ago(100*time.Hour))
	req := Request{
		Root: sum(old), Bundle: bundle(old, next), Secret: mesh, Namespace: "istio-system", Timeout: time.Hour,
		Earlier: &certificatesv1.TrustReport{
			Trusted: []string{sum(old)}, Presented: []string{sum(old)}, Signing: &signing,
			HandedOut: []certificatesv1.RootSince{rootSince(old, ago(100*time.Hour)), rootSince(next, ago(50*time.Hour))},
		},
	}
	o := Observed{
		Now: now, ControlPlane: []Replica{{Name: "istiod", Started: ago(200 * time.Hour), Answer: answer(mesh)}},
		Namespaces: map[string]pki.Bundle{"apps": bundle(old, next), "tenant": bundle(old, next), "istio-system": bundle(old, next)},
		Workloads: []Workload{
			{Namespace: "apps", Name: "a", Created: ago(time.Hour), Started: ago(time.Hour)},
			{Namespace: "tenant", Name: "b", Created: ago(99 * time.Hour), Started: ago(99 * time.Hour)},
		},
	}
	change(&req, &o)
	return Judge(req, o)
}

// TestANamespaceIsWaitedForForATime: next was handed out two days ago, and one namespace does not take it up.
func TestANamespaceIsWaitedForForATime(t *testing.T) {
	t.Parallel()
	w := newWaited(t)
	now, old, ago, behind, look, both := w.now, w.old, w.ago, w.behind, w.look, set([]string{sum(w.old), sum(w.next)})
	r := look(func(*Request, *Observed) {})
	assert.Equal(t, []certificatesv1.NamespaceBehind{behind(now, false)}, r.Behind)
	assert.Equal(t, []string{sum(old)}, r.Trusted)
	assert.Equal(t, int32(2), r.Trusting.Total)
	for name, change := range map[string]func(*Request, *Observed){
		"its time is over": func(req *Request, _ *Observed) {
			req.Earlier.Behind = []certificatesv1.NamespaceBehind{behind(ago(time.Hour), false)}
		},
		"it is left out": func(req *Request, _ *Observed) { req.LeaveOut = []string{"tenant"} },
		"it presents something else": func(req *Request, o *Observed) {
			req.LeaveOut = []string{"tenant"}
			o.Workloads[1].Seen = &Seen{Presents: "own", Client: sum(old), Accepts: Refused}
		},
		"its pod never ends": func(req *Request, o *Observed) {
			req.LeaveOut = []string{"tenant"}
			o.Workloads[1].Ending = true
		},
	} {
		r := look(change)
		require.Len(t, r.Behind, 1, name)
		assert.True(t, r.Behind[0].LeftOut, name)
		assert.Equal(t, both, r.Trusted, name)
		assert.Equal(t, []string{sum(old)}, r.Presented, name)
		assert.Equal(t, int32(1), r.Trusting.Total, name)
		assert.Equal(t, int32(1), r.Trusting.Done, name)
		ending := name == "its pod never ends"
		assert.Equal(t, !ending, len(r.NeedsWorkloads) == 1, "%s: it is restarted all the same", name)
	}
	for name, change := range map[string]func(*Request, *Observed){
		"its ConfigMap was edited": func(req *Request, o *Observed) {
			o.Namespaces["tenant"] = bundle(old)
			o.Workloads[1].Created, o.Workloads[1].Started = ago(time.Hour), ago(time.Hour)
			req.Earlier.Behind = []certificatesv1.NamespaceBehind{behind(ago(2*time.Hour), false)}
		},
		"its ConfigMap was deleted": func(req *Request, o *Observed) {
			delete(o.Namespaces, "tenant")
			req.LeaveOut = []string{"tenant"}
		},
	} {
		r := look(change)
		assert.True(t, LeftOut(r.Behind, "tenant"), name)
		assert.Equal(t, both, r.Trusted, name)
		assert.Equal(t, int32(1), r.Namespaces.Total, name)
	}
	for name, change := range map[string]func(*Request, *Observed){
		"there is time": func(req *Request, _ *Observed) {
			req.Earlier.Behind = []certificatesv1.NamespaceBehind{behind(ago(59*time.Minute), false)}
		},
		"waits for ever": func(req *Request, _ *Observed) {
			req.Timeout, req.Earlier.Behind = 0, []certificatesv1.NamespaceBehind{behind(ago(9999*time.Hour), false)}
		},
		"began in the future, by a clock that was wrong": func(req *Request, _ *Observed) {
			req.Earlier.Behind = []certificatesv1.NamespaceBehind{behind(now.Add(99*time.Hour), false)}
		},
		"the control plane's own": func(req *Request, o *Observed) {
			o.Workloads[1].Namespace, req.LeaveOut = "istio-system", []string{"istio-system"}
			req.Earlier.Behind = []certificatesv1.NamespaceBehind{{Namespace: "istio-system", Since: behind(ago(99*time.Hour), false).Since}}
		},
	} {
		r := look(change)
		require.Len(t, r.Behind, 1, name)
		assert.False(t, r.Behind[0].LeftOut, name)
		assert.Equal(t, []string{sum(old)}, r.Trusted, name)
	}
}

// TestWhenTheTimeOfANamespaceBegins and what ends it.
func TestWhenTheTimeOfANamespaceBegins(t *testing.T) {
	t.Parallel()
	w := newWaited(t)
	ago, behind := w.ago, w.behind
	// The time begins when the namespace could have it all.
	r := w.look(func(_ *Request, o *Observed) {
		o.ControlPlane[0].Answer = answer(newMesh(t, w.now, w.old))
	})
	assert.Empty(t, r.Behind)
	// Nothing is known while the control plane does not answer.
	r = w.look(func(req *Request, o *Observed) {
		o.ControlPlane[0].Answer = nil
		req.Earlier.Behind = []certificatesv1.NamespaceBehind{behind(ago(9999*time.Hour), false)}
	})
	assert.Equal(t, []certificatesv1.NamespaceBehind{behind(ago(9999*time.Hour), false)}, r.Behind)
	// Who has it is not left out.
	r = w.look(func(req *Request, o *Observed) {
		o.Workloads[1].Created = ago(time.Hour)
		req.LeaveOut, req.Earlier.Behind = []string{"tenant"}, []certificatesv1.NamespaceBehind{behind(ago(99*time.Hour), true)}
	})
	assert.Empty(t, r.Behind)
	assert.Equal(t, int32(2), r.Trusting.Done)
}

// TestPodsThatLookLikeProxies count only if the injector says to have made them, or if they are.
func TestPodsThatLookLikeProxies(t *testing.T) {
	t.Parallel()
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app"}, {Name: proxyContainer, Env: []corev1.EnvVar{{Name: caAddress, Value: "istiod.istio-system.svc:15012"}}},
		}}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: proxyContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		change(p)
		return p
	}
	m := mesh{namespace: "istio-system"}
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		injected bool
	}{
		"by hand":  {func(*corev1.Pod) {}, false},
		"injected": {func(p *corev1.Pod) { p.Annotations = map[string]string{injectedStatus: "{}"} }, true},
		"gateway":  {func(p *corev1.Pod) { p.Spec.Containers[1].Args = []string{"proxy", "router"} }, true},
	} {
		w, ok := m.newWorkload(pod(c.change), time.Time{})
		require.True(t, ok, name)
		assert.Equal(t, c.injected, w.Injected, name)
	}
}

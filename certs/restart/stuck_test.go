package restart_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// rollouts are Deployments on an API server without controllers: a test says how far they are.
type rollouts struct {
	t   *testing.T
	api kubernetes.Interface
	// directive has what an agent stores.
	directive *certificatesv1.PodBounceDirective
	plan      restart.Plan
}

func newRollouts(t *testing.T, namespaces ...string) *rollouts {
	t.Helper()
	config := sandboxtest.APIServer(t)
	for _, namespace := range namespaces {
		sandboxtest.MakeNamespace(t, config, namespace)
	}
	return &rollouts{t: t, api: sandboxtest.Clientset(t, config), directive: &certificatesv1.PodBounceDirective{}}
}

// add makes a Deployment that is complete, and one of the plan unless a change is given.
func (r *rollouts) add(namespace, name string, class restart.Class, change ...func(*appsv1.Deployment)) {
	r.t.Helper()
	one, labels := int32(1), map[string]string{names: name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}},
	}}
	for _, c := range change {
		c(d)
	}
	if len(change) == 0 {
		r.plan.Controllers = append(r.plan.Controllers, restart.Controller{Kind: "Deployment", Namespace: namespace, Name: name, Class: class, Pods: []string{name + "-1"}})
	}
	_, err := r.api.AppsV1().Deployments(namespace).Create(r.t.Context(), d, metav1.CreateOptions{})
	require.NoError(r.t, err)
	r.is(namespace, name, complete)
}

func complete(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

func exceeds(d *appsv1.Deployment) {
	rolls(d)
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
}

func rolls(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1}
}

// is says how far a Deployment is.
func (r *rollouts) is(namespace, name string, how func(*appsv1.Deployment)) {
	r.t.Helper()
	d, err := r.api.AppsV1().Deployments(namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	require.NoError(r.t, err)
	how(d)
	_, err = r.api.AppsV1().Deployments(namespace).UpdateStatus(r.t.Context(), d, metav1.UpdateOptions{})
	require.NoError(r.t, err)
}

func (r *rollouts) save(_ context.Context, status *certificatesv1.PodBounceDirectiveStatus) error {
	r.directive.Status = *status.DeepCopy()
	return nil
}

// step restarts, and says what.
func (r *rollouts) step(roller *restart.Roller) (names []string, p restart.Progress) {
	r.t.Helper()
	p, err := roller.Follow(r.t.Context(), r.directive, r.plan, r.save)
	require.NoError(r.t, err)
	for _, c := range p.Restarted {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	return names, p
}

// TestMarksDecideNothing: who may edit a Deployment writes that the agent restarted it, in another wave, for any cause.
func TestMarksDecideNothing(t *testing.T) {
	t.Parallel()
	r := newRollouts(t, "marks-tenant", "marks-apps")
	r.add("marks-apps", "a", restart.Workload)
	const mark = restart.CauseAnnotation
	r.add("marks-tenant", "brake", restart.Workload, func(d *appsv1.Deployment) {
		d.Labels = map[string]string{mark: "cause"}
		d.Annotations = map[string]string{mark: "cause", "certificates.mesh.gloo.solo.io/restart-wave": "999.9"}
		d.Spec.Template.Annotations = map[string]string{mark: "cause"}
	})
	r.is("marks-tenant", "brake", exceeds)
	names, p := r.step(&restart.Roller{Client: r.api, Cause: "cause"})
	assert.Equal(t, []string{"marks-apps/a"}, names)
	assert.Empty(t, p.Stuck)
	require.Len(t, r.directive.Status.Rolling, 1)
	// Nor does it hold anything that it says so about what is in the plan: only that one does not restart.
	r.plan.Controllers = append(r.plan.Controllers, restart.Controller{Kind: "Deployment", Namespace: "marks-tenant", Name: "brake"})
	names, p = r.step(&restart.Roller{Client: r.api, Cause: "cause"})
	assert.Empty(t, names)
	assert.Equal(t, []string{"Deployment marks-apps/a: 1 of 1 pods are new, 1 available"}, p.Rolling)
	// Whoever makes another Deployment of the same name is not waited for.
	require.NoError(t, r.api.AppsV1().Deployments("marks-apps").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	r.plan = restart.Plan{}
	r.add("marks-apps", "a", restart.Workload)
	names, _ = r.step(&restart.Roller{Client: r.api, Cause: "cause"})
	assert.Equal(t, []string{"marks-apps/a"}, names)
	assert.Len(t, r.directive.Status.PodsBounced[0].BouncedPods, 1)
}

// TestAStuckRolloutStopsItsNamespace, and no other before there are three; that of the control plane stops all.
func TestAStuckRolloutStopsItsNamespace(t *testing.T) {
	t.Parallel()
	r := newRollouts(t, "stuck-istio-system", "stuck-one", "stuck-two", "stuck-three", "stuck-four")
	roller := &restart.Roller{Client: r.api, Cause: "cause", ControlPlane: "stuck-istio-system", Most: 1}
	r.add("stuck-one", "gateway", restart.Gateway)
	for _, namespace := range []string{"stuck-one", "stuck-two", "stuck-three", "stuck-four"} {
		r.add(namespace, "a", restart.Workload)
	}
	names, _ := r.step(roller)
	assert.Equal(t, []string{"stuck-one/gateway"}, names)
	r.is("stuck-one", "gateway", rolls)
	names, p := r.step(roller)
	assert.Empty(t, names, "its wave is not complete")
	assert.Empty(t, p.Stuck)
	r.is("stuck-one", "gateway", exceeds)
	names, p = r.step(roller)
	assert.Equal(t, []string{"stuck-two/a"}, names, "neither its wave nor its place is waited for")
	assert.Equal(t, []string{"Deployment stuck-one/gateway exceeded its progress deadline: 1 of 1 pods are new, 1 available; find out why its new pods do not become available"}, p.Stuck)
	assert.Equal(t, 1, p.Held)
	assert.Equal(t, 2, p.Pending-p.Held)
	assert.Empty(t, p.Stalled())
	r.is("stuck-two", "a", exceeds)
	names, _ = r.step(&restart.Roller{Client: r.api, Cause: "cause", ControlPlane: "stuck-istio-system", Most: 1}) // whoever goes on
	assert.Equal(t, []string{"stuck-three/a"}, names)
	r.is("stuck-three", "a", exceeds)
	names, p = r.step(roller)
	assert.Empty(t, names)
	assert.Contains(t, p.Stopped, "nothing more is restarted, because rollouts do not progress in 3 namespaces (stuck-one, stuck-three, stuck-two)")
	r.is("stuck-two", "a", complete)
	names, p = r.step(roller)
	assert.Equal(t, []string{"stuck-four/a"}, names)
	assert.Empty(t, p.Stopped)
	// All that is left waits.
	r.is("stuck-four", "a", complete)
	_, p = r.step(roller)
	assert.Contains(t, p.Stalled(), "Deployment stuck-one/gateway exceeded")
	r.is("stuck-one", "gateway", complete)
	r.is("stuck-three", "a", complete)
	names, _ = r.step(roller)
	assert.Equal(t, []string{"stuck-one/a"}, names)
	r.is("stuck-one", "a", complete)
	_, p = r.step(roller)
	assert.True(t, p.Done(), "%+v", p)
	assert.Empty(t, r.directive.Status.Rolling)

	r.plan.Controllers = nil
	r.add("stuck-istio-system", "istiod", restart.ControlPlane)
	r.add("stuck-two", "b", restart.Workload)
	names, _ = r.step(roller)
	assert.Equal(t, []string{"stuck-istio-system/istiod"}, names)
	r.is("stuck-istio-system", "istiod", exceeds)
	names, p = r.step(roller)
	assert.Empty(t, names)
	assert.Contains(t, p.Stopped, "because that is the namespace of the control plane")
}

// TestNobodyIsWaitedForForEver: a Deployment says itself how long it may take, and its owner makes its pods come and go.
func TestNobodyIsWaitedForForEver(t *testing.T) {
	t.Parallel()
	r := newRollouts(t, "ever-one", "ever-two")
	now := time.Now()
	roller := &restart.Roller{Client: r.api, Cause: "cause", Most: 1, Now: func() time.Time { return now }}
	r.add("ever-one", "a", restart.Workload)
	r.add("ever-two", "a", restart.Workload)
	patient, err := r.api.AppsV1().Deployments("ever-one").Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"spec":{"progressDeadlineSeconds":2000000000}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(2_000_000_000), *patient.Spec.ProgressDeadlineSeconds)
	names, _ := r.step(roller)
	require.Equal(t, []string{"ever-one/a"}, names)
	for minutes := 0; minutes < 60; minutes += 5 {
		r.is("ever-one", "a", func(d *appsv1.Deployment) {
			rolls(d)
			d.Status.AvailableReplicas = int32(minutes / 5 % 2) // the owner's readiness probe
		})
		names, p := r.step(roller)
		require.Empty(t, names)
		require.Empty(t, p.Stuck, "after %d minutes", minutes)
		now = now.Add(5 * time.Minute)
	}
	now = now.Add(5 * time.Minute)
	names, p := r.step(roller)
	assert.Equal(t, []string{"ever-two/a"}, names)
	assert.Equal(t, []string{"Deployment ever-one/a has not progressed for 1h0m0s: 1 of 1 pods are new, 1 available; find out why"}, p.Stuck)
}

// TestWhatRollsIsStoredBefore: an agent that dies between two writes, or cannot write, forgets nothing and restarts nothing
// twice.
func TestWhatRollsIsStoredBefore(t *testing.T) {
	t.Parallel()
	r := newRollouts(t, "stored-one", "stored-two")
	r.add("stored-one", "a", restart.Workload)
	r.add("stored-two", "a", restart.Workload)
	roller := &restart.Roller{Client: r.api, Cause: "cause", Most: 1}
	wrong := errors.New("the disk is full")
	_, err := roller.Follow(t.Context(), r.directive, r.plan, func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error { return wrong })
	require.ErrorIs(t, err, wrong)
	generation := func(namespace string) string {
		d, err := r.api.AppsV1().Deployments(namespace).Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		return fmt.Sprint(d.Generation)
	}
	assert.Equal(t, "1", generation("stored-one"), "not restarted unless that is stored")
	// It is stored, and the agent dies.
	_, err = roller.Follow(t.Context(), r.directive, r.plan, func(ctx context.Context, status *certificatesv1.PodBounceDirectiveStatus) error {
		return errors.Join(r.save(ctx, status), wrong)
	})
	require.ErrorIs(t, err, wrong)
	assert.Len(t, r.directive.Status.Rolling, 1)
	names, _ := r.step(&restart.Roller{Client: r.api, Cause: "cause", Most: 1})
	assert.Equal(t, []string{"stored-one/a"}, names)
	names, _ = r.step(&restart.Roller{Client: r.api, Cause: "cause", Most: 1})
	assert.Empty(t, names, "one rolls")
	// For another cause, it is waited for as well.
	names, _ = r.step(&restart.Roller{Client: r.api, Cause: "other", Most: 1})
	assert.Empty(t, names)
	assert.Equal(t, "2", generation("stored-one"))
	assert.Equal(t, "1", generation("stored-two"))
}

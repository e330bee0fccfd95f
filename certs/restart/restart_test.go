package restart_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

const names = "app"

// deploy makes a Deployment that replaces its pods one at a time, with a budget for disruptions.
func deploy(t *testing.T, api kubernetes.Interface, namespace, name string, replicas int32, change ...func(*appsv1.Deployment)) {
	t.Helper()
	labels := map[string]string{names: name}
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &none}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}},
		},
	}
	for _, c := range change {
		c(d)
	}
	_, err := api.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// pods are those of a namespace that run; the gateway's and the control plane's by their names.
func pods(t testing.TB, api kubernetes.Interface, namespace string) []restart.Pod {
	t.Helper()
	list, err := api.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []restart.Pod
	for _, p := range list.Items {
		class := restart.Workload
		switch p.Labels[names] {
		case "istiod":
			class = restart.ControlPlane
		case "gateway":
			class = restart.Gateway
		}
		if p.Status.Phase == corev1.PodRunning {
			out = append(out, restart.Pod{Namespace: namespace, Name: p.Name, Class: class})
		}
	}
	return out
}

func ready(t *testing.T, api kubernetes.Interface, namespace string) {
	t.Helper()
	waittest.NoError(t, "the Deployments are complete", func() error {
		list, err := api.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, d := range list.Items {
			if s := d.Status; s.ObservedGeneration < d.Generation || s.AvailableReplicas < *d.Spec.Replicas || s.Replicas != s.UpdatedReplicas {
				return fmt.Errorf("%s: %+v", d.Name, s)
			}
		}
		return nil
	})
}

// roll steps until all is done or stalled, and returns what was restarted, and how many rolled at once.
func roll(t *testing.T, r *restart.Roller, plan restart.Plan, directives ...*certificatesv1.PodBounceDirective) (order []string, most int, last restart.Progress) {
	t.Helper()
	step := r.Step
	for _, d := range directives {
		step = func(ctx context.Context, plan restart.Plan) (restart.Progress, error) {
			return r.Follow(ctx, d, plan, func(_ context.Context, status *certificatesv1.PodBounceDirectiveStatus) error {
				d.Status = *status.DeepCopy()
				return nil
			})
		}
	}
	waittest.NoError(t, "all is restarted", func() error {
		var err error
		if last, err = step(t.Context(), plan); err != nil {
			return err
		}
		for _, c := range last.Restarted {
			order = append(order, c.Name)
		}
		if most = max(most, len(last.Rolling)); !last.Done() && last.Stalled() == "" {
			return fmt.Errorf("%+v", last)
		}
		return nil
	})
	return order, most, last
}

// revisions is how often the template of each Deployment changed.
func revisions(t *testing.T, api kubernetes.Interface, namespace string) map[string]string {
	t.Helper()
	list, err := api.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for _, d := range list.Items {
		out[d.Name] = d.Annotations["deployment.kubernetes.io/revision"]
	}
	return out
}

func TestRestart(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	config, err := sandboxtest.Clusters(t, 1)[0].Config()
	require.NoError(t, err)
	t.Run("in order", func(t *testing.T) { t.Parallel(); inOrder(t, config) })
	t.Run("stops", func(t *testing.T) { t.Parallel(); stops(t, config) })
	t.Run("killed", func(t *testing.T) { t.Parallel(); killedAtAnyWrite(t, config) })
	t.Run("untouched", func(t *testing.T) { t.Parallel(); untouched(t, config) })
}

func inOrder(t *testing.T, config *rest.Config) {
	t.Helper()
	const namespace = "in-order"
	sandboxtest.MakeNamespace(t, config, namespace)
	api := sandboxtest.Clientset(t, config)
	for _, name := range []string{"a", "b", "c", "gateway", "istiod"} {
		deploy(t, api, namespace, name, 3)
	}
	ready(t, api, namespace)
	plan, err := restart.NewPlan(t.Context(), api, pods(t, api, namespace), nil)
	require.NoError(t, err)
	require.Len(t, plan.Controllers, 5)
	assert.Len(t, plan.Controllers[0].Pods, 3)
	order, most, _ := roll(t, &restart.Roller{Client: api, Cause: "in-order"}, plan)
	assert.Equal(t, []string{"istiod", "gateway", "a", "b", "c"}, order)
	assert.Equal(t, 2, most)
	for name, revision := range revisions(t, api, namespace) {
		assert.Equal(t, "2", revision, name)
	}
	// Nothing happens twice, also if the plan has what was restarted.
	again, err := restart.NewPlan(t.Context(), api, pods(t, api, namespace), nil)
	require.NoError(t, err)
	order, _, last := roll(t, &restart.Roller{Client: api, Cause: "in-order"}, again)
	assert.Empty(t, order)
	assert.Equal(t, 5, last.Complete)
	// For another cause, in the order of a directive; what it does not select is left alone.
	directive := &certificatesv1.PodBounceDirective{Spec: certificatesv1.PodBounceDirectiveSpec{PodsToBounce: []certificatesv1.PodSelector{
		{Namespace: namespace, Labels: map[string]string{names: "b"}}, {Namespace: namespace, Labels: map[string]string{names: "a"}},
	}}}
	plan, err = restart.NewPlan(t.Context(), api, pods(t, api, namespace), directive.Spec.PodsToBounce)
	require.NoError(t, err)
	require.Len(t, plan.Untouched, 3)
	assert.Contains(t, plan.Untouched[0].Reason, "no entry of the PodBounceDirective selects it")
	order, most, _ = roll(t, &restart.Roller{Client: api, Cause: "directive"}, plan, directive)
	assert.Equal(t, []string{"b", "a"}, order)
	assert.Equal(t, 1, most, "one entry after the other")
	require.Len(t, directive.Status.PodsBounced, 2)
	assert.Len(t, directive.Status.PodsBounced[0].BouncedPods, 3)
	assert.True(t, strings.HasPrefix(directive.Status.PodsBounced[0].BouncedPods[0], "b-"))
}

// stops: a quota permits no further pod, so that no new one comes before an old one goes.
func stops(t *testing.T, config *rest.Config) {
	t.Helper()
	const namespace = "stops"
	sandboxtest.MakeNamespace(t, config, namespace)
	api := sandboxtest.Clientset(t, config)
	deadline := int32(3)
	for _, name := range []string{"a", "b", "c", "d"} {
		deploy(t, api, namespace, name, 2, func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = &deadline })
	}
	ready(t, api, namespace)
	_, err := api.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("8")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	waittest.NoError(t, "the quota is counted", func() error {
		q, err := api.CoreV1().ResourceQuotas(namespace).Get(t.Context(), "full", metav1.GetOptions{})
		if used := q.Status.Used[corev1.ResourcePods]; err == nil && used.Value() != 8 {
			err = fmt.Errorf("%+v", q.Status)
		}
		return err
	})
	plan, err := restart.NewPlan(t.Context(), api, pods(t, api, namespace), nil)
	require.NoError(t, err)
	directive := &certificatesv1.PodBounceDirective{}
	roller := &restart.Roller{Client: api, Cause: "stops"}
	order, _, last := roll(t, roller, plan, directive)
	assert.Equal(t, []string{"a", "b"}, order)
	assert.Regexp(t, `^Deployment stops/[ab] exceeded its progress deadline: 0 of 2 pods are new, 2 available`, last.Stalled())
	assert.Equal(t, 2, last.Pending)
	// Also for whoever goes on, and with a plan that does not have them.
	_, _, last = roll(t, &restart.Roller{Client: api, Cause: "stops"}, restart.Plan{Controllers: plan.Controllers[2:]}, directive)
	assert.NotEmpty(t, last.Stalled())
	// A user who goes on, for whom nothing was stored.
	adopts := &restart.Roller{Client: api, Cause: "stops"}
	require.NoError(t, adopts.Adopt(t.Context(), plan))
	assert.Len(t, adopts.Rolling, 2)
	// When it progresses again, the rest follows.
	require.NoError(t, api.CoreV1().ResourceQuotas(namespace).Delete(t.Context(), "full", metav1.DeleteOptions{}))
	waittest.NoError(t, "the rest is restarted", func() error {
		last, err = roller.Step(t.Context(), plan)
		if err == nil && !last.Done() {
			err = fmt.Errorf("%+v", last)
		}
		return err
	})
	for name, revision := range revisions(t, api, namespace) {
		assert.Equal(t, "2", revision, name)
	}
}

var errKilled = errors.New("killed")

// killer ends a process right before or right after a write.
type killer struct {
	mu    sync.Mutex
	left  int
	after bool
	dead  bool
}

type killed struct {
	base http.RoundTripper
	*killer
}

func (k *killed) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	dead := k.dead
	fatal := !dead && r.Method != http.MethodGet && k.left == 0
	if r.Method != http.MethodGet {
		k.left--
	}
	k.dead = dead || fatal
	after := k.after
	k.mu.Unlock()
	if dead || fatal && !after {
		return nil, errKilled
	}
	response, err := k.base.RoundTrip(r)
	if fatal && err == nil {
		_ = response.Body.Close()
		return nil, errKilled
	}
	return response, err
}

// killedAtAnyWrite: each controller restarts exactly once, whenever the process ends.
func killedAtAnyWrite(t *testing.T, config *rest.Config) {
	t.Helper()
	const namespace = "killed"
	sandboxtest.MakeNamespace(t, config, namespace)
	api := sandboxtest.Clientset(t, config)
	all := []string{"a", "b", "gateway", "istiod"}
	for _, name := range all {
		deploy(t, api, namespace, name, 1)
	}
	ready(t, api, namespace)
	kills := 0
	for n := 0; n < 2*len(all); n++ {
		cause := fmt.Sprintf("killed-%d", n)
		dying := rest.CopyConfig(config)
		k := &killer{left: n / 2, after: n%2 == 1}
		dying.Wrap(func(base http.RoundTripper) http.RoundTripper { return &killed{base, k} })
		plan, err := restart.NewPlan(t.Context(), api, pods(t, api, namespace), nil)
		require.NoError(t, err)
		dies := &restart.Roller{Client: sandboxtest.Clientset(t, dying), Cause: cause}
		waittest.NoError(t, "the process is killed", func() error {
			if _, err := dies.Step(t.Context(), plan); err == nil {
				return errors.New("it lives")
			}
			return nil
		})
		kills++
		plan, err = restart.NewPlan(t.Context(), api, pods(t, api, namespace), nil)
		require.NoError(t, err)
		roll(t, &restart.Roller{Client: api, Cause: cause}, plan)
		for name, revision := range revisions(t, api, namespace) {
			require.Equal(t, fmt.Sprint(n+2), revision, "%s, killed at write %d, after it: %t", name, n/2, n%2 == 1)
		}
	}
	assert.Equal(t, 8, kills)
}

func untouched(t *testing.T, config *rest.Config) {
	t.Helper()
	const namespace = "untouched"
	sandboxtest.MakeNamespace(t, config, namespace)
	api := sandboxtest.Clientset(t, config)
	deploy(t, api, namespace, "paused", 1)
	one, labels := int32(1), map[string]string{names: "set"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	_, err := api.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector, Template: template}}, metav1.CreateOptions{})
	require.NoError(t, err)
	waittest.NoError(t, "the ServiceAccount is there", func() error {
		_, err := api.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: template.Spec}, metav1.CreateOptions{})
		return err
	})
	template.Labels, selector = map[string]string{names: "state"}, &metav1.LabelSelector{MatchLabels: map[string]string{names: "state"}}
	_, err = api.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "state"},
		Spec: appsv1.StatefulSetSpec{Replicas: &one, Selector: selector, Template: template, ServiceName: "state"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	template.Labels, selector = map[string]string{names: "daemon"}, &metav1.LabelSelector{MatchLabels: map[string]string{names: "daemon"}}
	_, err = api.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ready(t, api, namespace)
	_, err = api.AppsV1().Deployments(namespace).Patch(t.Context(), "paused", "application/merge-patch+json", []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	var plan restart.Plan
	waittest.NoError(t, "the pods run", func() error {
		if plan, err = restart.NewPlan(t.Context(), api, pods(t, api, namespace), nil); err == nil && len(plan.Controllers)+len(plan.Untouched) < 5 {
			err = fmt.Errorf("%+v", plan)
		}
		return err
	})
	before := uids(t, api, namespace)
	order, _, last := roll(t, &restart.Roller{Client: api, Cause: "untouched"}, plan)
	slices.Sort(order)
	assert.Equal(t, []string{"daemon", "state"}, order)
	require.Len(t, plan.Untouched, 2)
	assert.Equal(t, "Pod untouched/bare", plan.Untouched[0].Owner)
	assert.Contains(t, plan.Untouched[1].Reason, "without a Deployment")
	require.Len(t, last.Untouched, 1)
	assert.Contains(t, last.Untouched[0].Reason, "is paused; resume it")
	after := uids(t, api, namespace)
	for name, uid := range before {
		if name == "state-0" || strings.HasPrefix(name, "daemon-") {
			assert.NotEqual(t, uid, after[name], name)
			continue
		}
		assert.Equal(t, uid, after[name], name)
	}
}

func uids(t *testing.T, api kubernetes.Interface, namespace string) map[string]string {
	t.Helper()
	list, err := api.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for _, p := range list.Items {
		out[p.Name] = string(p.UID)
	}
	return out
}

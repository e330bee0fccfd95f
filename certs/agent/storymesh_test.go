package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// storyMesh is a cluster of a story: an API server, a real agent, and the model of a mesh. The control plane and the
// workloads are Deployments, so that restarts are writes like others.
type storyMesh struct {
	*world
	story *story
	// name is that of the cluster, and mesh that of the Mesh; own is the agent's namespace, and istio the mesh's.
	name, mesh, own, istio string
	admin                  *rest.Config
	api                    kubernetes.Interface
	reader                 *store
	self                   *pki.Authority
	// The process of the agent, and how many there were before.
	process *process
	agent   *agent
	nth     int
	roller  *restart.Roller
	// ahead is by how much the agent's clock is ahead.
	ahead time.Duration
	// stale: the management plane cannot read or write the cluster; away: its agent does nothing.
	stale, away bool
	// restarts are the causes for which a Deployment was restarted, and observed is its generation.
	restarts map[string][]string
	observed map[string]int64
}

const (
	storyControlPlane = "istiod"
	storyWorkloads    = 2
)

func newStoryMesh(s *story, i int, admin *rest.Config, multi bool) *storyMesh {
	s.t.Helper()
	m := &storyMesh{
		world: newWorld(s.t, uint64(i)), story: s, name: fmt.Sprintf("cluster-%d", i+1), own: s.namespace + "-agent", istio: fmt.Sprintf("%s-istio", s.namespace),
		admin: admin, api: sandboxtest.Clientset(s.t, admin), restarts: map[string][]string{}, observed: map[string]int64{},
	}
	m.mesh = "istiod-" + m.istio + "-" + m.name
	m.multi = multi
	sandboxtest.MakeNamespace(s.t, admin, m.own)
	sandboxtest.MakeNamespace(s.t, admin, m.istio)
	var err error
	m.reader, err = newStore(admin, m.own, ecKey)
	require.NoError(s.t, err)
	m.now = time.Now()
	m.self = storyRoot(s.t, "self")
	data, err := pki.CACerts{Authority: m.self, Roots: bundleOf(m.self)}.Data()
	require.NoError(s.t, err)
	_, err = m.api.CoreV1().Secrets(m.istio).Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SelfSignedName}, Type: "istio.io/ca-root", Data: data}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	for _, name := range m.deployments() {
		labels := map[string]string{"app": name}
		_, err := m.api.AppsV1().Deployments(m.istio).Create(s.t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			}},
		}, metav1.CreateOptions{})
		require.NoError(s.t, err)
	}
	m.refresh()
	m.start(storyWorkloads)
	m.roll()
	m.begin()
	return m
}

// deployments are those of the mesh: the control plane, and workload-1 and so on.
func (m *storyMesh) deployments() []string {
	out := []string{storyControlPlane}
	for i := range storyWorkloads {
		out = append(out, workloadName(i))
	}
	return out
}

func workloadName(i int) string { return fmt.Sprintf("workload-%d", i+1) }

// begin starts the next process of the agent.
func (m *storyMesh) begin() {
	m.t.Helper()
	left, late := m.story.plan("agent of "+m.name, m.nth)
	m.nth++
	m.process = &process{part: "agent of " + m.name, left: left, late: late, wrote: m.wrote}
	m.roller = &restart.Roller{Client: sandboxtest.Clientset(m.t, m.process.wrap(m.admin)), ControlPlane: m.istio}
	a, err := newAgent(Options{
		Config: m.process.wrap(m.admin), Namespace: m.own, Verifier: m, Restarter: m, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { return time.Now().Add(m.ahead) }, newKey: ecKey, leaveAfter: -1,
	}, newMetrics())
	require.NoError(m.t, err)
	m.agent = a
}

// step is a pass of the agent; if it dies in it, another one begins.
func (m *storyMesh) step() {
	m.t.Helper()
	if m.away {
		return
	}
	err := m.agent.pass(m.t.Context())
	if m.t.Failed() {
		m.t.FailNow() // in a goroutine of the agent
	}
	if dead := m.process.dead(); dead != "" {
		m.story.died = append(m.story.died, dead)
		m.story.wrote += m.process.written()
		m.begin()
		return
	}
	require.NoError(m.t, err)
}

// wrote is called after each write of the agent.
func (m *storyMesh) wrote(write string) {
	if strings.Contains(write, "/secrets") {
		m.refresh()
		m.story.check(m.name + ": " + write)
	}
}

// refresh reads the Secrets of the mesh into the model.
func (m *storyMesh) refresh() {
	m.t.Helper()
	m.now = time.Now()
	read := func(name string) *corev1.Secret {
		secret, err := m.reader.secret(context.Background(), m.istio, name)
		require.NoError(m.t, err)
		return secret
	}
	m.cacerts, m.selfSigned = read(CACertsName), read(SelfSignedName)
}

// Look implements Verifier.
func (m *storyMesh) Look(context.Context, MeshTarget) (MeshState, error) {
	state := m.look()
	if state == nil {
		return MeshState{}, fmt.Errorf("blind")
	}
	return *state, nil
}

// Restart implements Restarter as Parts does, for the Deployments of the model.
func (m *storyMesh) Restart(ctx context.Context, directive *certificatesv1.PodBounceDirective, target MeshTarget, state MeshState,
	save func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error,
) (string, error) {
	var plan restart.Plan
	switch {
	case state.NeedsControlPlane:
		plan.Controllers = append(plan.Controllers, m.controller(storyControlPlane, restart.ControlPlane, 0))
	case state.NeedsWorkloads:
		for i, p := range m.workloads {
			if !p.trusted.Covers(m.istiod.trusted) || p.root != m.istiod.root {
				plan.Controllers = append(plan.Controllers, m.controller(workloadName(i), restart.Workload, 1))
			}
		}
	}
	m.roller.Cause = restart.Cause(target.UID, target.Data)
	step, err := m.roller.Follow(ctx, directive, plan, save)
	return waitingFor(&step, plan), err
}

// Refresh implements Restarter. When istiod takes up the Secret is for live to say: an agent must not count on a time.
func (*storyMesh) Refresh(context.Context, MeshTarget, bool) error { return nil }

func (m *storyMesh) controller(name string, class restart.Class, entry int) restart.Controller {
	return restart.Controller{
		Kind: "Deployment", Namespace: m.istio, Name: name, Class: class, Entry: entry, Pods: []string{fmt.Sprint(name, "-", m.observed[name])},
	}
}

// live lets the mesh do what it does by itself: istiod takes up the Secret if it can, and Deployments replace their pods.
func (m *storyMesh) live() {
	m.t.Helper()
	m.refresh()
	m.takeUp()
	m.story.check(m.name + ": istiod takes up")
	m.follow()
	m.roll()
}

// follow has workloads take what istiod pushes.
func (m *storyMesh) follow() {
	m.t.Helper()
	if !m.multi {
		return
	}
	for _, p := range m.workloads {
		m.renew(p)
		m.story.check(m.name + ": roots are pushed")
	}
}

// roll is the controller of the Deployments.
func (m *storyMesh) roll() {
	m.t.Helper()
	list, err := m.api.AppsV1().Deployments(m.istio).List(m.t.Context(), metav1.ListOptions{})
	require.NoError(m.t, err)
	for i := range list.Items {
		d := &list.Items[i]
		if d.Generation == m.observed[d.Name] {
			continue
		}
		for m.observed[d.Name]++; m.observed[d.Name] < d.Generation; m.observed[d.Name]++ {
			m.restarts[d.Name] = append(m.restarts[d.Name], "missed")
		}
		if d.Generation > 1 {
			m.restarts[d.Name] = append(m.restarts[d.Name], d.Spec.Template.Annotations[restart.CauseAnnotation])
			m.replace(d.Name)
		}
		d.Status.ObservedGeneration = d.Generation
		d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 1, 1, 1, 1
		_, err := m.api.AppsV1().Deployments(m.istio).UpdateStatus(m.t.Context(), d, metav1.UpdateOptions{})
		require.NoError(m.t, err)
	}
}

// replace starts what a Deployment runs anew.
func (m *storyMesh) replace(name string) {
	m.t.Helper()
	if name == storyControlPlane {
		m.restartIstiod()
		m.story.check(m.name + ": istiod restarts")
		m.follow()
		return
	}
	m.renew(m.workloads[slices.Index(m.deployments(), name)-1])
	m.story.check(m.name + ": " + name + " restarts")
}

// certificate is what is asked of the agent; nil if nothing is.
func (m *storyMesh) certificate() *certificatesv1.IssuedCertificate {
	m.t.Helper()
	all, err := m.reader.certificates(m.t.Context())
	require.NoError(m.t, err)
	return all[m.mesh]
}

// presents are the roots that may be presented from now on, and trusts those that everybody trusts from now on.
func (m *storyMesh) presents() (out []string) {
	for _, p := range m.workloads {
		out = append(out, p.root)
	}
	out = append(out, m.istiod.root)
	if read, _ := m.source(); read != nil {
		out = append(out, rootPrint(read.Authority))
	}
	return sorted(out)
}

func (m *storyMesh) trusts(root string) bool {
	bundles := []pki.Bundle{m.istiod.trusted}
	for _, p := range m.workloads {
		bundles = append(bundles, p.trusted)
	}
	if read, _ := m.source(); read != nil {
		bundles = append(bundles, read.Roots)
	}
	return !slices.ContainsFunc(bundles, func(b pki.Bundle) bool { return !slices.Contains(b.Fingerprints(), root) })
}

package discovery

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// workload is a controller that a mesh's sidecars run in.
type workload struct {
	object     *discoveryv1.Workload
	controller *controller
	mesh       *mesh
}

// findWorkloads lists the workloads of all meshes, in the order of controllers.
func (w *world) findWorkloads(kinds []detector) []*workload {
	var out []*workload
	given := newNames(snapshot.Workload, len(w.controllers))
	strays := make([]strays, len(kinds))
	for _, ctl := range w.controllers {
		for i := range kinds {
			c, ok := w.claimOf(&kinds[i], ctl.pods)
			if !ok {
				continue
			}
			if len(kinds[i].found) == 0 {
				strays[i].add(ctl.ref)
			} else if m := w.meshOf(&kinds[i], ctl, c); m != nil {
				out = append(out, w.newWorkload(given, ctl, m))
			}
			break
		}
	}
	for i := range strays {
		strays[i].report(w, kinds[i].title)
	}
	return out
}

// claimOf is what the youngest pod with a sidecar says. One such pod is enough
// to make a workload; while a rollout goes from one revision to another, the
// youngest shows where to.
func (w *world) claimOf(d *detector, pods []*corev1.Pod) (claim, bool) {
	var (
		best     claim
		youngest *corev1.Pod
	)
	for _, pod := range pods {
		if youngest != nil && !youngest.CreationTimestamp.Before(&pod.CreationTimestamp) {
			continue
		}
		if c, ok := d.sidecar(w, pod); ok {
			best, youngest = c, pod
		}
	}
	return best, youngest != nil
}

// meshOf settles to which mesh a controller belongs; nil if to none.
func (w *world) meshOf(d *detector, ctl *controller, c claim) *mesh {
	v := d.settle(c)
	if v.code != "" {
		severity := snapshot.Error
		if v.mesh != nil {
			severity = snapshot.Warning
		}
		w.report(snapshot.Issue{Code: v.code, Severity: severity, Ref: ctl.ref, Message: v.message, Hint: v.hint})
	}
	return v.mesh
}

func (w *world) newWorkload(given *names, ctl *controller, m *mesh) *workload {
	name := objectName(ctl.ref.Name, ctl.ref.Namespace, w.cluster, strings.ToLower(ctl.ref.Kind.String()))
	return &workload{
		controller: ctl,
		mesh:       m,
		object: &discoveryv1.Workload{
			ObjectMeta: w.meta(w.name(given, name, ctl.ref)),
			Spec: discoveryv1.WorkloadSpec{
				Kubernetes: &discoveryv1.KubernetesWorkload{
					Controller: commonv1.ClusterObjectRef{
						Name: ctl.ref.Name, Namespace: ctl.ref.Namespace, ClusterName: w.cluster,
					},
					PodLabels:          ctl.template.Labels,
					ServiceAccountName: serviceAccount(ctl.template),
				},
				Mesh: m.ref(),
			},
		},
	}
}

func serviceAccount(t *corev1.PodTemplateSpec) string {
	if t.Spec.ServiceAccountName != "" {
		return t.Spec.ServiceAccountName
	}
	return t.Spec.DeprecatedServiceAccount
}

// strays are workloads whose mesh has no control plane in the cluster at all:
// one issue for all of them, since there is one thing to mend.
type strays struct{ refs []snapshot.Ref }

// strayExamples is how many of them an issue names.
const strayExamples = 3

func (s *strays) add(r snapshot.Ref) { s.refs = append(s.refs, r) }

func (s *strays) report(w *world, title string) {
	if len(s.refs) == 0 {
		return
	}
	slices.SortFunc(s.refs, snapshot.Ref.Compare)
	var examples []string
	for _, r := range s.refs[:min(len(s.refs), strayExamples)] {
		examples = append(examples, r.Kind.String()+" "+r.Namespace+"/"+r.Name)
	}
	if len(s.refs) > strayExamples {
		examples = append(examples, "…")
	}
	w.report(snapshot.Issue{
		Code: snapshot.WorkloadWithoutMesh, Severity: snapshot.Warning,
		Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: w.namespace, Name: w.cluster},
		Message: fmt.Sprintf("%s with a sidecar of %s, but the cluster has no control plane of it: %s",
			snapshot.Count(len(s.refs), "workload"), title, strings.Join(examples, ", ")),
		Hint: "install the control plane in this cluster; one that runs elsewhere is not discovered",
	})
}

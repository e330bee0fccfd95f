package discovery

import (
	"cmp"
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
	mesh       *ControlPlane
	// leftOut is set if its namespace has too many. Services over it are found all the same.
	leftOut bool
}

// findWorkloads lists the workloads of all meshes, in the order of controllers.
func (x *Index) findWorkloads(kinds []*detected) []*workload {
	var found []candidate
	orphans := make([]orphans, len(kinds))
	ambient{x}.reportUnproven(kinds)
	for _, ctl := range x.controllers {
		if m := x.meshOfTemplate(kinds, ctl); m != nil && !ignores(x, m, ctl.ref.Namespace) {
			found = append(found, candidate{source: ctl.source, mesh: m, controller: ctl})
		}
		if m := (ambient{x}).meshOfPods(kinds, ctl); m != nil && !ignores(x, m, ctl.ref.Namespace) {
			found = append(found, candidate{source: ctl.source, mesh: m, controller: ctl})
			continue
		}
		for i := range kinds {
			c, ok := x.claimOf(&kinds[i].Detector, ctl.pods)
			if !ok {
				continue
			}
			if len(kinds[i].controlPlanes) == 0 {
				orphans[i].add(ctl.ref)
			} else if m := x.meshOf(kinds[i], ctl, c); m != nil && !ignores(x, m, ctl.ref.Namespace) {
				found = append(found, candidate{source: ctl.source, mesh: m, controller: ctl})
			}
			break
		}
	}
	for i := range orphans {
		orphans[i].reportIssue(x, kinds[i].Name)
	}
	return x.newWorkloads(kinds, found)
}

// newWorkloads keeps the order. Those that are left out take no name from others.
func (x *Index) newWorkloads(kinds []*detected, found []candidate) []*workload {
	kept := x.keepToLimit(snapshot.Workload, found)
	given := newNames(snapshot.Workload, len(kept))
	out := make([]*workload, 0, len(found))
	for _, c := range found {
		if len(kept) > 0 && kept[0].source == c.source {
			kept = kept[1:]
			out = append(out, x.newWorkload(kinds, given, c.controller, c.mesh))
			continue
		}
		wl := x.newWorkload(kinds, newNames(snapshot.Workload, 1), c.controller, c.mesh)
		wl.leftOut = true
		out = append(out, wl)
	}
	return out
}

// claimOf is what the youngest pod with a sidecar says. One such pod is enough
// to make a workload; while a rollout goes from one revision to another, the
// youngest shows where to.
func (x *Index) claimOf(d *Detector, pods []*corev1.Pod) (Claim, bool) {
	var (
		best     Claim
		youngest *corev1.Pod
	)
	for _, pod := range pods {
		if youngest != nil && !youngest.CreationTimestamp.Before(&pod.CreationTimestamp) {
			continue
		}
		if c, ok := d.Sidecar(x, pod); ok {
			best, youngest = c, pod
		}
	}
	return best, youngest != nil
}

// meshOf finds the mesh that a controller belongs to; nil if there is none.
func (x *Index) meshOf(d *detected, ctl *controller, c Claim) *ControlPlane {
	r := x.stayed(d.resolve(c), ctl)
	if r.code != "" {
		severity := snapshot.Error
		if r.plane != nil {
			severity = snapshot.Warning
		}
		x.Report(snapshot.Issue{Code: r.code, Severity: severity, Ref: ctl.ref, Message: r.message, Hint: r.hint, Cause: r.cause})
	}
	return r.plane
}

// meshOfTemplate is the mesh that pods of a controller would belong to that has none, as
// long as it is scaled to zero or restarts; nil if there is none, or it is in doubt. What
// protects such a workload, and its names in other clusters, stay.
func (x *Index) meshOfTemplate(kinds []*detected, ctl *controller) *ControlPlane {
	if len(ctl.pods) > 0 {
		return nil
	}
	for _, k := range kinds {
		if k.Template == nil {
			continue
		}
		if c, ok := k.Template(x.Namespaces[ctl.ref.Namespace], ctl.template); ok {
			r := k.resolve(c)
			if r.code == "" || r.code == snapshot.AmbiguousMesh {
				return x.stayed(r, ctl).plane
			}
		}
	}
	return nil
}

func (x *Index) newWorkload(kinds []*detected, given *names, ctl *controller, m *ControlPlane) *workload {
	name := objectName(ctl.name, ctl.ref.Namespace, x.Cluster, strings.ToLower(ctl.kind))
	kind, source := "", ctl.ref
	if ctl.foreign {
		kind, source.Kind, source.Name = ctl.kind, snapshot.Workload, ctl.kind+"/"+ctl.name // its first pod changes
	}
	of := kindOf(kinds, m)
	capture, dns := proxyOf(x, of, ctl)
	return &workload{
		controller: ctl,
		mesh:       m,
		object: &discoveryv1.Workload{
			ObjectMeta: x.meta(x.name(given, name, source)),
			Spec: discoveryv1.WorkloadSpec{
				Kubernetes: &discoveryv1.KubernetesWorkload{
					Controller: commonv1.ClusterObjectRef{
						Name: ctl.name, Namespace: ctl.ref.Namespace, ClusterName: x.Cluster,
					},
					ControllerKind:     kind,
					PodLabels:          ctl.template.Labels,
					OtherPodLabels:     otherLabels(ctl, x.selectedBy[ctl.ref.Namespace]),
					Gateway:            of != nil && of.Gateway != nil && of.Gateway(&ctl.template.Spec),
					DataPlaneMode:      ambient{x}.modeOf(of, ctl),
					ServiceAccountName: ServiceAccount(&ctl.template.Spec),
					Capture:            capture,
					ProxyDNS:           dns,
				},
				Mesh: m.ref(),
			},
		},
	}
}

// proxyOf is what the proxies of a controller's pods do about what their applications send, by the youngest pod with a sidecar.
func proxyOf(x *Index, d *detected, ctl *controller) (capture *discoveryv1.Capture, dns string) {
	if d == nil {
		return nil, ""
	}
	var youngest *corev1.Pod
	since := &ctl.template.CreationTimestamp
	for _, pod := range ctl.pods {
		if _, ok := d.Sidecar(x, pod); ok && !pod.CreationTimestamp.Before(since) {
			youngest, since = pod, &pod.CreationTimestamp
		}
	}
	if youngest == nil {
		youngest = &corev1.Pod{ObjectMeta: ctl.template.ObjectMeta, Spec: ctl.template.Spec}
	}
	if d.Outbound != nil {
		capture = d.Outbound(youngest)
	}
	if d.ProxyDNS != nil {
		dns = d.ProxyDNS(youngest)
	}
	return capture, dns
}

// ServiceAccount is that of the pods of a spec; empty for the default one.
func ServiceAccount(s *corev1.PodSpec) string {
	return cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount)
}

// orphans are workloads whose mesh has no control plane in the cluster at all:
// one issue for all of them, since there is one thing to fix.
type orphans struct{ refs []snapshot.Ref }

// orphanExamples is how many of them an issue names.
const orphanExamples = 3

func (s *orphans) add(r snapshot.Ref) { s.refs = append(s.refs, r) }

func (s *orphans) reportIssue(x *Index, title string) {
	if len(s.refs) == 0 {
		return
	}
	slices.SortFunc(s.refs, snapshot.Ref.Compare)
	var examples []string
	for _, r := range s.refs[:min(len(s.refs), orphanExamples)] {
		examples = append(examples, r.Kind.String()+" "+r.Namespace+"/"+r.Name)
	}
	if len(s.refs) > orphanExamples {
		examples = append(examples, "…")
	}
	x.Report(snapshot.Issue{
		Code: snapshot.WorkloadWithoutMesh, Severity: snapshot.Warning,
		Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: x.namespace, Name: x.Cluster},
		Message: fmt.Sprintf("%s with a sidecar of %s, but the cluster has no control plane of it: %s",
			snapshot.Count(len(s.refs), "workload"), title, strings.Join(examples, ", ")),
		Hint: "install the control plane in this cluster; one that runs elsewhere is not discovered",
	})
}

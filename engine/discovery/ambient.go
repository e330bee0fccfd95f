package discovery

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about pods that take part in a mesh without a proxy of their own: one on their node stands in front of them, and
// waypoints decide about requests to them. What says so is on the pods themselves, or in their namespace, and is believed only where
// their mesh has such a data plane, which an editor of a namespace cannot claim.

// AmbientDetector is what discovery knows about such pods of a kind of mesh.
type AmbientDetector struct {
	// Mode is how pods without a proxy of their own take part; empty if they do not. The namespace may be nil.
	Mode func(ns *corev1.Namespace, o *metav1.ObjectMeta, spec *corev1.PodSpec) discoveryv1.DataPlaneMode
	// Role is what pods are for that are proxies by themselves; empty for all others.
	Role func(labels map[string]string) discoveryv1.DataPlaneMode
	// Waypoint is the one that a Service, or its namespace, which may be nil, asks for, by its name; nil if none.
	Waypoint func(ns *corev1.Namespace, o *metav1.ObjectMeta) *discoveryv1.Waypoint
	// Ingress reports whether labels of a Service, or of its namespace, which may be nil, have gateways use its waypoint.
	Ingress func(ns *corev1.Namespace, labels map[string]string) bool
	// IsOf reports whether what has some labels is of the waypoint of a name.
	IsOf func(name string, labels map[string]string) bool
	// Describe fills in what the labels of a waypoint say of it.
	Describe func(w *discoveryv1.Waypoint, labels map[string]string)
	// Fix is the hint for pods that say they take part where nothing shows that their mesh has such a data plane.
	Fix string
	// IsGlobal reports whether labels give a Service to other clusters.
	IsGlobal func(labels map[string]string) bool
}

// ambient finds pods in ambient mode in a cluster.
type ambient struct{ *Index }

// modeOfPod is how a pod without a proxy of its own takes part in a kind of mesh; empty if it does not.
func (x ambient) modeOfPod(k *detected, pod *corev1.Pod) discoveryv1.DataPlaneMode {
	if k == nil || k.Ambient == nil {
		return discoveryv1.ModeOwnProxy
	}
	return k.Ambient.Mode(x.Namespaces[pod.Namespace], &pod.ObjectMeta, &pod.Spec)
}

// ambientPlane is the control plane of pods in ambient mode: their node's proxy knows one only. Of several that have that data plane,
// it is that which they are known to take it from, or else taken to be the default one, or else the first; nil if none has it. What a
// namespace says of a revision is about sidecars.
func ambientPlane(k *detected) (plane *ControlPlane) {
	for _, p := range k.controlPlanes {
		if p.Ambient && (plane == nil || p.Nodes && !plane.Nodes || p.Nodes == plane.Nodes && p.Default && !plane.Default) {
			plane = p
		}
	}
	return plane
}

// meshOfPods is the mesh of a controller whose pods take part without a proxy of their own; nil if some pod has one, or none
// takes part. A pod with a proxy of its own is never in ambient mode (Istio, cni/pkg/util: CompiledEnablementSelectors.Matches).
func (x ambient) meshOfPods(kinds []*detected, ctl *controller) *ControlPlane {
	for _, k := range kinds {
		if k.Ambient == nil || !x.modeOfPods(k, ctl).IsAmbient() {
			continue
		}
		if plane := ambientPlane(k); plane != nil {
			return plane
		}
	}
	return nil
}

// reportUnproven says which namespaces have pods that say they are in ambient mode, in a cluster none of whose control planes
// shows that it has it.
func (x ambient) reportUnproven(kinds []*detected) {
	for _, k := range kinds {
		if k.Ambient == nil || len(k.controlPlanes) == 0 || ambientPlane(k) != nil {
			continue
		}
		var namespaces []string
		for _, ctl := range x.controllers {
			if x.modeOfPods(k, ctl) == discoveryv1.ModeAmbient && !slices.Contains(namespaces, ctl.ref.Namespace) {
				namespaces = append(namespaces, ctl.ref.Namespace)
			}
		}
		if len(namespaces) > 0 {
			x.Report(snapshot.Issue{
				Code: snapshot.AmbientMode, Severity: snapshot.Warning, Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: x.namespace, Name: x.Cluster},
				Message: fmt.Sprintf("pods of %s say that they are in ambient mode, which whoever may edit them can write, and no control plane of %s shows that it has it: they are no part of a mesh to meshctl",
					snapshot.NamespacesText(namespaces), k.Name),
				Hint: k.Ambient.Fix,
			})
		}
	}
}

// modeOfPods is the mode of a controller's pods, or of those that its template would make; empty if some have proxies of their own.
func (x ambient) modeOfPods(k *detected, ctl *controller) (mode discoveryv1.DataPlaneMode) {
	if len(ctl.pods) == 0 {
		ns := x.Namespaces[ctl.ref.Namespace]
		if k.Template != nil {
			if _, sidecar := k.Template(ns, ctl.template); sidecar {
				return discoveryv1.ModeOwnProxy
			}
		}
		return k.Ambient.Mode(ns, &ctl.template.ObjectMeta, &ctl.template.Spec)
	}
	for _, pod := range ctl.pods {
		if _, sidecar := k.Sidecar(x.Index, pod); sidecar {
			return discoveryv1.ModeOwnProxy
		}
		if of := x.modeOfPod(k, pod); mode != discoveryv1.ModeAmbient && of != "" {
			mode = of
		}
	}
	return mode
}

// modeOf is how the pods of a workload take part in its mesh.
func (x ambient) modeOf(k *detected, ctl *controller) discoveryv1.DataPlaneMode {
	if k == nil || k.Ambient == nil {
		return discoveryv1.ModeOwnProxy
	}
	if role := k.Ambient.Role(ctl.template.Labels); role != "" {
		return role
	}
	return x.modeOfPods(k, ctl)
}

// modes are in the order of AmbientService.Mode.
var modes = []discoveryv1.DataPlaneMode{discoveryv1.ModeAmbient, discoveryv1.ModePending, discoveryv1.ModeWaypoint, discoveryv1.ModeHBONEGateway}

// serviceOf is what is known of a Service with pods in ambient mode; nil if it has none.
func (x ambient) serviceOf(k *detected, c *candidate) *discoveryv1.AmbientService {
	if k == nil || k.Ambient == nil || c.mesh == nil || !c.mesh.Ambient {
		return nil
	}
	out := &discoveryv1.AmbientService{}
	for _, wl := range c.workloads {
		mode := wl.object.Spec.Kubernetes.DataPlaneMode
		at, found := slices.Index(modes, mode), slices.Index(modes, out.Mode)
		switch {
		case at < 0:
			out.Partly = true
		case found < 0 || at < found:
			out.Mode = mode
		}
		if at >= 0 || out.Mode != "" {
			continue
		}
		// A rollout from sidecars is under way.
		for _, pod := range wl.controller.pods {
			if of := x.modeOfPod(k, pod); of.IsAmbient() && !k.hasProxy(x.Index, pod) {
				out.Mode = of
			}
		}
	}
	if out.Mode == "" {
		return nil
	}
	s := c.service
	out.Global = k.Ambient.IsGlobal(s.Labels)
	if out.Mode.IsAmbient() {
		out.Waypoint = x.waypointOf(k, s)
	}
	return out
}

// askedWaypoint is the waypoint that a Service of a mesh with that data plane asks for, and whether gateways use it, too; empty if none.
func (x ambient) askedWaypoint(k *detected, c *candidate) (name string, ingress bool) {
	if k == nil || k.Ambient == nil || c.mesh == nil || !c.mesh.Ambient || k.Ambient.Role(c.service.Labels) != "" {
		return "", false
	}
	ns := x.Namespaces[c.service.Namespace]
	w := k.Ambient.Waypoint(ns, &c.service.ObjectMeta)
	if w == nil {
		return "", false
	}
	return w.Namespace + "/" + w.Name, k.Ambient.Ingress(ns, c.service.Labels)
}

func (k *detected) hasProxy(x *Index, pod *corev1.Pod) bool {
	_, ok := k.Sidecar(x, pod)
	return ok
}

// waypointOf is the waypoint that a Service asks for, as far as its pods and its Service show; nil if it asks for none.
func (x ambient) waypointOf(k *detected, s *corev1.Service) *discoveryv1.Waypoint {
	asked := k.Ambient.Waypoint(x.Namespaces[s.Namespace], &s.ObjectMeta)
	if asked == nil {
		return nil
	}
	at := key{asked.Namespace, asked.Name}
	if x.waypoints == nil {
		x.waypoints = map[key]*discoveryv1.Waypoint{}
	}
	if x.waypoints[at] == nil {
		x.waypoints[at] = asked
		x.lookUpWaypoint(k, asked)
	}
	return x.waypoints[at]
}

// lookUpWaypoint fills in whether a waypoint is there, and what it says of itself.
func (x ambient) lookUpWaypoint(k *detected, w *discoveryv1.Waypoint) {
	w.State = discoveryv1.WaypointMissing
	for _, ctl := range x.controllers {
		if ctl.ref.Namespace == w.Namespace && k.Ambient.IsOf(w.Name, ctl.template.Labels) {
			w.State = discoveryv1.WaypointNotReady
			k.Ambient.Describe(w, ctl.template.Labels)
		}
	}
	for _, s := range x.services {
		if s.Namespace != w.Namespace || !k.Ambient.IsOf(w.Name, s.Labels) {
			continue
		}
		k.Ambient.Describe(w, s.Labels)
		if slices.ContainsFunc(x.slices[keyOf(s)], func(slice *endpointv1.EndpointSlice) bool {
			return slices.ContainsFunc(slice.Endpoints, func(e endpointv1.Endpoint) bool { return isReady(&e) })
		}) {
			w.State = discoveryv1.WaypointReady
		}
	}
}

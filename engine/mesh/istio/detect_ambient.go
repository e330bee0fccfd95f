package istio

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
)

const (
	// redirectionKey is the annotation that istio-cni writes on a pod whose traffic it has handed to ztunnel (istio.io/api,
	// annotation.AmbientRedirection).
	redirectionKey   = "ambient.istio.io/redirection"
	redirectionValue = "enabled"
	// modeKey asks for ambient mode on a namespace or pod, or opts out of it (istio.io: Labels used by ambient mode).
	modeKey     = "istio.io/dataplane-mode"
	modeAmbient = "ambient"
	modeNone    = "none"
	// useWaypointKey names the Gateway of a waypoint, on a Service, pod or namespace; none opts out.
	useWaypointKey          = "istio.io/use-waypoint"
	useWaypointNamespaceKey = "istio.io/use-waypoint-namespace"
	noWaypoint              = "none"
	ingressUseWaypointKey   = "istio.io/ingress-use-waypoint"
	waypointForKey          = "istio.io/waypoint-for"
	globalKey               = "istio.io/global"
	// managedKey is on what istiod makes for a Gateway of the Gateway API, by whom (Istio, constants.ManagedGateway...).
	managedKey      = "gateway.istio.io/managed"
	managedMesh     = "istio.io-mesh-controller"
	managedEastWest = "istio.io-eastwest-controller"
	gatewayNameKey  = "gateway.networking.k8s.io/gateway-name"

	// enableAmbient turns ambient mode on in istiod (Istio, features.EnableAmbient), which is false unless set.
	enableAmbient = "PILOT_ENABLE_AMBIENT"
	multiNetwork  = "AMBIENT_ENABLE_MULTI_NETWORK"
)

// ambientDetector follows istiod (pilot/pkg/serviceregistry/ambient) and istio-cni (cni/pkg/util).
var ambientDetector = &discovery.AmbientDetector{
	Mode: ambientMode, Role: ambientRole, Waypoint: waypointFor, Ingress: ingressUsesWaypoint,
	IsOf: func(name string, labels map[string]string) bool {
		return labels[gatewayNameKey] == name && labels[managedKey] == managedMesh
	},
	Describe: func(w *discoveryv1.Waypoint, labels map[string]string) {
		w.For, w.Global = labels[waypointForKey], w.Global || isGlobal(labels)
	},
	IsGlobal: isGlobal,
	Fix:      "set " + enableAmbient + "=true on istiod, without which it has no ambient mode; else ask who wrote the annotation " + redirectionKey,
}

func isGlobal(labels map[string]string) bool { return labels[globalKey] == "true" }

// ambientMode: the annotation says that a pod is in ambient mode, and labels only that it shall be. Whoever may edit pods can write
// either, for its own pods.
func ambientMode(ns *corev1.Namespace, o *metav1.ObjectMeta, spec *corev1.PodSpec) discoveryv1.DataPlaneMode {
	if o.Annotations[redirectionKey] == redirectionValue {
		return discoveryv1.ModeAmbient
	}
	asks := o.Labels[modeKey]
	if asks == "" && ns != nil {
		asks = ns.Labels[modeKey]
	}
	if asks != modeAmbient || spec.HostNetwork {
		return discoveryv1.ModeOwnProxy
	}
	return discoveryv1.ModePending
}

func ambientRole(labels map[string]string) discoveryv1.DataPlaneMode {
	switch labels[managedKey] {
	case managedMesh:
		return discoveryv1.ModeWaypoint
	case managedEastWest:
		return discoveryv1.ModeHBONEGateway
	}
	return discoveryv1.ModeOwnProxy
}

// waypointFor is what the labels of a Service, or else those of its namespace, ask for (Istio, ambient.fetchWaypointForTarget).
func waypointFor(ns *corev1.Namespace, o *metav1.ObjectMeta) *discoveryv1.Waypoint {
	labels := o.Labels
	if _, set := labels[useWaypointKey]; !set && ns != nil {
		labels = ns.Labels
	}
	name := labels[useWaypointKey]
	if name == "" || name == noWaypoint {
		return nil
	}
	w := &discoveryv1.Waypoint{Name: name, Namespace: o.Namespace}
	if namespace, set := labels[useWaypointNamespaceKey]; set {
		w.Namespace = namespace
	}
	return w
}

// ingressUsesWaypoint reports whether gateways send requests for a Service through its waypoint, by its own label or else that of its
// namespace (Istio, ambient.ingressUseWaypointFromLabels).
func ingressUsesWaypoint(ns *corev1.Namespace, labels map[string]string) bool {
	value, set := labels[ingressUseWaypointKey]
	if !set && ns != nil {
		value = ns.Labels[ingressUseWaypointKey]
	}
	return isTrue(value)
}

// ambientOf says whether a control plane has ambient mode; nil if nothing shows it. Both signs are in its own namespace.
func ambientOf(x *discovery.Index, d *appsv1.Deployment, pilot *corev1.Container) *discoveryv1.IstioAmbient {
	out := &discoveryv1.IstioAmbient{MultiNetwork: isSet(pilot, multiNetwork)}
	if isSet(pilot, enableAmbient) {
		out.Evidence = enableAmbient + " of Deployment " + d.Namespace + "/" + d.Name
		return out
	}
	for _, set := range x.Objects.DaemonSets {
		if set.Namespace == d.Namespace && isZtunnel(set) {
			out.Evidence = "DaemonSet " + set.Namespace + "/" + set.Name
			return out
		}
	}
	return nil
}

// servesZtunnel reports whether the control plane of a revision is that from which ztunnel takes its configuration, as the annotation of
// its pods says (Istio's chart ztunnel, which writes the address of the same revision).
func servesZtunnel(x *discovery.Index, namespace, revision string) bool {
	for _, set := range x.Objects.DaemonSets {
		if set.Namespace == namespace && isZtunnel(set) {
			return cmp.Or(set.Spec.Template.Annotations[revisionKey], defaultRevision) == revision
		}
	}
	return false
}

func isZtunnel(set *appsv1.DaemonSet) bool {
	for i := range set.Spec.Template.Spec.Containers {
		if img, ok := discovery.ParseImage(set.Spec.Template.Spec.Containers[i].Image); ok && img.HasWord(ztunnelImage) {
			return true
		}
	}
	return false
}

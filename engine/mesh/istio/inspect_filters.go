package istio

import (
	"cmp"
	"slices"

	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	typev1beta1 "istio.io/api/type/v1beta1"
	istioextensionsv1alpha1 "istio.io/client-go/pkg/apis/extensions/v1alpha1"
	istionetworkingv1alpha3 "istio.io/client-go/pkg/apis/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// filter is an object that puts code or configuration of its own into proxies. What it does is not evaluated.
type filter struct {
	ref snapshot.Ref
	attachable
	sides []snapshot.ProxySide
}

// anySide is where a filter acts that does not say it.
var anySide = []snapshot.ProxySide{snapshot.SideOutbound, snapshot.SideInbound, snapshot.SideGateway}

// filtersOf are the filters of a cluster that users wrote, by namespace.
func filtersOf(c *snapshot.Cluster, byHand func(metav1.Object) bool) map[string][]filter {
	out := map[string][]filter{}
	add := func(kind snapshot.Kind, o metav1.Object, at attachable, sides []snapshot.ProxySide) {
		if byHand(o) && len(sides) > 0 {
			ref := snapshot.Ref{Kind: kind, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()}
			out[ref.Namespace] = append(out[ref.Namespace], filter{ref, at, sides})
		}
	}
	for o := range snapshot.Each[*istionetworkingv1alpha3.EnvoyFilter](c.OfMeshes[snapshot.EnvoyFilter]) {
		add(snapshot.EnvoyFilter, o, envoyFilterSpec{&o.Spec}, patchedSides(&o.Spec))
	}
	for o := range snapshot.Each[*istioextensionsv1alpha1.WasmPlugin](c.OfMeshes[snapshot.WasmPlugin]) {
		sides := anySide
		if len(o.Spec.Match) > 0 {
			sides = nil
			for _, m := range o.Spec.Match {
				sides = append(sides, sidesOf(m.GetMode())...)
			}
		}
		add(snapshot.WasmPlugin, o, &o.Spec, sides)
	}
	for o := range snapshot.Each[*istioextensionsv1alpha1.TrafficExtension](c.OfMeshes[snapshot.TrafficExtension]) {
		sides := anySide
		if len(o.Spec.Match) > 0 {
			sides = nil
			for _, m := range o.Spec.Match {
				sides = append(sides, sidesOf(m.GetMode())...)
			}
		}
		add(snapshot.TrafficExtension, o, trafficExtensionSpec{&o.Spec}, sides)
	}
	return out
}

// Filters implements snapshot.ByHand: those of the namespace of the pods, and of the root namespace (Istio, PushContext.EnvoyFilters
// and TrafficExtensionsByListenerInfo).
func (h *handWritten) Filters(of *snapshot.PodQuery, at snapshot.ProxySide) (out []snapshot.Intersection) {
	namespaces := []string{of.Namespace, of.Mesh.RootNamespace}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		for _, f := range h.filters[namespace] {
			if slices.Contains(f.sides, at) && slices.ContainsFunc(of.Pods, func(labels map[string]string) bool {
				return attaches(namespace, f, of.Namespace, labels)
			}) {
				out = append(out, snapshot.Intersection{Ref: f.ref, What: "may change what becomes of requests"})
			}
		}
	}
	slices.SortFunc(out, func(a, b snapshot.Intersection) int { return cmp.Or(a.Ref.Compare(b.Ref)) })
	return out
}

// sidesOf is where a selector of traffic acts: gateways are clients (Istio, workloadModeForListenerClass).
func sidesOf(mode typev1beta1.WorkloadMode) []snapshot.ProxySide {
	switch mode {
	case typev1beta1.WorkloadMode_CLIENT:
		return []snapshot.ProxySide{snapshot.SideOutbound, snapshot.SideGateway}
	case typev1beta1.WorkloadMode_SERVER:
		return []snapshot.ProxySide{snapshot.SideInbound}
	}
	return anySide
}

// patchedSides is where the patches of an EnvoyFilter act. Those for waypoints concern no sidecar.
func patchedSides(o *networking.EnvoyFilter) (out []snapshot.ProxySide) {
	for _, p := range o.ConfigPatches {
		switch p.GetMatch().GetContext() {
		case networking.EnvoyFilter_ANY:
			return anySide
		case networking.EnvoyFilter_SIDECAR_INBOUND:
			out = append(out, snapshot.SideInbound)
		case networking.EnvoyFilter_SIDECAR_OUTBOUND:
			out = append(out, snapshot.SideOutbound)
		case networking.EnvoyFilter_GATEWAY:
			out = append(out, snapshot.SideGateway)
		}
	}
	return out
}

// envoyFilterSpec names its selector as other objects do.
type envoyFilterSpec struct{ *networking.EnvoyFilter }

func (s envoyFilterSpec) GetSelector() *typev1beta1.WorkloadSelector {
	return &typev1beta1.WorkloadSelector{MatchLabels: s.GetWorkloadSelector().GetLabels()}
}

func (envoyFilterSpec) GetTargetRef() *typev1beta1.PolicyTargetReference { return nil }

// trafficExtensionSpec has no older field for one target.
type trafficExtensionSpec struct{ *extensions.TrafficExtension }

func (trafficExtensionSpec) GetTargetRef() *typev1beta1.PolicyTargetReference { return nil }

func stripEnvoyFilter(o *istionetworkingv1alpha3.EnvoyFilter) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	selector, targets := o.Spec.WorkloadSelector, o.Spec.TargetRefs
	var patches []*networking.EnvoyFilter_EnvoyConfigObjectPatch
	for _, p := range o.Spec.ConfigPatches {
		context := p.GetMatch().GetContext()
		if !slices.ContainsFunc(patches, func(had *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool { return had.Match.Context == context }) {
			patches = append(patches, &networking.EnvoyFilter_EnvoyConfigObjectPatch{Match: &networking.EnvoyFilter_EnvoyConfigObjectMatch{Context: context}})
		}
	}
	o.Spec.Reset()
	o.Spec.TargetRefs, o.Spec.ConfigPatches = targets, patches
	if selector != nil {
		o.Spec.WorkloadSelector = &networking.WorkloadSelector{Labels: selector.Labels}
	}
}

func stripWasmPlugin(o *istioextensionsv1alpha1.WasmPlugin) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	selector, target, targets, match := o.Spec.Selector, o.Spec.TargetRef, o.Spec.TargetRefs, o.Spec.Match
	o.Spec.Reset()
	o.Spec.Selector, o.Spec.TargetRef, o.Spec.TargetRefs = selector, target, targets
	for _, m := range match {
		o.Spec.Match = append(o.Spec.Match, &extensions.WasmPlugin_TrafficSelector{Mode: m.GetMode()})
	}
}

func stripTrafficExtension(o *istioextensionsv1alpha1.TrafficExtension) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	selector, targets, match := o.Spec.Selector, o.Spec.TargetRefs, o.Spec.Match
	o.Spec.Reset()
	o.Spec.Selector, o.Spec.TargetRefs = selector, targets
	for _, m := range match {
		o.Spec.Match = append(o.Spec.Match, &extensions.TrafficSelector{Mode: m.GetMode()})
	}
}

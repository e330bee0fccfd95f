package istio

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	typev1beta1 "istio.io/api/type/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	filtersv1alpha1 "github.com/meshctl/meshctl/engine/api/filters/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// filter is an object that puts code or configuration of its own into proxies. What it does is not evaluated.
type filter struct {
	ref snapshot.Ref
	attachable
	revisioned
	sides []snapshot.ProxySide
}

// anySide is where a filter acts that does not say it.
var anySide = []snapshot.ProxySide{snapshot.SideOutbound, snapshot.SideInbound, snapshot.SideGateway}

// filtersOf are the filters of a cluster that users wrote, by namespace.
func filtersOf(c *snapshot.Cluster, byHand func(metav1.Object) bool) map[string][]filter {
	out := map[string][]filter{}
	add := func(kind snapshot.Kind, o metav1.Object, spec *filtersv1alpha1.Spec, sides []snapshot.ProxySide) {
		if byHand(o) && len(sides) > 0 {
			ref := snapshot.Ref{Kind: kind, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()}
			out[ref.Namespace] = append(out[ref.Namespace], filter{ref, filterSpec{spec}, revisionedOf(o), sides})
		}
	}
	for o := range snapshot.Each[*filtersv1alpha1.EnvoyFilter](c.OfMeshes[snapshot.EnvoyFilter]) {
		add(snapshot.EnvoyFilter, o, &o.Spec, patchedSides(&o.Spec))
	}
	for o := range snapshot.Each[*filtersv1alpha1.WasmPlugin](c.OfMeshes[snapshot.WasmPlugin]) {
		add(snapshot.WasmPlugin, o, &o.Spec, matchedSides(&o.Spec))
	}
	for o := range snapshot.Each[*filtersv1alpha1.TrafficExtension](c.OfMeshes[snapshot.TrafficExtension]) {
		add(snapshot.TrafficExtension, o, &o.Spec, matchedSides(&o.Spec))
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
			if f.of(of.Mesh) && slices.Contains(f.sides, at) && slices.ContainsFunc(of.Pods, func(labels map[string]string) bool {
				return attaches(namespace, f, of.Namespace, labels)
			}) {
				out = append(out, snapshot.Intersection{Ref: f.ref, What: "may change what becomes of requests"})
			}
		}
	}
	switch at {
	case snapshot.SideInbound:
		out = slices.Concat(out, h.listeners(of), selectingPods(h, of))
	case snapshot.SideOutbound:
		out = append(out, h.senders(of)...)
	}
	slices.SortFunc(out, func(a, b snapshot.Intersection) int { return a.Ref.Compare(b.Ref) })
	return out
}

// HasFilters implements snapshot.ByHand.
func (h *handWritten) HasFilters() bool { return len(h.filters)+len(h.selecting) > 0 || h.listens }

// matchedSides is where selectors of traffic have an object act; without any, everywhere. Gateways are clients (Istio,
// workloadModeForListenerClass).
func matchedSides(s *filtersv1alpha1.Spec) (out []snapshot.ProxySide) {
	for _, m := range s.Match {
		switch m.Mode {
		case typev1beta1.WorkloadMode_CLIENT.String():
			out = append(out, snapshot.SideOutbound, snapshot.SideGateway)
		case typev1beta1.WorkloadMode_SERVER.String():
			out = append(out, snapshot.SideInbound)
		default:
			return anySide
		}
	}
	if len(s.Match) == 0 {
		return anySide
	}
	return out
}

// patchedSides is where the patches of an EnvoyFilter act. Those for waypoints concern no sidecar.
func patchedSides(s *filtersv1alpha1.Spec) (out []snapshot.ProxySide) {
	for _, p := range s.ConfigPatches {
		switch p.Match.Context {
		case "", networking.EnvoyFilter_ANY.String():
			return anySide
		case networking.EnvoyFilter_SIDECAR_INBOUND.String():
			out = append(out, snapshot.SideInbound)
		case networking.EnvoyFilter_SIDECAR_OUTBOUND.String():
			out = append(out, snapshot.SideOutbound)
		case networking.EnvoyFilter_GATEWAY.String():
			out = append(out, snapshot.SideGateway)
		}
	}
	return out
}

// filterSpec names what it is for as other objects do.
type filterSpec struct{ *filtersv1alpha1.Spec }

func (s filterSpec) GetSelector() *typev1beta1.WorkloadSelector {
	switch {
	case s.Selector != nil:
		return &typev1beta1.WorkloadSelector{MatchLabels: s.Selector.MatchLabels}
	case s.WorkloadSelector != nil:
		return &typev1beta1.WorkloadSelector{MatchLabels: s.WorkloadSelector.Labels}
	}
	return nil
}

func (s filterSpec) GetTargetRef() *typev1beta1.PolicyTargetReference {
	if s.TargetRef == nil {
		return nil
	}
	return targetOf(*s.TargetRef)
}

func (s filterSpec) GetTargetRefs() (out []*typev1beta1.PolicyTargetReference) {
	for _, t := range s.TargetRefs {
		out = append(out, targetOf(t))
	}
	return out
}

func targetOf(t filtersv1alpha1.Target) *typev1beta1.PolicyTargetReference {
	return &typev1beta1.PolicyTargetReference{Group: t.Group, Kind: t.Kind, Name: t.Name, Namespace: t.Namespace}
}

// stripEnvoyFilter keeps of an EnvoyFilter each place where it acts once, and no annotation.
func stripEnvoyFilter(o *filtersv1alpha1.EnvoyFilter) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	var patches []filtersv1alpha1.Patch
	for _, p := range o.Spec.ConfigPatches {
		if !slices.Contains(patches, p) {
			patches = append(patches, p)
		}
	}
	o.Spec.ConfigPatches = patches
}

func stripWasmPlugin(o *filtersv1alpha1.WasmPlugin) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
}

func stripTrafficExtension(o *filtersv1alpha1.TrafficExtension) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
}

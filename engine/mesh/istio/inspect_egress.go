package istio

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// excludes begins the namespace of an egress host that is left out (istio.io: Sidecar, IstioEgressListener.hosts).
const excludes = "~"

// Hides implements snapshot.ByHand.
func (h *handWritten) Hides(of *snapshot.HostQuery, caller *snapshot.PodQuery) (snapshot.Intersection, bool) {
	for _, labels := range caller.Pods {
		o := h.sidecarOf(caller, labels)
		if o != nil && !imports(o, caller.Namespace, of) {
			return snapshot.Intersection{
				Ref: sidecarRef(h.from, o), What: "does not import " + of.Host + " from namespace " + of.Home, Hint: "add " + of.Home + "/" + of.Host + " to its spec.egress.hosts",
			}, true
		}
	}
	return snapshot.Intersection{}, false
}

// Unknowns implements snapshot.ByHand: the outboundTrafficPolicy of a Sidecar, of which an empty one is REGISTRY_ONLY (Istio,
// initSidecarScopeInternalIndexes).
func (h *handWritten) Unknowns(caller *snapshot.PodQuery) (snapshot.Unknowns, snapshot.Ref, bool) {
	for _, labels := range caller.Pods {
		o := h.sidecarOf(caller, labels)
		switch p := outboundOf(o); {
		case p == nil:
		case p.EgressProxy != nil && p.Mode == networking.OutboundTrafficPolicy_ALLOW_ANY:
			return snapshot.UnknownsElsewhere, sidecarRef(h.from, o), true
		default:
			return unknownsOf(p.Mode.String()), sidecarRef(h.from, o), true
		}
	}
	return snapshot.UnknownsPassed, snapshot.Ref{}, false
}

// HidesAll implements snapshot.ByHand.
func (h *handWritten) HidesAll(suffix string, mesh *snapshot.MeshPlan) (out []snapshot.Intersection) {
	for namespace, list := range h.sidecars {
		for _, o := range list {
			own, whose := namespace, "callers in namespace "+namespace
			switch {
			case o.Spec.WorkloadSelector != nil:
				whose = "its pods in namespace " + namespace
			case namespace == mesh.RootNamespace:
				own, whose = "", "callers in namespaces that have no Sidecar of their own"
			}
			if !inRevision(mesh, o) || isSuperseded(o, list, mesh) || h.ignored(mesh, namespace) || importsAny(o, own, mesh.Namespace, suffix) {
				continue
			}
			out = append(out, snapshot.Intersection{
				Ref: sidecarRef(h.from, o), What: "imports no host of namespace " + mesh.Namespace + ": " + whose + " do not know the services of other clusters",
				Hint: "add " + mesh.Namespace + "/*." + suffix + " to its spec.egress.hosts",
			})
		}
	}
	slices.SortFunc(out, func(a, b snapshot.Intersection) int { return a.Ref.Compare(b.Ref) })
	return out
}

// outboundOf is the outboundTrafficPolicy of a Sidecar; nil if it has none.
func outboundOf(o *istionetworkingv1.Sidecar) *networking.OutboundTrafficPolicy {
	if o == nil {
		return nil
	}
	return o.Spec.OutboundTrafficPolicy
}

func sidecarRef(c *snapshot.Cluster, o *istionetworkingv1.Sidecar) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.Sidecar, Cluster: c.Name, Namespace: o.Namespace, Name: o.Name}
}

// isSuperseded reports whether an older Sidecar is for all pods of the namespace, too.
func isSuperseded(o *istionetworkingv1.Sidecar, list []*istionetworkingv1.Sidecar, mesh *snapshot.MeshPlan) bool {
	return slices.ContainsFunc(list, func(other *istionetworkingv1.Sidecar) bool {
		return o.Spec.WorkloadSelector == nil && other.Spec.WorkloadSelector == nil && inRevision(mesh, other) && byCreation(other, o) < 0
	})
}

func byCreation(a, b *istionetworkingv1.Sidecar) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// sidecarOf is the Sidecar for a pod: one of its namespace that selects it, then one without a selector, then that of the root
// namespace, each time the oldest (Istio, PushContext.initSidecarScopes). Nil if there is none.
func (h *handWritten) sidecarOf(of *snapshot.PodQuery, labels map[string]string) (found *istionetworkingv1.Sidecar) {
	first := func(namespace string, fits func(*networking.WorkloadSelector) bool) bool {
		for _, o := range h.sidecars[namespace] {
			if inRevision(of.Mesh, o) && fits(o.Spec.WorkloadSelector) && (found == nil || byCreation(o, found) < 0) {
				found = o
			}
		}
		return found != nil
	}
	everything := func(s *networking.WorkloadSelector) bool { return s == nil }
	_ = first(of.Namespace, func(s *networking.WorkloadSelector) bool { return s != nil && inventory.MatchLabels(s.Labels, labels) }) ||
		first(of.Namespace, everything) || first(of.Mesh.RootNamespace, everything)
	return found
}

// imports reports whether proxies under a Sidecar in a namespace know a host. Without egress, they know all
// (Istio, initSidecarScopeInternalIndexes).
func imports(o *istionetworkingv1.Sidecar, namespace string, of *snapshot.HostQuery) bool {
	if len(o.Spec.Egress) == 0 {
		return true
	}
	// A listener for the port is alone for it (Istio, SidecarScope.GetEgressListenerForRDS).
	own := func(l *networking.IstioEgressListener) bool { return l.Port != nil && l.Port.Number == of.Port }
	hasOwn := of.Port != 0 && slices.ContainsFunc(o.Spec.Egress, own)
	return slices.ContainsFunc(o.Spec.Egress, func(l *networking.IstioEgressListener) bool {
		if of.Port != 0 && (hasOwn && !own(l) || !hasOwn && l.Port != nil) {
			return false
		}
		in, out := false, false
		for _, text := range l.Hosts {
			from, name, isExcluded := egressHost(text, namespace)
			if (from == anywhere || from == of.Home) && covers(name, of.Host) {
				in, out = in || !isExcluded, out || isExcluded
			}
		}
		return in && !out
	})
}

// importsAny reports whether proxies of a namespace under a Sidecar know any host of another one that ends with a suffix. The
// namespace is empty if it is any.
func importsAny(o *istionetworkingv1.Sidecar, namespace, home, suffix string) bool {
	if len(o.Spec.Egress) == 0 {
		return true
	}
	return slices.ContainsFunc(o.Spec.Egress, func(l *networking.IstioEgressListener) bool {
		return slices.ContainsFunc(l.Hosts, func(text string) bool {
			from, name, isExcluded := egressHost(text, namespace)
			return !isExcluded && (from == anywhere || from == home) && (covers(name, "*."+suffix) || strings.HasSuffix(name, "."+suffix))
		})
	})
}

// egressHost splits an egress host of a Sidecar that proxies of a namespace have.
func egressHost(text, namespace string) (from, name string, isExcluded bool) {
	from, name, _ = strings.Cut(text, "/")
	if from, isExcluded = strings.CutPrefix(from, excludes); isExcluded && from == "" {
		from = anywhere
	}
	if from == ownNamespace {
		from = namespace
	}
	return from, strings.ToLower(name), isExcluded
}

// covers reports whether a name, which may begin with an asterisk, stands for all that another one does.
func covers(name, other string) bool {
	if end, isWild := strings.CutPrefix(name, "*"); isWild {
		return strings.HasSuffix(strings.TrimPrefix(other, "*"), end)
	}
	return name == other
}

package istio

import (
	"slices"

	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// undecided ends the sentence about two objects of which Istio documents no order.
const undecided = ", and the mesh decides which of the two applies"

// older ends that about two ServiceEntries or VirtualServices (Istio, PushContext.initServiceRegistry and initVirtualServices).
const older = ", and the mesh uses the older of the two"

// nameTaken ends that about one that has the name of the generated one.
const nameTaken = ", and has the name that the generated one needs, which is not written"

// hasNameOf reports whether an object has the name of what is generated for a service in its own cluster.
func (h *handWritten) hasNameOf(ref snapshot.Ref, of *snapshot.HostQuery) bool {
	return ref.Namespace == of.Home && of.Host == ref.Name+"."+ref.Namespace+".svc."+h.from.DomainOrDefault()
}

// removeSetting is the hint about an object beside a policy.
const removeSetting = "delete it, or remove from it what the policy sets"

// Routes implements snapshot.ByHand.
func (h *handWritten) Routes(of *snapshot.HostQuery) []snapshot.Intersection {
	hint := removeSetting
	if of.Generated {
		hint = "delete it, or change its hosts so that they do not include this one"
	}
	var out []snapshot.Intersection
	exact := h.virtualServices.named(of.Host)
	for _, o := range h.virtualServices.matching(of.Host) {
		to := o.seenBy(of.Mesh).among(of.Sources)
		if to.none() {
			continue
		}
		ends := undecided
		switch isExact := slices.ContainsFunc(exact, func(e handWrittenObject) bool { return e.ref == o.ref }); {
		case isExact && !o.seenBy(of.Mesh).all:
			ends = ", and comes first" // see RoutesFor
		case isExact:
			ends = older
		}
		if h.hasNameOf(o.ref, of) {
			ends = nameTaken
		}
		out = append(out, snapshot.Intersection{Ref: o.ref, What: "also routes requests for " + of.Host + to.phrase() + ends, Hint: hint})
	}
	for _, r := range h.attachedTo(of) {
		to := r.seenBy(of.Mesh).among(of.Sources)
		if len(r.http) == 0 || to.none() || slices.ContainsFunc(out, func(x snapshot.Intersection) bool { return x.Ref == r.ref }) {
			continue
		}
		ends := ", and comes first" // see RoutesFor
		if to.all {
			ends = older + ", or this one for callers in namespace " + r.ref.Namespace
		}
		out = append(out, snapshot.Intersection{Ref: r.ref, What: "also routes requests for " + of.Host + to.phrase() + ends, Hint: hint})
	}
	slices.SortFunc(out, func(a, b snapshot.Intersection) int { return a.Ref.Compare(b.Ref) })
	return out
}

// backendHint is the hint about a BackendTLSPolicy for a service of the mesh.
const backendHint = "if it is for a gateway only, tell Istio to ignore it with the annotation " + ignorePolicy + ": \"true\""

// Connections implements snapshot.ByHand.
func (h *handWritten) Connections(of *snapshot.HostQuery) []snapshot.Intersection {
	also, ends, hidden, hint := ", or its subsets", undecided, "a DestinationRule in the namespace of the service", removeSetting
	if of.Generated {
		also, ends, hidden = "", undecided+": failing endpoints may stay in use, so that nothing takes over", "the generated DestinationRule"
		hint = "delete it, or change its host so that it does not include this one"
	}
	var out []snapshot.Intersection
	for _, o := range h.destinationRules.matching(of.Host) {
		isBackend := o.ref.Kind == snapshot.BackendTLSPolicy
		switch to, isHidden := o.ruleFor(of); {
		case to.none() || isBackend && !h.backends.heeds(of.Mesh, o.ref):
		case isBackend:
			out = append(out, snapshot.Intersection{Ref: o.ref, What: "has callers do TLS to " + of.Host + to.phrase() + ", which proxies of the mesh do not take", Hint: backendHint})
		case isHidden:
			out = append(out, snapshot.Intersection{
				Ref: o.ref, What: "no longer sets how " + of.Host + " is connected to" + to.phrase() + ": " + hidden + " takes precedence over one in the root namespace", Hint: hint,
			})
		case h.hasNameOf(o.ref, of):
			out = append(out, snapshot.Intersection{Ref: o.ref, What: "also sets how " + of.Host + " is connected to" + also + to.phrase() + nameTaken, Hint: hint})
		default:
			out = append(out, snapshot.Intersection{Ref: o.ref, What: "also sets how " + of.Host + " is connected to" + also + to.phrase() + ends, Hint: hint})
		}
	}
	return out
}

// Endpoints implements snapshot.ByHand. A ServiceEntry with a wildcard is none: the more specific host wins. Proxies take one of their
// own namespace before others, then those that are exported to it by name, and then the oldest (Istio,
// IstioEgressListenerWrapper.selectServices and SidecarScope.appendSidecarServices).
func (h *handWritten) Endpoints(of *snapshot.HostQuery) []snapshot.Intersection {
	what := "also defines where " + of.Host + " is"
	if of.Generated {
		what = "also defines the endpoints of " + of.Host
	}
	var out []snapshot.Intersection
	for _, o := range h.serviceEntries.named(of.Host) {
		seen := o.seenBy(of.Mesh)
		to := seen.among(of.Sources)
		if to.none() {
			continue
		}
		ends := older
		switch {
		case !seen.all:
			ends = ", and comes first"
		case o.ref.Namespace != of.Home:
			ends = older + ", or this one for callers in namespace " + o.ref.Namespace
		}
		out = append(out, snapshot.Intersection{Ref: o.ref, What: what + to.phrase() + ends, Hint: "delete it, or choose another hostname", First: !seen.all})
	}
	return out
}

// ruleFor are the callers to whom a DestinationRule applies. Istio takes the rules of
// the first of three namespaces that has any: the caller's, the service's, and the root
// namespace, where callers of the root namespace begin with the second, but for rules
// that are for them alone (PushContext.destinationRule). Hidden is set if a rule of the
// root namespace no longer applies to them, because one is generated for the service.
func (o handWrittenObject) ruleFor(of *snapshot.HostQuery) (to callerNamespaces, hidden bool) {
	to = o.seenBy(of.Mesh)
	root := of.Mesh.RootNamespace
	switch o.ref.Namespace {
	case of.Home:
		return to, false
	case root:
		return to, to.all || !slices.Equal(to.names, []string{root})
	}
	return to.only(o.ref.Namespace), false
}

// byAge tells what ServiceEntries and VirtualServices for all callers, and Sidecars with a selector are about (Istio,
// sortConfigByCreationTime).
func byAge(o snapshot.APIObject) (hosts []string, pods map[string]string) {
	switch o := o.(type) {
	case *istionetworkingv1.ServiceEntry:
		if len(o.Spec.ExportTo) == 0 || slices.Contains(o.Spec.ExportTo, allNamespaces) {
			return o.Spec.Hosts, nil
		}
	case *istionetworkingv1.VirtualService:
		if len(o.Spec.ExportTo) == 0 || slices.Contains(o.Spec.ExportTo, allNamespaces) {
			return o.Spec.Hosts, nil
		}
	case *istionetworkingv1.Sidecar:
		return nil, o.Spec.GetWorkloadSelector().GetLabels()
	}
	return nil, nil
}

package istio

import (
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// InAmbient implements snapshot.ByHand: what istiod makes of AuthorizationPolicies and PeerAuthentications for ztunnel
// (pilot/pkg/serviceregistry/ambient/authorization.go), and what needs a waypoint (istio.io: Use Layer 7 features).
func (h *handWritten) InAmbient(of *snapshot.HostQuery, service *discoveryv1.KubeService) []snapshot.Intersection {
	var out []snapshot.Intersection
	add := func(ref snapshot.Ref, what, hint string) {
		if what != "" {
			out = append(out, snapshot.Intersection{Ref: ref, What: what, Hint: hint})
		}
	}
	namespaces := []string{service.Ref.Namespace}
	if of.Mesh.RootNamespace != service.Ref.Namespace {
		namespaces = append(namespaces, of.Mesh.RootNamespace)
	}
	usable := snapshot.HasWaypoint(service)
	for _, namespace := range namespaces {
		for _, o := range h.authorizationPolicies[namespace] {
			ref := snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: h.from.Name, Namespace: o.Namespace, Name: o.Name}
			switch targets := targetsOf(&o.Spec); {
			case !h.reads(of.Mesh, o):
			case len(targets) == 0 && selectsPodsOf(o, service):
				add(ref, atZtunnel(o), "name a Service in its targetRefs, behind a waypoint; and let ztunnel decide by identities and ports only")
			case !usable && namespace == service.Ref.Namespace && targetsService(&o.Spec, service.Ref.Name):
				add(ref, "names the service in its targetRefs, which only a waypoint holds to, and there is none", waypointHint)
			}
		}
	}
	for _, o := range h.destinationRules.matching(of.Host) {
		if rule := h.destinationRuleOf[o.ref]; rule != nil && len(rule.Spec.Subsets) > 0 && !o.seenBy(of.Mesh).none() {
			add(o.ref, "has subsets, which neither ztunnel nor waypoints know", "make a Service of each version")
		}
	}
	if !usable {
		for _, x := range h.Routes(of) {
			add(x.Ref, "routes its requests, which for callers in ambient mode only a waypoint does, and there is none", waypointHint)
		}
	}
	query := &snapshot.PodQuery{Mesh: of.Mesh, Namespace: service.Ref.Namespace}
	for i := range service.EndpointSubsets {
		for _, e := range service.EndpointSubsets[i].Endpoints {
			g := &guard{cluster: h.from.Name, peers: h.peersOn(query, e.Labels)}
			for _, p := range service.EndpointSubsets[i].Ports {
				if tls, by := g.wanted(p.Port); service.EndpointSubsets[i].Ambient && tls == snapshot.TLSNone {
					add(by, "turns mutual TLS off, which ztunnel does not do: callers in ambient mode still come with it", "delete it, or set mode PERMISSIVE")
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b snapshot.Intersection) int { return a.Ref.Compare(b.Ref) })
	return slices.Compact(out)
}

const waypointHint = "make a waypoint for the namespace, and name it in its label " + useWaypointKey + ": istioctl waypoint apply --enroll-namespace"

// targetsService reports whether a policy is for a Service of its namespace.
func targetsService(o attachable, service string) bool {
	for _, t := range targetsOf(o) {
		if t.GetKind() == "Service" && (t.GetGroup() == "" || t.GetGroup() == "core") && t.GetName() == service {
			return true
		}
	}
	return false
}

// atZtunnel says what ztunnel makes of a policy otherwise than proxies of pods do; empty if nothing.
func atZtunnel(o *istiosecurityv1.AuthorizationPolicy) string {
	if o.Spec.Action == security.AuthorizationPolicy_CUSTOM {
		return "asks an external authorizer, which ztunnel does not: it has no effect on pods in ambient mode"
	}
	with := map[string]bool{}
	left := 0
	for _, rule := range o.Spec.Rules {
		of := requestAttributes(rule)
		for _, name := range of {
			with[name] = true
		}
		if len(of) == 0 {
			left++
		}
	}
	if len(with) == 0 {
		return ""
	}
	names := make([]string, 0, len(with))
	for name := range with {
		names = append(names, name)
	}
	slices.Sort(names)
	has := "has " + strings.Join(names, ", ") + " in its rules: "
	switch {
	case o.Spec.Action == security.AuthorizationPolicy_DENY:
		return has + "ztunnel denies by what else they say, and so more than they say"
	case left == 0:
		return has + "ztunnel leaves such rules out, so that it lets nobody in to pods in ambient mode"
	}
	return has + "ztunnel leaves such rules out, so that it lets in fewer callers to pods in ambient mode"
}

// connectionAttributes are the keys of conditions that are about connections (Istio, ambient.l4WhenAttributes).
var connectionAttributes = []string{"source.ip", "source.namespace", "source.principal", "destination.ip", "destination.port"}

// requestAttributes are those parts of a rule that are about requests (Istio, ambient.httpOperations and httpSources).
func requestAttributes(rule *security.Rule) (out []string) {
	add := func(name string, values []string) {
		if len(values) > 0 {
			out = append(out, name)
		}
	}
	for _, to := range rule.GetTo() {
		o := to.GetOperation()
		add("hosts", o.GetHosts())
		add("notHosts", o.GetNotHosts())
		add("methods", o.GetMethods())
		add("notMethods", o.GetNotMethods())
		add("paths", o.GetPaths())
		add("notPaths", o.GetNotPaths())
	}
	for _, from := range rule.GetFrom() {
		s := from.GetSource()
		add("remoteIpBlocks", s.GetRemoteIpBlocks())
		add("notRemoteIpBlocks", s.GetNotRemoteIpBlocks())
		add("requestPrincipals", s.GetRequestPrincipals())
		add("notRequestPrincipals", s.GetNotRequestPrincipals())
	}
	for _, when := range rule.GetWhen() {
		if !slices.Contains(connectionAttributes, when.GetKey()) {
			out = append(out, when.GetKey())
		}
	}
	return out
}

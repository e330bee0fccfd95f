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

// ConnectionFor implements snapshot.ByHand. Istio looks for rules in the namespace of the callers, of the service, and in the root
// namespace, and takes the most specific host of the first one that has any (PushContext.destinationRule); rules for the same host
// are merged, and the oldest one with a traffic policy says it (mergeDestinationRule).
func (h *handWritten) ConnectionFor(of *snapshot.HostQuery, callers *snapshot.PodQuery, subset string) (snapshot.HandConnection, bool) {
	rules := h.rulesFor(of, callers)
	if len(rules) == 0 {
		return snapshot.HandConnection{}, false
	}
	first := rules[0]
	out := snapshot.HandConnection{Ref: h.ruleRef(first), Place: snapshot.HandInstead}
	switch first.Namespace {
	case of.Home:
		out.Place = snapshot.HandBeside
	case callers.Namespace:
	default:
		out.Place = snapshot.HandBehind
	}
	policy, by, unclear := h.backends.policyOf(of.Mesh, rules, of.Port)
	out.Settings = policy != nil
	if by != nil {
		out.Ref = h.ruleRef(by)
	}
	var ofSubset *networking.TrafficPolicy
	for _, o := range rules {
		at := slices.IndexFunc(o.Spec.Subsets, func(s *networking.Subset) bool { return s.Name == subset })
		if subset != "" && at >= 0 {
			if ofSubset = o.Spec.Subsets[at].TrafficPolicy; ofSubset != nil {
				out.Ref = h.ruleRef(o)
			}
			break
		}
	}
	tls, _ := tlsFor(policy, of.Port)
	if more, whole := tlsFor(ofSubset, of.Port); more != nil || whole {
		tls = more
	}
	out.TLS, out.Mode = clientTLS(tls)
	if mode := endpointTLS(of.Port, ofSubset, policy); tls == nil && mode != nil && mode.GetMode() != networking.ClientTLSSettings_ISTIO_MUTUAL {
		out.TLS, out.Mode = snapshot.ClientPlain, "TLS mode "+mode.GetMode().String()+", but none for this port"
	}
	settings, _ := settingsFor(policy, of.Port)
	own, whole := settingsFor(ofSubset, of.Port)
	settings = own.over(settings, whole)
	out.Astray, out.Prefix, out.Named = settings.astray(), cmp.Or(unclear, settings.prefix()), settings.named()
	// What is generated says who sees it only where the mesh has a default for that (see exporter), and that is seldom the same.
	hasDefault := len(defaultExportTo(of.Mesh.ExportTo, snapshot.DestinationRule)) > 0
	out.Apart = slices.ContainsFunc(rules, func(o *istionetworkingv1.DestinationRule) bool {
		return hasDefault || len(o.Spec.ExportTo) > 0
	})
	return out, true
}

func (h *handWritten) ruleRef(o *istionetworkingv1.DestinationRule) snapshot.Ref {
	if ref, found := h.backends.ref[o]; found {
		return ref
	}
	return snapshot.Ref{Kind: snapshot.DestinationRule, Cluster: h.from.Name, Namespace: o.Namespace, Name: o.Name}
}

// rulesFor are the DestinationRules for a host that callers use, the oldest first.
func (h *handWritten) rulesFor(of *snapshot.HostQuery, callers *snapshot.PodQuery) []*istionetworkingv1.DestinationRule {
	var found []*istionetworkingv1.DestinationRule
	rank := func(o *istionetworkingv1.DestinationRule) int {
		switch o.Namespace {
		case callers.Namespace:
			if o.Namespace != of.Mesh.RootNamespace || len(o.Spec.ExportTo) == 1 && o.Spec.ExportTo[0] == ownNamespace {
				return 0
			}
		case of.Home:
			return 1
		}
		if o.Namespace == of.Home {
			return 1
		}
		return 2
	}
	for _, ref := range h.destinationRules.matching(of.Host) {
		o := cmp.Or(h.destinationRuleOf[ref.ref], h.backends.of[backendKey{ref.ref, of.Host}])
		if ref.ref.Kind == snapshot.BackendTLSPolicy && !h.backends.heeds(of.Mesh, ref.ref) {
			continue
		}
		if to, _ := ref.ruleFor(of); !to.includes(callers.Namespace) || o == nil {
			continue
		}
		if s := o.Spec.WorkloadSelector; s != nil && !slices.ContainsFunc(callers.Pods, func(labels map[string]string) bool {
			return inventory.MatchLabels(s.MatchLabels, labels)
		}) {
			continue
		}
		found = append(found, o)
	}
	// Of wildcards, the longest is the most specific.
	specific := func(o *istionetworkingv1.DestinationRule) int {
		if strings.HasPrefix(o.Spec.Host, "*") {
			return -len(o.Spec.Host)
		}
		return -1 << 16
	}
	slices.SortStableFunc(found, func(a, b *istionetworkingv1.DestinationRule) int {
		return cmp.Or(rank(a)-rank(b), specific(a)-specific(b), order(a.Spec.WorkloadSelector == nil, b.Spec.WorkloadSelector == nil), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return mergedFor(slices.DeleteFunc(found, func(o *istionetworkingv1.DestinationRule) bool {
		return rank(o) != rank(found[0]) || specific(o) != specific(found[0])
	}))
}

// tlsFor is what a policy says of TLS for a port, and whether what it says is for the port alone: then it inherits nothing (Istio,
// util.GetPortLevelTrafficPolicy).
func tlsFor(p *networking.TrafficPolicy, port uint32) (tls *networking.ClientTLSSettings, whole bool) {
	for _, s := range p.GetPortLevelSettings() {
		if s.GetPort().GetNumber() == port && port != 0 {
			return s.GetTls(), true
		}
	}
	return p.GetTls(), false
}

// endpointTLS is what the first of some policies that says anything of TLS says of it for a port, or else for all. Where settings of a port
// leave it out, the connections to endpoints are plain because of what is for all, although that itself does not apply (Istio,
// trafficPolicyTLSModeForPort).
func endpointTLS(port uint32, policies ...*networking.TrafficPolicy) *networking.ClientTLSSettings {
	for _, p := range policies {
		if tls, _ := tlsFor(p, port); tls != nil {
			return tls
		}
		if tls := p.GetTls(); tls != nil {
			return tls
		}
	}
	return nil
}

// clientTLS is what settings mean, and how to name them.
func clientTLS(tls *networking.ClientTLSSettings) (snapshot.ClientTLS, string) {
	if tls == nil {
		return snapshot.ClientUnset, ""
	}
	mode := "TLS mode " + tls.GetMode().String()
	switch {
	case tls.GetMode() == networking.ClientTLSSettings_DISABLE:
		return snapshot.ClientPlain, mode
	case tls.GetMode() != networking.ClientTLSSettings_ISTIO_MUTUAL:
		return snapshot.ClientOther, mode
	case tls.GetSni() != "":
		return snapshot.ClientOther, mode + " with an SNI of its own"
	case len(tls.GetSubjectAltNames()) > 0:
		return snapshot.ClientOther, mode + " with subjectAltNames of its own"
	}
	return snapshot.ClientMesh, mode
}

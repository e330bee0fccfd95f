package istio

import (
	"maps"
	"slices"

	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
)

// mergedRule are DestinationRules for one host that Istio makes one of: those that say the same of who sees them.
type mergedRule struct {
	exportTo []string
	rules    []*istionetworkingv1.DestinationRule
}

// mergedFor are those of some rules for a host in one namespace, in the order in which Istio merges them, that apply to callers who see all
// of them: of several that are not merged, the one that selects the callers, and else the last (Istio, PushContext.mergeDestinationRule
// and SidecarScope.DestinationRule).
func mergedFor(rules []*istionetworkingv1.DestinationRule) []*istionetworkingv1.DestinationRule {
	var list []mergedRule
	for _, o := range rules {
		own := ruleExportTo(o)
		apart := true
		for i := range list {
			m := &list[i]
			first := m.rules[0].Spec.WorkloadSelector
			switch {
			case slices.Equal(own, m.exportTo):
				apart = false
			case len(m.exportTo) > 0 && !slices.ContainsFunc(m.exportTo, func(to string) bool { return !slices.Contains(own, to) }):
				apart = true
			default:
				apart = true
				continue
			}
			selector := o.Spec.WorkloadSelector
			if first != nil && selector != nil && !maps.Equal(first.MatchLabels, selector.MatchLabels) {
				apart = true
				continue
			}
			if (first == nil) == (selector == nil) {
				apart = false
			}
			m.rules = append(m.rules, o)
		}
		if apart {
			list = append(list, mergedRule{own, []*istionetworkingv1.DestinationRule{o}})
		}
	}
	for _, m := range list {
		if m.rules[0].Spec.WorkloadSelector != nil {
			return m.rules
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1].rules
}

// ruleExportTo is what a rule says of who sees it, as Istio compares it: word for word, and a rule with a selector is for its own namespace.
func ruleExportTo(o *istionetworkingv1.DestinationRule) []string {
	if o.Spec.WorkloadSelector != nil {
		return []string{ownNamespace}
	}
	return slices.Compact(slices.Sorted(slices.Values(o.Spec.ExportTo)))
}

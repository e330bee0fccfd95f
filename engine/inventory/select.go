package inventory

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// SelectDestinations lists the indexes of the Destinations that any selector matches,
// ascending, and the references to Services that were not discovered. No selectors
// match all Services; a selector without parts matches none.
func (inv *Inventory) SelectDestinations(selectors []commonv1.DestinationSelector) (selected []int, missing []commonv1.ClusterObjectRef) {
	var matchers []*commonv1.KubeServiceMatcher
	if len(selectors) == 0 {
		matchers = append(matchers, &commonv1.KubeServiceMatcher{})
	}
	for i := range selectors {
		if m := selectors[i].KubeServiceMatcher; m != nil {
			matchers = append(matchers, m)
		}
		refs := selectors[i].KubeServiceRefs
		if refs == nil {
			continue
		}
		for _, ref := range refs.Services {
			if at, ok := inv.IndexOfService(ref); ok {
				selected = append(selected, at)
			} else {
				missing = append(missing, ref)
			}
		}
	}
	look := func(i int) {
		d := inv.Destinations[i]
		if d.Spec.KubeService != nil && slices.ContainsFunc(matchers, func(m *commonv1.KubeServiceMatcher) bool { return matchService(m, d.Spec.KubeService) }) {
			selected = append(selected, i)
		}
	}
	var where scopes
	for _, m := range matchers {
		where = append(where, scope{m.Namespaces, m.Clusters})
	}
	switch {
	case len(matchers) == 0:
	case where.limited():
		for _, i := range inv.destinationIndex.indexes(func(b *bucket) bool { return where.include(b.namespace) }) {
			look(i)
		}
	default:
		for i := range inv.Destinations {
			look(i)
		}
	}
	slices.Sort(selected)
	return slices.Compact(selected), missing
}

// SelectsDestination reports whether any selector matches a Destination; no
// selectors match all Services.
func SelectsDestination(selectors []commonv1.DestinationSelector, d *discoveryv1.Destination) bool {
	if d.Spec.KubeService == nil {
		return false
	}
	if len(selectors) == 0 {
		return true
	}
	for i := range selectors {
		if m := selectors[i].KubeServiceMatcher; m != nil && matchService(m, d.Spec.KubeService) {
			return true
		}
		if refs := selectors[i].KubeServiceRefs; refs != nil && slices.Contains(refs.Services, d.Spec.KubeService.Ref) {
			return true
		}
	}
	return false
}

func matchService(m *commonv1.KubeServiceMatcher, s *discoveryv1.KubeService) bool {
	return Includes(m.Namespaces, s.Ref.Namespace) && Includes(m.Clusters, s.Ref.ClusterName) && MatchLabels(m.Labels, s.Labels)
}

// SelectsWorkload reports whether any selector of a TrafficPolicy or a ServiceDependency matches a
// workload as the caller; no selectors, and a selector without a matcher, match
// all. What proxies of callers do, nobody does for those in ambient mode: none of them is selected.
func SelectsWorkload(selectors []commonv1.WorkloadSelector, w *discoveryv1.KubernetesWorkload) bool {
	return !w.DataPlaneMode.IsAmbient() && MatchesWorkload(selectors, w)
}

// MatchesWorkload is SelectsWorkload for workloads in ambient mode, too.
func MatchesWorkload(selectors []commonv1.WorkloadSelector, w *discoveryv1.KubernetesWorkload) bool {
	if len(selectors) == 0 {
		return true
	}
	for i := range selectors {
		m := selectors[i].KubeWorkloadMatcher
		if m == nil {
			return true
		}
		if Includes(m.Namespaces, w.Controller.Namespace) && Includes(m.Clusters, w.Controller.ClusterName) && SelectsPods(m.Labels, w) {
			return true
		}
	}
	return false
}

// SelectsIdentity reports whether any selector of an AccessPolicy matches the
// identity of a workload; no selectors match all, and omitted fields match any value.
func SelectsIdentity(selectors []commonv1.IdentitySelector, w *discoveryv1.KubernetesWorkload) bool {
	if len(selectors) == 0 {
		return true
	}
	for i := range selectors {
		s := &selectors[i]
		m := s.KubeIdentityMatcher
		matched := m != nil && Includes(m.Namespaces, w.Controller.Namespace) && Includes(m.Clusters, w.Controller.ClusterName)
		switch {
		case NamesAnyone(s):
			return true
		case s.KubeServiceAccountRefs == nil:
			if matched {
				return true
			}
			continue
		case NeedsBoth(s):
			if !matched {
				continue
			}
		case m != nil && len(m.Clusters) > 0 && matched:
			return true
		}
		if slices.ContainsFunc(s.KubeServiceAccountRefs.ServiceAccounts, func(account commonv1.ClusterObjectRef) bool {
			return emptyOr(account.Name, w.ServiceAccountName) && emptyOr(account.Namespace, w.Controller.Namespace) && emptyOr(account.ClusterName, w.Controller.ClusterName)
		}) {
			return true
		}
	}
	return false
}

func emptyOr(want, got string) bool { return want == "" || want == got }

// Includes reports whether a list has a value; an empty list has any.
func Includes(want []string, got string) bool { return len(want) == 0 || slices.Contains(want, got) }

// SelectsPods reports whether a selector matches pods of a workload.
func SelectsPods(selector map[string]string, w *discoveryv1.KubernetesWorkload) bool {
	return MatchLabels(selector, w.PodLabels) ||
		slices.ContainsFunc(w.OtherPodLabels, func(labels map[string]string) bool { return MatchLabels(selector, labels) })
}

// MatchLabels reports whether labels have all that are wanted.
func MatchLabels(want, got map[string]string) bool {
	for k, v := range want {
		if have, ok := got[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// NamesAnyone reports whether a selector matches every caller: it has no parts, or an
// empty matcher alone.
func NamesAnyone(s *commonv1.IdentitySelector) bool {
	m := s.KubeIdentityMatcher
	return s.KubeServiceAccountRefs == nil && (m == nil || len(m.Clusters)+len(m.Namespaces) == 0)
}

// NeedsBoth reports whether callers must match both parts of a selector, as in a
// source of Istio: namespaces of any cluster restrict the service accounts. Clusters
// do not: they are identities like service accounts, and all of them are allowed.
func NeedsBoth(s *commonv1.IdentitySelector) bool {
	m := s.KubeIdentityMatcher
	return m != nil && len(m.Clusters) == 0 && len(m.Namespaces) > 0 && s.KubeServiceAccountRefs != nil
}

// SelectionIssues reports references to what was not discovered, or that nothing is
// selected.
func (inv *Inventory) SelectionIssues(policy snapshot.Ref, field string, selected []int, missing []commonv1.ClusterObjectRef) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, m := range missing {
		issues = append(issues, inv.NotDiscovered(field, m, "correct the reference; `meshctl describe destination` lists the services there are").On(policy, snapshot.Ref{}))
	}
	if len(selected)+len(missing) == 0 {
		issues = append(issues, snapshot.Warnf(snapshot.SelectsNothing,
			"correct "+field+"; `meshctl describe destination` lists the services there are",
			"%s matches no destination", field).At(field).On(policy, snapshot.Ref{}))
	}
	return issues
}

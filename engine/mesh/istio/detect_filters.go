package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// selectHint says how to make a control plane read a namespace.
const selectHint = "give the namespace a label that discoverySelectors in its meshConfig select, or add a selector there"

// readFilters reads what of a MeshConfig filters, or sets, what proxies know and do.
func readFilters(config *meshconfig.MeshConfig, out *settings) {
	if o := config.GetOutboundTrafficPolicy(); o != nil { // an empty one is REGISTRY_ONLY
		if mode := o.GetMode(); mode != meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY {
			out.outbound = mode.String()
		}
	}
	if mode := config.GetInboundTrafficPolicy().GetMode(); mode != meshconfig.MeshConfig_InboundTrafficPolicy_PASSTHROUGH {
		out.inbound = mode.String()
	}
	for _, s := range config.GetDiscoverySelectors() {
		selector := selectorOf(s)
		if _, err := metav1.LabelSelectorAsSelector(&selector); err != nil {
			out.selectors = nil // the control plane keeps those that it had (Istio, discoveryNamespacesFilter.selectorsChanged)
			break
		}
		out.selectors = append(out.selectors, selector)
	}
	out.visibility = config.GetServiceEntryVisibility()
	defaults := config.GetDefaultTrafficPolicy()
	if defaults.GetConnectionPool() != nil {
		out.defaults = append(out.defaults, "connectionPool")
	}
	if defaults.GetOutlierDetection() != nil {
		out.defaults = append(out.defaults, "outlierDetection")
	}
	out.endpoints = localitySettings(config)
	out.plain = config.GetEnableAutoMtls() != nil && !config.GetEnableAutoMtls().GetValue()
	out.ingress = ingressOf(config)
	out.localHosts, out.sharedHosts = localHostsOf(config)
}

func selectorOf(s *meshconfig.LabelSelector) metav1.LabelSelector {
	out := metav1.LabelSelector{MatchLabels: s.GetMatchLabels()}
	for _, e := range s.GetMatchExpressions() {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.GetKey(), Operator: metav1.LabelSelectorOperator(e.GetOperator()), Values: e.GetValues(),
		})
	}
	return out
}

// labelsOf are those of a namespace, with the one that every API server adds.
func labelsOf(ns *corev1.Namespace) labels.Set {
	out := labels.Set{corev1.LabelMetadataName: ns.Name}
	maps.Copy(out, ns.Labels)
	return out
}

// selects reports whether one of discoverySelectors selects a namespace; without any, all are (istio.io:
// MeshConfig.discoverySelectors).
func selects(selectors []metav1.LabelSelector, ns *corev1.Namespace) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool { return matchesNamespace(&s, ns) })
}

func matchesNamespace(s *metav1.LabelSelector, ns *corev1.Namespace) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labelsOf(ns))
}

// ignoredOwn are those of the namespaces for the whole mesh that the control plane ignores, ascending.
func ignoredOwn(x *discovery.Index, config settings, namespace string) (ignored []string) {
	own := []string{namespace}
	if config.rootNamespace != "" && config.rootNamespace != namespace {
		own = append(own, config.rootNamespace)
	}
	slices.Sort(own)
	for _, name := range own {
		if ns := x.Namespaces[name]; ns != nil && !selects(config.selectors, ns) {
			ignored = append(ignored, name)
		}
	}
	return ignored
}

func reportIgnoredOwn(x *discovery.Index, mesh *discoveryv1.Mesh) {
	if ignored := mesh.Spec.Istio.IgnoresOwn; len(ignored) > 0 {
		x.Report(snapshot.Issue{
			Code: snapshot.NamespaceIgnored, Severity: snapshot.Error, Ref: snapshot.RefOf(snapshot.Mesh, mesh),
			Message: fmt.Sprintf("its control plane reads nothing of namespace %s, in which what is for the whole mesh is written: services of other clusters are not known, and no policy for all workloads has an effect",
				strings.Join(ignored, " and ")),
			Hint: selectHint,
		})
	}
}

// visibilityIn is who knows the ServiceEntries in a namespace, as the API names it: the first policy whose rules all match decides,
// for sidecars only if it says so (Istio, PushContext.serviceExportTo).
func visibilityIn(x *discovery.Index, config settings, namespace string) string {
	v := config.visibility
	if config.isStored {
		return config.visible
	}
	if !v.GetApplyToSidecars() {
		return ""
	}
	ns := x.Namespaces[namespace]
	if ns == nil {
		ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	}
	decided := v.GetDefaultVisibility()
	for _, p := range v.GetPolicies() {
		if !slices.ContainsFunc(p.GetMatchingRules(), func(r *meshconfig.ServiceEntryVisibility_MatchRule) bool {
			selector := selectorOf(r.GetNamespaceSelector())
			return r.GetNamespaceSelector() == nil || !matchesNamespace(&selector, ns)
		}) {
			decided = p.GetVisibility()
			break
		}
	}
	if decided == meshconfig.ServiceEntryVisibility_NAMESPACE || decided == meshconfig.ServiceEntryVisibility_NONE {
		return decided.String()
	}
	return ""
}

// unknownsOf is what the mode of an outboundTrafficPolicy says.
func unknownsOf(mode string) snapshot.Unknowns {
	switch mode {
	case "", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY.String():
		return snapshot.UnknownsPassed
	case meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY.String():
		return snapshot.UnknownsRefused
	}
	return snapshot.UnknownsElsewhere
}

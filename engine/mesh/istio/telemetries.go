package istio

import (
	"cmp"
	"slices"
	"strings"

	telemetry "istio.io/api/telemetry/v1alpha1"
	typev1beta1 "istio.io/api/type/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	telemetryv1 "github.com/meshctl/meshctl/engine/api/telemetry/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about what proxies do not count because a Telemetry says so (Istio, Telemetries.applicableTelemetries and mergeMetrics).

// prometheusProvider is the provider of the metrics that are read. One that the meshConfig of a mesh defines under another name counts in its
// place, where a Telemetry names only such.
const prometheusProvider = "prometheus"

// metricsOf are the metrics that decide about requests and about connections.
var requestMetric, connectionMetric = telemetry.MetricSelector_REQUEST_COUNT.String(), telemetry.MetricSelector_TCP_OPENED_CONNECTIONS.String()

// uncounted says what the proxies of pods in a cluster do not count.
func uncounted(c *snapshot.Cluster) func(mesh *snapshot.MeshPlan, namespace string, labels map[string]string) snapshot.Uncounted {
	unread := ""
	switch {
	case slices.Contains(c.Unsent, snapshot.Telemetry):
		unread = "Telemetries of " + c.Name + ", which the agent is too old to send, may disable metrics: register the cluster again with --agent-image"
	case slices.Contains(c.Denied, snapshot.Telemetry):
		unread = "Telemetries of " + c.Name + ", which meshctl may not read, may disable metrics: register the cluster again"
	}
	byNamespace := map[string][]*telemetryv1.Telemetry{}
	for o := range snapshot.Each[*telemetryv1.Telemetry](c.OfMeshes[snapshot.Telemetry]) {
		byNamespace[o.Namespace] = append(byNamespace[o.Namespace], o)
	}
	for _, list := range byNamespace {
		slices.SortFunc(list, func(a, b *telemetryv1.Telemetry) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
	}
	return func(mesh *snapshot.MeshPlan, namespace string, labels map[string]string) snapshot.Uncounted {
		out := snapshot.Uncounted{Unread: unread}
		if len(byNamespace) == 0 {
			return out
		}
		all := metricsFor(byNamespace, mesh, namespace, labels)
		ref := func(o *telemetryv1.Telemetry) snapshot.Ref {
			if o == nil {
				return snapshot.Ref{}
			}
			return snapshot.Ref{Kind: snapshot.Telemetry, Cluster: c.Name, Namespace: o.Namespace, Name: o.Name}
		}
		for side, mode := range map[*snapshot.UncountedSide]telemetry.WorkloadMode{
			&out.Calls: telemetry.WorkloadMode_CLIENT, &out.Serves: telemetry.WorkloadMode_SERVER,
		} {
			side.Requests, side.Connections = ref(disabling(all, mode.String(), requestMetric)), ref(disabling(all, mode.String(), connectionMetric))
		}
		return out
	}
}

// metricsBy are settings of a Telemetry.
type metricsBy struct {
	of  *telemetryv1.Telemetry
	set *telemetryv1.Metrics
}

// metricsFor are the settings for a pod, in their order: of the oldest Telemetry without a selector in the root namespace, of that in its own
// namespace, and of all in its own namespace that select it.
func metricsFor(byNamespace map[string][]*telemetryv1.Telemetry, mesh *snapshot.MeshPlan, namespace string, labels map[string]string) (out []metricsBy) {
	add := func(o *telemetryv1.Telemetry) {
		for i := range o.Spec.Metrics {
			out = append(out, metricsBy{o, &o.Spec.Metrics[i]})
		}
	}
	forAll := func(of string) {
		for _, o := range byNamespace[of] {
			if inRevision(mesh, o) && isForAll(o) {
				add(o)
				return
			}
		}
	}
	forAll(mesh.RootNamespace)
	if namespace != mesh.RootNamespace {
		forAll(namespace)
	}
	for _, o := range byNamespace[namespace] {
		if inRevision(mesh, o) && !isForAll(o) && attaches(o.Namespace, telemetrySpec{&o.Spec}, namespace, labels) {
			add(o)
		}
	}
	return out
}

// isForAll reports whether a Telemetry is for all pods of its namespace or mesh.
func isForAll(o *telemetryv1.Telemetry) bool {
	return (o.Spec.Selector == nil || len(o.Spec.Selector.MatchLabels) == 0) && len(targetsOf(telemetrySpec{&o.Spec})) == 0
}

// disabling is the Telemetry because of which no provider has a metric of a side; nil if one has it.
func disabling(all []metricsBy, mode, metric string) *telemetryv1.Telemetry {
	// What names providers takes the place of those that were named before.
	defaults := []string{prometheusProvider}
	named := defaults
	for _, m := range all {
		if names := providersOf(m.set); len(names) > 0 {
			named = names
		}
	}
	if i := slices.IndexFunc(named, func(name string) bool { return strings.EqualFold(name, prometheusProvider) }); i >= 0 {
		named = named[i : i+1] // others have other metrics
	}
	// By provider: who disables all at once, or else the one metric.
	at, ofAll, ofOne := defaults, map[string]*telemetryv1.Telemetry{}, map[string]*telemetryv1.Telemetry{}
	for _, m := range all {
		if names := providersOf(m.set); len(names) > 0 {
			at = names
		}
		for _, provider := range at {
			for i := range m.set.Overrides {
				override(&m.set.Overrides[i], m.of, mode, metric, provider, ofAll, ofOne)
			}
		}
	}
	var by *telemetryv1.Telemetry
	for _, provider := range named {
		if by = cmp.Or(ofAll[provider], ofOne[provider]); by == nil {
			return nil
		}
	}
	return by
}

// override applies an override of a Telemetry.
func override(o *telemetryv1.Override, of *telemetryv1.Telemetry, mode, metric, provider string, ofAll, ofOne map[string]*telemetryv1.Telemetry) {
	match := telemetryv1.Match{}
	if o.Match != nil {
		match = *o.Match
	}
	if other := match.Mode; other != mode && (other == telemetry.WorkloadMode_CLIENT.String() || other == telemetry.WorkloadMode_SERVER.String()) {
		return
	}
	isAll := match.CustomMetric == "" && (match.Metric == "" || match.Metric == telemetry.MetricSelector_ALL_METRICS.String())
	if isAll && o.Disabled != nil && *o.Disabled {
		ofAll[provider] = of
		return
	}
	delete(ofAll, provider) // whatever else is said of the side brings it back
	if o.Disabled == nil || !isAll && (match.CustomMetric != "" || match.Metric != metric) {
		return
	}
	if delete(ofOne, provider); *o.Disabled {
		ofOne[provider] = of
	}
}

func providersOf(m *telemetryv1.Metrics) (out []string) {
	for _, p := range m.Providers {
		out = append(out, p.Name)
	}
	return out
}

// telemetrySpec names what it is for as other objects do.
type telemetrySpec struct{ *telemetryv1.Spec }

func (s telemetrySpec) GetSelector() *typev1beta1.WorkloadSelector {
	if s.Selector == nil {
		return nil
	}
	return &typev1beta1.WorkloadSelector{MatchLabels: s.Selector.MatchLabels}
}

func (s telemetrySpec) GetTargetRef() *typev1beta1.PolicyTargetReference {
	if s.TargetRef == nil {
		return nil
	}
	return referenceOf(*s.TargetRef)
}

func (s telemetrySpec) GetTargetRefs() (out []*typev1beta1.PolicyTargetReference) {
	for _, t := range s.TargetRefs {
		out = append(out, referenceOf(t))
	}
	return out
}

func referenceOf(t telemetryv1.Target) *typev1beta1.PolicyTargetReference {
	return &typev1beta1.PolicyTargetReference{Group: t.Group, Kind: t.Kind, Name: t.Name, Namespace: t.Namespace}
}

// stripTelemetry keeps whose metrics it sets, and its age.
func stripTelemetry(o *telemetryv1.Telemetry) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
}

package policy

import (
	"reflect"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reach is what a policy of a registered cluster may be about: one namespace of that cluster. Who may write policies there can edit
// that namespace, and decides about nothing outside of it.
type reach struct{ cluster, namespace string }

// reachOf is the one place that says how far a policy of a registered cluster reaches. A role that gives the author of a policy more
// would be asked here.
func reachOf(policy snapshot.Ref) reach { return reach{policy.Cluster, policy.Namespace} }

func (in reach) includes(service commonv1.ClusterObjectRef) bool {
	return service.Namespace == in.namespace && service.ClusterName == in.cluster
}

func (in reach) String() string { return "namespace " + in.namespace + " of cluster " + in.cluster }

// localFields are the fields that a policy of a registered cluster may set: those that routes of its own callers have. The others
// hold for all callers of a service, or need settings of the whole mesh.
var localFields = []string{
	trafficShift.field, faultDelay.field, faultAbort.field, requestTimeout.field, retries.field, corsPolicy.field, mirror.field, headerManipulation.field,
}

// ask is the hint for what only the management cluster can say.
const ask = "write it in the policy of an administrator, in the management cluster; or leave it out"

// boundTraffic bounds a TrafficPolicy of a registered cluster.
func boundTraffic(p *networkingv1.TrafficPolicy, in reach) (*networkingv1.TrafficPolicy, []snapshot.Issue) {
	out := *p
	out.InCluster, out.Status = in.cluster, networkingv1.TrafficPolicyStatus{}
	destinations, left := in.destinations(p.Spec.DestinationSelector)
	sources, leftSources, some := in.workloads(p.Spec.SourceSelector)
	out.Spec.DestinationSelector, out.Spec.SourceSelector = destinations, sources
	issues := append(in.leftOut("destinationSelector", left), in.leftOut("sourceSelector", leftSources)...)
	if !some {
		issues = append(issues, snapshot.Errorf(snapshot.OutsideNamespace, "select callers in namespace "+in.namespace+", or omit sourceSelector for all of them",
			"it has no effect: sourceSelector selects no caller in %s", in).At("sourceSelector"))
	}
	return &out, issues
}

// boundAccess bounds an AccessPolicy of a registered cluster. Whom it names as callers is for its namespace to say.
func boundAccess(p *networkingv1.AccessPolicy, in reach) (*networkingv1.AccessPolicy, []snapshot.Issue) {
	out := *p
	out.InCluster, out.Status = in.cluster, networkingv1.AccessPolicyStatus{}
	destinations, left := in.destinations(p.Spec.DestinationSelector)
	out.Spec.DestinationSelector = destinations
	issues := in.leftOut("destinationSelector", left)
	if p.Spec.Audited() {
		issues = append(issues, snapshot.Errorf(snapshot.FieldUnsupported, "have an administrator write the policy in the management cluster; or remove enforcement, which has the policy decide",
			"policies of workload clusters cannot be audited: it refuses and allows nothing").At("enforcement"))
	}
	return &out, issues
}

// boundDependency bounds a ServiceDependency of a registered cluster: it limits the proxies of its own namespace. What these call is for
// that namespace to say.
func boundDependency(d *enterprisev1beta1.ServiceDependency, in reach) (*enterprisev1beta1.ServiceDependency, []snapshot.Issue) {
	out := *d
	out.InCluster, out.Status = in.cluster, enterprisev1beta1.ServiceDependencyStatus{}
	sources, left, some := in.workloads(d.Spec.SourceSelectors)
	out.Spec.SourceSelectors = sources
	issues := in.leftOut("sourceSelectors", left)
	if !some {
		issues = append(issues, snapshot.Errorf(snapshot.OutsideNamespace, "select workloads in namespace "+in.namespace+", or omit sourceSelectors for all of them",
			"it has no effect: sourceSelectors select no workload in %s", in).At("sourceSelectors"))
	}
	return &out, issues
}

// boundRecord bounds an AccessLogRecord of a registered cluster: it logs requests of its own namespace.
func boundRecord(r *observabilityv1.AccessLogRecord, in reach) (*observabilityv1.AccessLogRecord, []snapshot.Issue) {
	out := *r
	out.InCluster = in.cluster
	workloads, left, some := in.workloads(r.Spec.WorkloadSelectors)
	out.Spec.WorkloadSelectors = workloads
	issues := in.leftOut("workloadSelectors", left)
	if !some {
		issues = append(issues, snapshot.Errorf(snapshot.OutsideNamespace, "select workloads in namespace "+in.namespace+", or omit workloadSelectors for all of them",
			"it has no effect: workloadSelectors select no workload in %s", in).At("workloadSelectors"))
	}
	return &out, issues
}

// boundVirtualDestination bounds a VirtualDestination of a registered cluster: behind it are services of its own namespace. Which callers
// see it follows from where it is (keepOwnMeshes).
func boundVirtualDestination(v *enterprisev1beta1.VirtualDestination, in reach) (*enterprisev1beta1.VirtualDestination, []snapshot.Issue) {
	out := *v
	out.InCluster, out.Status = in.cluster, enterprisev1beta1.VirtualDestinationStatus{}
	var issues []snapshot.Issue
	report := func(field string, left []string, some bool) {
		if issues = append(issues, in.leftOut(field, left)...); !some && len(left) > 0 {
			issues = append(issues, snapshot.Errorf(snapshot.OutsideNamespace, "name a service in namespace "+in.namespace+", or have an administrator write it in the management cluster",
				"it has no effect: %s names no service in %s", field, in).At(field))
		}
	}
	if static := v.Spec.Static; static != nil {
		own, left := enterprisev1beta1.StaticDestinations{}, []string(nil)
		for _, d := range static.Destinations {
			if d.KubeService == nil || in.includes(*d.KubeService) {
				own.Destinations = append(own.Destinations, d)
			} else {
				left = append(left, in.service(*d.KubeService))
			}
		}
		out.Spec.Static = &own
		report("static.destinations", left, len(own.Destinations) > 0)
	}
	if localized := v.Spec.Localized; localized != nil {
		own := *localized
		selectors, left := in.destinations(localized.DestinationSelectors)
		own.DestinationSelectors, out.Spec.Localized = selectors, &own
		report("localized.destinationSelectors", left, slices.ContainsFunc(selectors, func(s commonv1.DestinationSelector) bool {
			return s.KubeServiceMatcher != nil || s.KubeServiceRefs != nil && len(s.KubeServiceRefs.Services) > 0
		}))
	}
	return &out, issues
}

// service names a service that was left out.
func (in reach) service(ref commonv1.ClusterObjectRef) string {
	return "service " + ref.Name + "." + ref.Namespace + "." + ref.ClusterName
}

// destinations are the part of some selectors that is about services within reach, and what was left out.
func (in reach) destinations(selectors []commonv1.DestinationSelector) (out []commonv1.DestinationSelector, left []string) {
	if len(selectors) == 0 {
		return []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Namespaces: []string{in.namespace}, Clusters: []string{in.cluster}}}}, nil
	}
	for i := range selectors {
		var kept commonv1.DestinationSelector
		if m := selectors[i].KubeServiceMatcher; m != nil {
			left = append(left, in.others(m.Namespaces, m.Clusters)...)
			if inventory.Includes(m.Namespaces, in.namespace) && inventory.Includes(m.Clusters, in.cluster) {
				kept.KubeServiceMatcher = &commonv1.KubeServiceMatcher{Namespaces: []string{in.namespace}, Clusters: []string{in.cluster}, Labels: m.Labels}
			}
		}
		if refs := selectors[i].KubeServiceRefs; refs != nil {
			own := *refs
			own.Services = nil
			for _, ref := range refs.Services {
				if in.includes(ref) {
					own.Services = append(own.Services, ref)
				} else {
					left = append(left, in.service(ref))
				}
			}
			kept.KubeServiceRefs = &own
		}
		out = append(out, kept) // one without parts matches none
	}
	return out, left
}

// workloads are the part of some selectors that is about workloads within reach, and what was left out; false if nothing is left.
func (in reach) workloads(selectors []commonv1.WorkloadSelector) (out []commonv1.WorkloadSelector, left []string, some bool) {
	own := func(labels map[string]string) commonv1.WorkloadSelector {
		return commonv1.WorkloadSelector{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Namespaces: []string{in.namespace}, Clusters: []string{in.cluster}, Labels: labels}}
	}
	if len(selectors) == 0 {
		return []commonv1.WorkloadSelector{own(nil)}, nil, true
	}
	for i := range selectors {
		m := selectors[i].KubeWorkloadMatcher
		if m == nil {
			out = append(out, own(nil))
			continue
		}
		left = append(left, in.others(m.Namespaces, m.Clusters)...)
		if inventory.Includes(m.Namespaces, in.namespace) && inventory.Includes(m.Clusters, in.cluster) {
			out = append(out, own(m.Labels))
		}
	}
	return out, left, len(out) > 0
}

// others are the namespaces and clusters of a selector that are not those within reach.
func (in reach) others(namespaces, clusters []string) (out []string) {
	for _, name := range namespaces {
		if name != in.namespace {
			out = append(out, "namespace "+name)
		}
	}
	for _, name := range clusters {
		if name != in.cluster {
			out = append(out, "cluster "+name)
		}
	}
	return out
}

// maxLeftOut bounds what one issue names.
const maxLeftOut = 5

func (in reach) leftOut(field string, left []string) []snapshot.Issue {
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	left = slices.Compact(left)
	what := strings.Join(left[:min(len(left), maxLeftOut)], ", ")
	if more := len(left) - maxLeftOut; more > 0 {
		what += " and " + snapshot.Count(more, "more")
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.OutsideNamespace, "remove it from "+field+", or have an administrator write the policy in the management cluster",
		"%s asks for %s: a policy in %s is about that namespace only", field, what, in).At(field)}
}

// withinWorkloads are those of some workloads that a ServiceDependency may be about. Bounded selectors select no others; this is to be
// sure.
func withinWorkloads(env *environment, dependency snapshot.Ref, selected []int) []int {
	if dependency.Cluster == "" {
		return selected
	}
	in := reachOf(dependency)
	return slices.DeleteFunc(slices.Clone(selected), func(i int) bool {
		k := env.inv.Workloads[i].Spec.Kubernetes
		return k == nil || inventory.NamespaceOf(k) != inventory.Namespace{Cluster: in.cluster, Name: in.namespace}
	})
}

// within are those of some Destinations that a policy may be about. Bounded selectors select no others; this is to be sure.
func within(env *environment, policy snapshot.Ref, selected []int) []int {
	if policy.Cluster == "" {
		return selected
	}
	in := reachOf(policy)
	return slices.DeleteFunc(selected, func(i int) bool {
		k := env.inv.Destinations[i].Spec.KubeService
		return k == nil || !in.includes(k.Ref)
	})
}

// withinAccess are those of some Destinations where an AccessPolicy of a registered cluster changes nothing outside of its namespace:
// not where callers are known by accounts alone, and not where the gateways of a mesh decide about callers for a service.
func withinAccess(env *environment, policy snapshot.Ref, selected []int) (kept []int, issues []snapshot.Issue) {
	if policy.Cluster == "" {
		return selected, nil
	}
	for _, i := range selected {
		mesh := env.topology.MeshOf(env.inv.Destinations[i])
		if mesh == nil || !mesh.Dialect.ByAccount && !mesh.Limited {
			kept = append(kept, i)
			continue
		}
		why := "it has limited trust, so that gateways outside of the namespace decide about callers of other clusters"
		if mesh.Dialect.ByAccount {
			why = mesh.Dialect.Name + " knows callers by their accounts alone"
		}
		if issue := snapshot.Errorf(snapshot.OutsideNamespace, ask, "no AccessPolicy of a workload cluster holds in mesh %s: %s", mesh.Ref.Name, why).
			At("destinationSelector").On(policy, snapshot.Ref{}); !slices.Contains(issues, issue) {
			issues = append(issues, issue)
		}
	}
	return kept, issues
}

// beyond are the issues with what a spec does beyond its reach.
func (in reach) beyond(spec *networkingv1.TrafficPolicySpec) []snapshot.Issue {
	var issues []snapshot.Issue
	add := func(field, format string, args ...any) {
		issues = append(issues, snapshot.Errorf(snapshot.OutsideNamespace, ask, format, args...).At(field))
	}
	bounded, _ := boundTraffic(&networkingv1.TrafficPolicy{Spec: *spec}, in)
	if !reflect.DeepEqual(&bounded.Spec, spec) {
		add("", "what was accepted before is about more than %s", in) // a stored spec; the present one is bounded
	}
	for i := range features {
		f := &features[i]
		if f.value(spec.Policy) != nil && !slices.Contains(localFields, f.field) {
			add(f.field, "%s changes more than the requests of callers in %s", f.field, in)
		}
	}
	for _, part := range []struct {
		field string
		of    networkingv1.Policy
	}{
		{trafficShift.field, networkingv1.Policy{TrafficShift: spec.Policy.TrafficShift}},
		{mirror.field, networkingv1.Policy{Mirror: spec.Policy.Mirror}},
	} {
		for _, t := range targets(&part.of) {
			if service := serviceOf(&t); !in.includes(service) {
				add(part.field, "%s sends requests to service %s, which is not in %s", part.field, inventory.ServiceName(service), in)
			}
		}
		if len(virtualTargets(&part.of)) > 0 {
			add(part.field, "%s sends requests to a VirtualDestination: no policy in %s can, not even to one that is written there", part.field, in)
		}
	}
	if shift := spec.Policy.TrafficShift; shift != nil && slices.ContainsFunc(shift.Destinations, func(d networkingv1.WeightedDestination) bool {
		return d.StaticDestination != nil || d.ClusterHeader != ""
	}) {
		add(trafficShift.field, "%s sends requests to a service outside of all clusters, which is not in %s", trafficShift.field, in)
	}
	return issues
}

// subsetsElsewhere are the subsets for callers in other clusters: what users of a registered cluster wrote is for callers there.
func subsetsElsewhere(required []subsetRequirement) []snapshot.Subset {
	if !slices.ContainsFunc(required, isLocal) {
		return subsetsOf(required)
	}
	return subsetsOf(slices.DeleteFunc(slices.Clone(required), isLocal))
}

func isLocal(r subsetRequirement) bool { return r.applied.Policy.InCluster != "" }

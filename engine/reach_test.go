package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reachCluster and reachNamespace are where the policies of these tests are written.
const reachCluster, reachNamespace = "cluster-01", "team-000"

// reachWorld has services in two namespaces of two clusters of one VirtualMesh, a dependency of callers in the other namespace, and
// Settings by which policies in one namespace of one cluster count.
func reachWorld() *snapshot.Input {
	in := enginetest.World(enginetest.Size{Services: 102, Clusters: 2, FederateEvery: 1})
	in.Management.Settings = []*settingsv1.Settings{{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: snapshot.DefaultNamespace},
		Spec:       settingsv1.SettingsSpec{WorkloadClusterPolicies: []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace}}}},
	}}
	in.Management.ServiceDependencies = []*enterprisev1beta1.ServiceDependency{{
		ObjectMeta: metav1.ObjectMeta{Name: "callers", Namespace: snapshot.DefaultNamespace, Generation: 1},
		Spec: enterprisev1beta1.ServiceDependencySpec{
			SourceSelectors:      []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Namespaces: []string{"team-001"}}}},
			DestinationSelectors: destinationsIn(nil, []string{"team-000"}),
		},
	}}
	in.Management.VirtualDestinations = []*enterprisev1beta1.VirtualDestination{{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere", Namespace: snapshot.DefaultNamespace, Generation: 1},
		Spec: enterprisev1beta1.VirtualDestinationSpec{
			Hostname: "everywhere.example", Port: &enterprisev1beta1.VirtualDestinationPort{Number: 8080, Protocol: "http"},
			VirtualMesh: &commonv1.ObjectRef{Name: "virtual-mesh", Namespace: snapshot.DefaultNamespace},
			Localized: &enterprisev1beta1.LocalizedDestinations{DestinationSelectors: servicesNamed(
				commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: reachCluster},
				commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: "cluster-02"},
			)},
		},
	}}
	return in
}

func destinationsIn(clusters, namespaces []string) []commonv1.DestinationSelector {
	return []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Clusters: clusters, Namespaces: namespaces}}}
}

func callersIn(clusters, namespaces []string) []commonv1.WorkloadSelector {
	return []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Clusters: clusters, Namespaces: namespaces}}}
}

func servicesNamed(refs ...commonv1.ClusterObjectRef) []commonv1.DestinationSelector {
	return []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: refs}}}
}

// localTraffic is a TrafficPolicy of the namespace.
func localTraffic(name string, spec networkingv1.TrafficPolicySpec) *networkingv1.TrafficPolicy {
	if spec.Policy == nil {
		spec.Policy = &networkingv1.Policy{RequestTimeout: &metav1.Duration{Duration: time.Second}}
	}
	return &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: reachNamespace, Generation: 1}, Spec: spec}
}

func localAccess(name string, spec networkingv1.AccessPolicySpec) *networkingv1.AccessPolicy {
	return &networkingv1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: reachNamespace, Generation: 1}, Spec: spec}
}

// withLocal puts policies into the cluster.
func withLocal(t *testing.T, in *snapshot.Input, policies ...snapshot.APIObject) *snapshot.Input {
	t.Helper()
	for _, p := range policies {
		var err error
		in, err = in.With(reachCluster, p)
		require.NoError(t, err)
	}
	return in
}

// outside are the objects and the statuses of an Output that are not of the namespace of the policies, as bytes.
func outside(t *testing.T, out *snapshot.Output) map[string]string {
	t.Helper()
	objects := map[string]string{}
	for o := range out.Objects {
		if o.Ref.Cluster == reachCluster && o.Ref.Namespace == reachNamespace {
			continue
		}
		text, err := json.Marshal(o.Content)
		require.NoError(t, err)
		objects[o.Ref.String()] = string(text)
	}
	return objects
}

// TestPoliciesOfClustersStayInTheirNamespace: whatever a user writes in a namespace of a registered cluster, no object outside of that
// namespace is another one, and the policy says what it does not do.
func TestPoliciesOfClustersStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	second, far := time.Second, commonv1.ClusterObjectRef{Name: enginetest.Service(101), Namespace: "team-001", ClusterName: reachCluster}
	own := commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: reachCluster}
	twin := commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: "cluster-02"}
	shift := func(to ...networkingv1.WeightedDestination) *networkingv1.Policy {
		return &networkingv1.Policy{TrafficShift: &networkingv1.MultiDestination{Destinations: to}}
	}
	to := func(ref commonv1.ClusterObjectRef, subset map[string]string) networkingv1.WeightedDestination {
		return networkingv1.WeightedDestination{Weight: 1, KubeService: &networkingv1.KubeDestination{Name: ref.Name, Namespace: ref.Namespace, ClusterName: ref.ClusterName, Subset: subset}}
	}
	traffic := func(selector []commonv1.DestinationSelector, sources []commonv1.WorkloadSelector, p *networkingv1.Policy) snapshot.APIObject {
		return localTraffic("way-out", networkingv1.TrafficPolicySpec{DestinationSelector: selector, SourceSelector: sources, Policy: p})
	}
	access := func(selector []commonv1.DestinationSelector, effect networkingv1.AccessPolicySpec) snapshot.APIObject {
		effect.DestinationSelector = selector
		return localAccess("way-out", effect)
	}
	deny := networkingv1.AccessPolicySpec{Action: networkingv1.AccessDeny}
	for _, way := range []struct {
		name   string
		policy snapshot.APIObject
		// says is whether the policy says that something was left out, and rejected whether it is.
		says, rejected bool
	}{
		{"no selectors", traffic(nil, nil, nil), false, false},
		{"an empty matcher", traffic(destinationsIn(nil, nil), callersIn(nil, nil), nil), false, false},
		{"a selector without parts", traffic([]commonv1.DestinationSelector{{}}, nil, nil), false, false},
		{"another namespace", traffic(destinationsIn(nil, []string{"team-001"}), nil, nil), true, false},
		{"its own namespace and another", traffic(destinationsIn(nil, []string{reachNamespace, "team-001"}), nil, nil), true, false},
		{"another cluster", traffic(destinationsIn([]string{"cluster-02"}, nil), nil, nil), true, false},
		{"its own cluster and another", traffic(destinationsIn([]string{reachCluster, "cluster-02"}, nil), nil, nil), true, false},
		{"labels of all services", traffic([]commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Labels: map[string]string{"federated": "true"}}}}, nil, nil), false, false},
		{"a service of another namespace", traffic(servicesNamed(far), nil, nil), true, false},
		{"the same service of another cluster", traffic(servicesNamed(twin), nil, nil), true, false},
		{"a service without a cluster", traffic(servicesNamed(commonv1.ClusterObjectRef{Name: far.Name, Namespace: far.Namespace}), nil, nil), true, false},
		{"a name with the namespace in it", traffic(servicesNamed(commonv1.ClusterObjectRef{Name: far.Name + "." + far.Namespace, Namespace: reachNamespace, ClusterName: reachCluster}), nil, nil), false, false},
		{"a namespace with the cluster in it", traffic(servicesNamed(commonv1.ClusterObjectRef{Name: own.Name, Namespace: reachNamespace + "." + reachCluster}), nil, nil), true, false},
		{"a service that is not there", traffic(servicesNamed(commonv1.ClusterObjectRef{Name: "none", Namespace: reachNamespace, ClusterName: reachCluster}), nil, nil), false, false},
		{"callers of another namespace", traffic(nil, callersIn(nil, []string{"team-001"}), nil), true, true},
		{"callers of another cluster", traffic(nil, callersIn([]string{"cluster-02"}, nil), nil), true, true},
		{"callers of two clusters", traffic(nil, callersIn([]string{reachCluster, "cluster-02"}, nil), nil), true, false},
		{"callers with any labels", traffic(nil, []commonv1.WorkloadSelector{{}}, nil), false, false},
		{"a shift to another namespace", traffic(servicesNamed(own), nil, shift(to(far, nil))), true, true},
		{"a shift to another cluster", traffic(servicesNamed(own), nil, shift(to(own, nil), to(twin, nil))), true, true},
		{"a shift to a subset of its own", traffic(servicesNamed(own), nil, shift(to(own, map[string]string{"version": "v1"}))), false, false},
		{"a shift to a subset elsewhere", traffic(servicesNamed(own), nil, shift(to(far, map[string]string{"version": "v1"}))), true, true},
		{"a shift to a VirtualDestination", traffic(servicesNamed(own), nil, shift(networkingv1.WeightedDestination{VirtualDestination: &networkingv1.VirtualDestinationRef{Name: "everywhere", Namespace: snapshot.DefaultNamespace}})), true, true},
		{"a shift out of all clusters", traffic(servicesNamed(own), nil, shift(networkingv1.WeightedDestination{StaticDestination: &commonv1.ObjectRef{Name: "outside", Namespace: snapshot.DefaultNamespace}})), true, true},
		{"a mirror to another namespace", traffic(servicesNamed(own), nil, &networkingv1.Policy{Mirror: &networkingv1.Mirror{KubeService: &far}}), true, true},
		{"TLS for all callers", traffic(nil, nil, &networkingv1.Policy{Mtls: &networkingv1.MTLS{Istio: &networkingv1.IstioMTLS{TlsMode: networkingv1.TLSModeDisable}}}), true, true},
		{"outlier detection for all callers", traffic(nil, nil, &networkingv1.Policy{OutlierDetection: &networkingv1.OutlierDetection{ConsecutiveErrors: 1}}), true, true},
		{"a filter for the whole mesh", traffic(nil, nil, &networkingv1.Policy{Csrf: &networkingv1.CsrfPolicy{}}), true, true},
		{"faults for everybody", traffic(nil, nil, &networkingv1.Policy{FaultInjection: &networkingv1.FaultInjection{Abort: &networkingv1.Abort{HttpStatus: 500}}}), false, false},
		{"a timeout for the whole namespace", traffic(destinationsIn(nil, nil), nil, &networkingv1.Policy{RequestTimeout: &metav1.Duration{Duration: second}}), false, false},
		{"allow everybody everywhere", access(nil, networkingv1.AccessPolicySpec{}), false, false},
		{"deny everybody everywhere", access(nil, deny), false, false},
		{"deny on an empty matcher", access(destinationsIn(nil, nil), deny), false, false},
		{"deny in another namespace", access(destinationsIn(nil, []string{"team-001"}), deny), true, false},
		{"deny in another cluster", access(servicesNamed(twin), deny), true, false},
		{"allow on a service of others", access(servicesNamed(far), networkingv1.AccessPolicySpec{}), true, false},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			before := engine.Translate(reachWorld())
			after := engine.Translate(withLocal(t, reachWorld(), way.policy))
			was, is := outside(t, before.Output), outside(t, after.Output)
			require.NotEmpty(t, was)
			for ref, text := range was {
				assert.Equal(t, text, is[ref], ref)
			}
			assert.Len(t, is, len(was))
			p := planOf(t, after, way.policy)
			assert.Equal(t, way.says, strings.Contains(issuesOf(p), string(snapshot.OutsideNamespace)), issuesOf(p))
			assert.Equal(t, way.rejected, isRejected(p), issuesOf(p))
			for _, v := range p.Verdicts {
				assert.Contains(t, v.Destination.Name, "-"+reachNamespace+"-"+reachCluster)
			}
		})
	}
}

func planOf(t *testing.T, state *snapshot.State, policy snapshot.APIObject) *snapshot.PolicyPlan {
	t.Helper()
	at := slices.IndexFunc(state.Plan.Policies, func(p *snapshot.PolicyPlan) bool {
		return p.Ref.Cluster == reachCluster && p.Ref.Name == policy.GetName()
	})
	require.GreaterOrEqual(t, at, 0, "the policy is planned")
	return state.Plan.Policies[at]
}

func allIssues(p *snapshot.PolicyPlan) []snapshot.Issue {
	all := slices.Clone(p.Issues)
	for _, v := range p.Verdicts {
		all = append(all, v.Issues...)
	}
	return all
}

func issuesOf(p *snapshot.PolicyPlan) string {
	var b strings.Builder
	for _, issue := range allIssues(p) {
		fmt.Fprintf(&b, "%s %s: %s\n", issue.Severity, issue.Code, issue.Message)
	}
	return b.String()
}

func isRejected(p *snapshot.PolicyPlan) bool {
	return slices.ContainsFunc(allIssues(p), func(i snapshot.Issue) bool { return i.Code == snapshot.OutsideNamespace && i.Rejects() })
}

// TestPoliciesOfClustersAreBounded: of very many, the oldest count, and the others say that they do not.
func TestPoliciesOfClustersAreBounded(t *testing.T) {
	t.Parallel()
	in, most := reachWorld(), 100
	for n := range most + 2 {
		p := localTraffic(fmt.Sprintf("p-%03d", n), networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(commonv1.ClusterObjectRef{Name: enginetest.Service(n % 100), Namespace: reachNamespace, ClusterName: reachCluster})})
		p.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000-n), 0))
		in = withLocal(t, in, p)
	}
	state := engine.Translate(in)
	for n, name := range []string{"p-000", "p-001", "p-002", "p-101"} {
		got := issuesOf(planOf(t, state, localTraffic(name, networkingv1.TrafficPolicySpec{})))
		assert.Equal(t, n < 2, strings.Contains(got, string(snapshot.BudgetExceeded)), "%s: %s", name, got)
	}
}

// TestPoliciesOfClustersNeedSettings: without Settings that name the namespace and the cluster, none counts.
func TestPoliciesOfClustersNeedSettings(t *testing.T) {
	t.Parallel()
	p := localTraffic("unasked", networkingv1.TrafficPolicySpec{})
	for _, named := range [][]settingsv1.WorkloadClusterPolicies{
		nil, {{Clusters: []string{"cluster-02"}, Namespaces: []string{"*"}}}, {{Clusters: []string{"*"}, Namespaces: []string{"team-001"}}},
	} {
		in := reachWorld()
		in.Management.Settings[0].Spec.WorkloadClusterPolicies = named
		before, after := engine.Translate(in), engine.Translate(withLocal(t, in, p))
		assert.Equal(t, outside(t, before.Output), outside(t, after.Output))
		assert.Contains(t, issuesOf(planOf(t, after, p)), snapshot.NamespaceNotNamed)
		assert.Empty(t, planOf(t, after, p).Verdicts)
	}
}

// TestPoliciesOfTheManagementClusterWin: what an older policy of a registered cluster says differently does not hold, and it names the
// one that does; what it adds holds beside that.
func TestPoliciesOfTheManagementClusterWin(t *testing.T) {
	t.Parallel()
	own := commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: reachCluster}
	in := reachWorld()
	hub := localTraffic("same-name", networkingv1.TrafficPolicySpec{
		DestinationSelector: servicesNamed(own), Policy: &networkingv1.Policy{RequestTimeout: &metav1.Duration{Duration: time.Minute}},
	})
	hub.Namespace, hub.CreationTimestamp = snapshot.DefaultNamespace, metav1.NewTime(time.Unix(2000, 0))
	allows := localAccess("callers", networkingv1.AccessPolicySpec{DestinationSelector: servicesNamed(own)})
	allows.Namespace = snapshot.DefaultNamespace
	in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{hub}
	in.Management.AccessPolicies = []*networkingv1.AccessPolicy{allows}
	older := func(name string, spec networkingv1.TrafficPolicySpec) *networkingv1.TrafficPolicy {
		p := localTraffic(name, spec)
		p.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0))
		return p
	}
	get := []networkingv1.HttpMatcher{{Method: "GET"}}
	for _, c := range []struct {
		name     string
		policy   snapshot.APIObject
		hub      []networkingv1.HttpMatcher
		conflict bool
	}{
		{"another value", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(own)}), nil, true},
		{"another value for some requests", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(own), HttpRequestMatchers: get}), nil, true},
		{"the same value", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(own), Policy: hub.Spec.Policy}), nil, false},
		{"another field", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(own), Policy: &networkingv1.Policy{Retries: &networkingv1.RetryPolicy{Attempts: 2}}}), nil, false},
		{"another service", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(commonv1.ClusterObjectRef{Name: enginetest.Service(2), Namespace: reachNamespace, ClusterName: reachCluster})}), nil, false},
		{"other requests", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(own), HttpRequestMatchers: get}), []networkingv1.HttpMatcher{{Method: "PUT"}}, false},
		{"some of the same requests", older("p", networkingv1.TrafficPolicySpec{DestinationSelector: servicesNamed(own), HttpRequestMatchers: []networkingv1.HttpMatcher{{Method: "GET", Headers: []networkingv1.HeaderMatcher{{Name: "x", Value: "1"}}}}}),
			[]networkingv1.HttpMatcher{{QueryParameters: []networkingv1.QueryParameterMatcher{{Name: "q", Value: "1"}}}}, true},
		{"open what it restricts", localAccess("p", networkingv1.AccessPolicySpec{DestinationSelector: servicesNamed(own)}), nil, true},
		{"deny what it opens", localAccess("p", networkingv1.AccessPolicySpec{DestinationSelector: servicesNamed(own), Action: networkingv1.AccessDeny, AllowedMethods: []string{"DELETE"}}), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			matched := *hub
			matched.Spec.HttpRequestMatchers = c.hub
			with, err := in.With("", &matched)
			require.NoError(t, err)
			with = withLocal(t, with, c.policy)
			p := planOf(t, engine.Translate(with), c.policy)
			at := slices.IndexFunc(allIssues(p), func(i snapshot.Issue) bool { return i.Code == snapshot.FieldConflict })
			require.Equal(t, c.conflict, at >= 0, issuesOf(p))
			require.Len(t, p.Verdicts, 1)
			assert.Equal(t, !c.conflict, p.Verdicts[0].Accepted, issuesOf(p))
			if at >= 0 {
				assert.Equal(t, snapshot.DefaultNamespace, allIssues(p)[at].Cause.Namespace)
				assert.Empty(t, allIssues(p)[at].Cause.Cluster)
			}
		})
	}
}

// TestPoliciesOfClustersReadTwice: where the management cluster is registered as well, its policies are read twice, and are one: as
// registration noted which cluster it is, and where it was registered by hand.
func TestPoliciesOfClustersReadTwice(t *testing.T) {
	t.Parallel()
	p := localTraffic("twice", networkingv1.TrafficPolicySpec{})
	p.UID = "one"
	counts := []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace}}}
	for name, c := range map[string]struct {
		here    []string
		there   []settingsv1.WorkloadClusterPolicies
		cluster string
		none    bool
	}{
		"its namespace counts in the registered cluster": {nil, counts, reachCluster, false},
		"it counts in both":                   {[]string{reachNamespace}, counts, "", false},
		"it counts in the management cluster": {[]string{reachNamespace}, nil, "", false},
		"it counts in none":                   {nil, nil, "", true},
	} {
		for how, noted := range map[string]string{"registered": "itself", "by hand": ""} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				in := withLocal(t, reachWorld(), p)
				settings := &in.Management.Settings[0].Spec
				settings.PolicyNamespaces, settings.WorkloadClusterPolicies = c.here, c.there
				in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{p}
				register(in, noted)
				state := engine.Translate(in)
				plans := state.Plan.Policies
				require.Len(t, plans, 1)
				assert.Equal(t, c.cluster, plans[0].Ref.Cluster)
				assert.Equal(t, c.none, slices.ContainsFunc(plans[0].Issues, func(i snapshot.Issue) bool { return i.Code == snapshot.NamespaceNotNamed }), "%v", plans[0].Issues)
				statuses := 0
				for s := range state.Output.Statuses.All() {
					if s.Ref.Kind == snapshot.TrafficPolicy {
						statuses++
					}
				}
				assert.Equal(t, 1, statuses)
			})
		}
	}
}

// register registers the cluster. Noted is which cluster it is as registration wrote it, if it did: the management cluster is "itself".
func register(in *snapshot.Input, noted string) {
	in.Management.ClusterUID = "itself"
	registration := &multiclusterv1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: snapshot.DefaultNamespace, Name: reachCluster}}
	if noted != "" {
		registration.Annotations = map[string]string{snapshot.ClusterUIDAnnotation: noted}
	}
	in.Management.KubernetesClusters = append(in.Management.KubernetesClusters, registration)
}

// TestPoliciesReadOnceSoFar: what only one of both has been read of the management cluster says the same as both.
func TestPoliciesReadOnceSoFar(t *testing.T) {
	t.Parallel()
	p := localTraffic("once", networkingv1.TrafficPolicySpec{})
	counts := []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace}}}
	for name, c := range map[string]struct {
		here  []string
		there []settingsv1.WorkloadClusterPolicies
		// seen is whether it is said anything of, if it was read of the management cluster, or of the registered one.
		seenHere, seenThere bool
	}{
		"it counts in the registered cluster": {nil, counts, false, true},
		"it counts in the management cluster": {[]string{reachNamespace}, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, here := range []bool{true, false} {
				in := reachWorld()
				if here {
					in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{p}
				} else {
					in = withLocal(t, in, p)
				}
				settings := &in.Management.Settings[0].Spec
				settings.PolicyNamespaces, settings.WorkloadClusterPolicies = c.here, c.there
				register(in, "itself")
				want := c.seenThere
				if here {
					want = c.seenHere
				}
				assert.Equal(t, want, len(engine.Translate(in).Plan.Policies) == 1, "read of the management cluster: %t", here)
			}
		})
	}
}

// TestPoliciesOfOthersStayTheirs: a cluster that says of its policies that they are those of the management cluster takes nobody's place.
func TestPoliciesOfOthersStayTheirs(t *testing.T) {
	t.Parallel()
	p := localTraffic("theirs", networkingv1.TrafficPolicySpec{})
	p.UID = "one"
	in := withLocal(t, reachWorld(), p)
	register(in, "another")
	settings := &in.Management.Settings[0].Spec
	settings.PolicyNamespaces = []string{reachNamespace}
	settings.WorkloadClusterPolicies = []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace}}}
	in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{p}
	assert.Len(t, engine.Translate(in).Plan.Policies, 2)
}

// TestPoliciesOfClustersStay: those of a cluster that does not answer stay in force.
func TestPoliciesOfClustersStay(t *testing.T) {
	t.Parallel()
	p := localTraffic("stays", networkingv1.TrafficPolicySpec{})
	before := engine.Translate(withLocal(t, reachWorld(), p))
	in := withLocal(t, reachWorld(), p)
	in.Cluster(reachCluster).Sync = snapshot.Stale
	after := engine.Translate(in)
	assert.Equal(t, planOf(t, before, p).Verdicts, planOf(t, after, p).Verdicts)
	assert.Contains(t, after.Output.Frozen, reachCluster)
}

// TestPoliciesOfClustersAreRemembered: what a Translator remembers of them changes nothing.
func TestPoliciesOfClustersAreRemembered(t *testing.T) {
	t.Parallel()
	for seed := range int64(3) {
		random := rand.New(rand.NewSource(seed))
		in, translator := reachWorld(), engine.New(engine.Options{})
		for range 12 {
			name := fmt.Sprintf("p-%d", random.Intn(4))
			to := servicesNamed(commonv1.ClusterObjectRef{Name: enginetest.Service(random.Intn(3)), Namespace: reachNamespace, ClusterName: reachCluster})
			timeout := &networkingv1.Policy{RequestTimeout: &metav1.Duration{Duration: time.Duration(1+random.Intn(3)) * time.Second}}
			traffic := localTraffic(name, networkingv1.TrafficPolicySpec{DestinationSelector: to, Policy: timeout})
			access := localAccess(name, networkingv1.AccessPolicySpec{DestinationSelector: to})
			cluster := reachCluster
			if random.Intn(2) == 0 {
				cluster, traffic.Namespace, access.Namespace = "", snapshot.DefaultNamespace, snapshot.DefaultNamespace
			}
			switch random.Intn(4) {
			case 0:
				in = in.Without(snapshot.Ref{Kind: snapshot.TrafficPolicy, Cluster: cluster, Namespace: traffic.Namespace, Name: name})
			case 1:
				in = in.Without(snapshot.Ref{Kind: snapshot.AccessPolicy, Cluster: cluster, Namespace: access.Namespace, Name: name})
			case 2:
				in, _ = in.With(cluster, traffic)
			default:
				in, _ = in.With(cluster, access)
			}
			got, want := translator.Translate(in), engine.Translate(in)
			requireSameState(t, want, got, fmt.Sprintf("seed %d", seed))
		}
	}
}

// TestEditsBeyondReach: an edit of what a policy of a cluster may not ask for changes what is said of it, and no plan.
func TestEditsBeyondReach(t *testing.T) {
	t.Parallel()
	begin := reachWorld()
	var inputs []*snapshot.Input
	for _, beyond := range []string{"team-001", "team-002"} {
		namespaces := []string{reachNamespace, beyond}
		inputs = append(inputs, withLocal(t, begin,
			localTraffic("edited", networkingv1.TrafficPolicySpec{DestinationSelector: destinationsIn(nil, namespaces)}),
			localAccess("edited", networkingv1.AccessPolicySpec{DestinationSelector: destinationsIn(nil, namespaces)})))
	}
	requireAsNew(t, inputs...)
	translator := engine.New(engine.Options{})
	was, now := translator.Translate(inputs[0]).Plan, translator.Translate(inputs[1]).Plan
	assert.Equal(t, was.Destinations, now.Destinations)
	for i, p := range now.Policies {
		assert.NotEqual(t, was.Policies[i].Issues, p.Issues, p.Ref)
	}
}

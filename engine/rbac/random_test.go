package rbac_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/rbac"
)

// thing is a service or a workload that there could be. The model below asks of each whether a policy selects it and whether
// a Role allows it; it knows nothing of containment.
type thing struct {
	namespace, cluster, name string
	labels                   map[string]string
	byName                   bool
}

// things are all kinds of them, with names that are in no selector.
func things() (out []thing) {
	for _, namespace := range []string{"a", "b", "elsewhere"} {
		for _, cluster := range []string{"x", "y", "elsewhere"} {
			for _, labels := range []map[string]string{{}, {"app": "1"}, {"app": "2"}, {"v": "1"}, {"app": "1", "v": "1"}, {"app": "2", "v": "1"}} {
				out = append(out, thing{namespace: namespace, cluster: cluster, labels: labels})
			}
			for _, name := range []string{"n", "m", "elsewhere"} {
				out = append(out, thing{namespace: namespace, cluster: cluster, name: name, byName: true})
			}
		}
	}
	return out
}

func hasLabels(wanted, labels map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func listed(list []string, value string) bool { return slices.Contains(list, value) }

// selected reports whether selectors of a policy select a thing.
func selected(selectors []commonv1.DestinationSelector, x thing) bool {
	if len(selectors) == 0 {
		return !x.byName
	}
	for _, s := range selectors {
		if m := s.KubeServiceMatcher; m != nil && !x.byName && (len(m.Namespaces) == 0 || listed(m.Namespaces, x.namespace)) &&
			(len(m.Clusters) == 0 || listed(m.Clusters, x.cluster)) && hasLabels(m.Labels, x.labels) {
			return true
		}
		if s.KubeServiceRefs == nil || !x.byName {
			continue
		}
		for _, ref := range s.KubeServiceRefs.Services {
			if ref.Name == x.name && ref.Namespace == x.namespace && ref.ClusterName == x.cluster {
				return true
			}
		}
	}
	return false
}

// permitted reports whether selectors of a Role allow a thing.
func permitted(selectors []commonv1.DestinationSelector, x thing) bool {
	star := func(list []string, value string) bool { return listed(list, "*") || listed(list, value) }
	for _, s := range selectors {
		if m := s.KubeServiceMatcher; m != nil && !x.byName && star(m.Namespaces, x.namespace) && star(m.Clusters, x.cluster) && len(m.Labels) > 0 {
			if m.Labels["*"] == "*" || hasLabels(m.Labels, x.labels) {
				return true
			}
		}
		if s.KubeServiceRefs == nil || !x.byName {
			continue
		}
		for _, ref := range s.KubeServiceRefs.Services {
			if star([]string{ref.Name}, x.name) && star([]string{ref.Namespace}, x.namespace) && star([]string{ref.ClusterName}, x.cluster) {
				return true
			}
		}
	}
	return false
}

// allowedByModel asks of each thing.
func allowedByModel(scopes []rbacv1.TrafficPolicyScope, p *networkingv1.TrafficPolicySpec) bool {
	sources := make([]commonv1.DestinationSelector, 0, len(p.SourceSelector))
	for _, s := range p.SourceSelector {
		sources = append(sources, commonv1.DestinationSelector{KubeServiceMatcher: (*commonv1.KubeServiceMatcher)(s.KubeWorkloadMatcher)})
	}
	for _, scope := range scopes {
		ok := true
		var callers []commonv1.DestinationSelector
		for _, s := range scope.WorkloadSelectors {
			callers = append(callers, commonv1.DestinationSelector{KubeServiceMatcher: (*commonv1.KubeServiceMatcher)(s.KubeWorkloadMatcher)})
		}
		for _, x := range things() {
			ok = ok && (!selected(p.DestinationSelector, x) || permitted(scope.DestinationSelectors, x)) && (!selected(sources, x) || permitted(callers, x))
		}
		may := func(action rbacv1.TrafficPolicyAction) bool {
			return slices.Contains(scope.TrafficPolicyActions, action) || slices.Contains(scope.TrafficPolicyActions, rbacv1.TrafficPolicyActionAll)
		}
		ok = ok && (p.Policy.RequestTimeout == nil || may(rbacv1.TrafficPolicyActionRequestTimeout)) && (p.Policy.Retries == nil || may(rbacv1.TrafficPolicyActionRetries))
		if ok {
			return true
		}
	}
	return false
}

func pick(r *rand.Rand, most int, from ...string) (out []string) {
	for range r.IntN(most + 1) {
		out = append(out, from[r.IntN(len(from))])
	}
	return out
}

func randomLabels(r *rand.Rand, choices ...map[string]string) map[string]string {
	return choices[r.IntN(len(choices))]
}

// randomSelectors are those of a policy or, with wildcards, of a Role.
func randomSelectors(r *rand.Rand, wild bool) (out []commonv1.DestinationSelector) {
	namespaces, clusters, names := []string{"a", "b"}, []string{"x", "y"}, []string{"n", "m"}
	labels := []map[string]string{nil, {"app": "1"}, {"v": "1"}, {"app": "1", "v": "1"}}
	if wild {
		namespaces, clusters, names = append(namespaces, "*", "*"), append(clusters, "*", "*"), append(names, "*")
		labels = append(labels, star, star, star)
	}
	for range r.IntN(4) {
		var s commonv1.DestinationSelector
		if r.IntN(3) > 0 {
			s.KubeServiceMatcher = &commonv1.KubeServiceMatcher{Namespaces: pick(r, 2, namespaces...), Clusters: pick(r, 2, clusters...), Labels: randomLabels(r, labels...)}
		} else {
			s.KubeServiceRefs = &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{{
				Name: names[r.IntN(len(names))], Namespace: namespaces[r.IntN(len(namespaces))], ClusterName: clusters[r.IntN(len(clusters))]}}}
		}
		out = append(out, s)
	}
	return out
}

func randomWorkloads(r *rand.Rand, wild bool) (out []commonv1.WorkloadSelector) {
	for _, s := range randomSelectors(r, wild) {
		if s.KubeServiceMatcher != nil {
			out = append(out, commonv1.WorkloadSelector{KubeWorkloadMatcher: (*commonv1.KubeWorkloadMatcher)(s.KubeServiceMatcher)})
		}
	}
	return out
}

// TestRandomRoles compares verdicts with the model. Both verdicts must occur, so that agreeing says something.
func TestRandomRoles(t *testing.T) {
	t.Parallel()
	seed := waittest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	verdicts := map[bool]int{}
	for i := range 4000 {
		var scopes []rbacv1.TrafficPolicyScope
		for range 1 + r.IntN(2) {
			scope := rbacv1.TrafficPolicyScope{DestinationSelectors: randomSelectors(r, true), WorkloadSelectors: randomWorkloads(r, true)}
			if r.IntN(2) == 0 {
				scope.WorkloadSelectors = workloads("*", "*", star)
			}
			scope.TrafficPolicyActions = [][]rbacv1.TrafficPolicyAction{
				{rbacv1.TrafficPolicyActionAll}, {rbacv1.TrafficPolicyActionRequestTimeout}, {rbacv1.TrafficPolicyActionRetries, rbacv1.TrafficPolicyActionRequestTimeout}, nil,
			}[r.IntN(4)]
			scopes = append(scopes, scope)
		}
		policy := timeout(randomSelectors(r, false))
		policy.Spec.SourceSelector = randomWorkloads(r, false)
		if r.IntN(2) == 0 {
			policy.Spec.Policy = &networkingv1.Policy{Retries: &networkingv1.RetryPolicy{}}
		}
		verdict := of(rbacv1.RoleSpec{TrafficPolicyScopes: scopes}).Allowed(ada, rbac.Create, policy, nil)
		want := allowedByModel(scopes, &policy.Spec)
		require.Equal(t, want, verdict.Allowed, "seed %d, case %d: %s\n%s", seed, i, verdict.Text(), show(scopes, policy))
		verdicts[want]++
	}
	require.Greater(t, verdicts[true], 50, "seed %d", seed)
	require.Greater(t, verdicts[false], 50, "seed %d", seed)
}

func show(scopes []rbacv1.TrafficPolicyScope, policy *networkingv1.TrafficPolicy) string {
	text := ""
	for _, object := range []any{rbacv1.Role{Spec: rbacv1.RoleSpec{TrafficPolicyScopes: scopes}, ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, policy.Spec} {
		text += fmt.Sprintf("%+v\n", object)
	}
	return text
}

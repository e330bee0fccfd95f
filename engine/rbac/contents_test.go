package rbac_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestScopes: what a Role allows is told in words, and what allows nothing is told to.
func TestScopes(t *testing.T) {
	t.Parallel()
	services := func(names ...string) []commonv1.DestinationSelector {
		return []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Namespaces: names, Clusters: []string{"*"}, Labels: map[string]string{"*": "*"}}}}
	}
	role := &rbacv1.Role{Spec: rbacv1.RoleSpec{
		TrafficPolicyScopes: []rbacv1.TrafficPolicyScope{
			{
				TrafficPolicyActions: []rbacv1.TrafficPolicyAction{rbacv1.TrafficPolicyActionRetries}, DestinationSelectors: services("shop", "cart"),
				WorkloadSelectors: []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Namespaces: []string{"shop"}, Clusters: []string{"east"}, Labels: map[string]string{"app": "web"}}}},
			},
			{DestinationSelectors: services("shop")},
			{TrafficPolicyActions: []rbacv1.TrafficPolicyAction{rbacv1.TrafficPolicyActionUnknown}, DestinationSelectors: services()},
		},
		AccessPolicyScopes: []rbacv1.AccessPolicyScope{
			{DestinationSelectors: services("*")},
			{IdentitySelectors: []commonv1.IdentitySelector{{KubeIdentityMatcher: &commonv1.KubeIdentityMatcher{Namespaces: []string{"shop"}, Clusters: []string{"*"}}}}},
		},
		VirtualDestinationScopes: []rbacv1.VirtualDestinationScope{{MeshRefs: []commonv1.ObjectRef{{Name: "*", Namespace: "*"}}}},
	}}
	type told struct {
		name   string
		allows bool
		lists  map[string][]string
	}
	var got []told
	for _, s := range rbac.Scopes(role) {
		lists := map[string][]string{}
		for _, list := range s.Lists {
			lists[list.Name] = list.Allows
		}
		got = append(got, told{s.Name, s.Allows(), lists})
	}
	none := []string{}
	assert.Equal(t, []told{
		{"trafficPolicyScopes[0]", true, map[string][]string{
			"trafficPolicyActions": {"RETRIES"}, "destinationSelectors": {"any labels in namespace shop or cart in any cluster"}, "workloadSelectors": {"app=web in namespace shop in cluster east"},
		}},
		{"trafficPolicyScopes[1]", false, map[string][]string{"trafficPolicyActions": none, "destinationSelectors": {"any labels in namespace shop in any cluster"}, "workloadSelectors": none}},
		{"trafficPolicyScopes[2]", false, map[string][]string{"trafficPolicyActions": none, "destinationSelectors": none, "workloadSelectors": none}},
		{"accessPolicyScopes[0] with accessPolicyScopes[1]", true, map[string][]string{
			"identitySelectors": {"namespace shop in any cluster"}, "destinationSelectors": {"any labels in any namespace in any cluster"},
		}},
		{"virtualDestinationScopes[0]", true, map[string][]string{"virtualMeshRefs": none, "meshRefs": {"*/*"}, "destinationSelectors": none, "destinations": none}},
	}, got)
}

// TestIneffective: a Role or RoleBinding that has no effect says why.
func TestIneffective(t *testing.T) {
	t.Parallel()
	meta := func(name, namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace}
	}
	role := &rbacv1.Role{ObjectMeta: meta("team", "gloo-mesh")}
	binding := func(namespace, role, of string, subjects ...commonv1.TypedObjectRef) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: meta("b", namespace), Spec: rbacv1.RoleBindingSpec{RoleRef: commonv1.ObjectRef{Name: role, Namespace: of}, Subjects: subjects}}
	}
	ada := commonv1.TypedObjectRef{Kind: rbac.User, Name: "ada"}
	rules := rbac.New("gloo-mesh", []*rbacv1.Role{role}, []*rbacv1.RoleBinding{binding("gloo-mesh", "team", "gloo-mesh", ada)})
	for what, c := range map[string]struct {
		object snapshot.APIObject
		code   snapshot.Code
	}{
		"a Role":                 {role, ""},
		"a Role elsewhere":       {&rbacv1.Role{ObjectMeta: meta("team", "shop")}, snapshot.NamespaceNotNamed},
		"a RoleBinding":          {binding("gloo-mesh", "team", "gloo-mesh", ada), ""},
		"one elsewhere":          {binding("shop", "team", "gloo-mesh", ada), snapshot.NamespaceNotNamed},
		"of a Role elsewhere":    {binding("gloo-mesh", "team", "shop", ada), snapshot.NamespaceNotNamed},
		"of a Role that is none": {binding("gloo-mesh", "gone", "gloo-mesh", ada), snapshot.SelectsNothing},
		"without subjects":       {binding("gloo-mesh", "team", "gloo-mesh"), snapshot.SelectsNothing},
	} {
		issue := rules.Ineffective(c.object)
		if c.code == "" {
			assert.Nil(t, issue, what)
			continue
		}
		if assert.NotNil(t, issue, what) {
			assert.Equal(t, c.code, issue.Code, what)
			assert.NotEmpty(t, issue.Hint, what)
		}
	}
	assert.Equal(t, []rbac.Holder{{Binding: snapshot.Ref{Kind: snapshot.RoleBinding, Namespace: "gloo-mesh", Name: "b"}, Subject: "User ada"}}, rules.Holders(role))
}

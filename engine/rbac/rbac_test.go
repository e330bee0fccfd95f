package rbac_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const home = "gloo-mesh"

func role(name string, spec rbacv1.RoleSpec) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: home}, Spec: spec}
}

func binding(role string, subjects ...commonv1.TypedObjectRef) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "s", Namespace: home},
		Spec:       rbacv1.RoleBindingSpec{RoleRef: commonv1.ObjectRef{Name: role, Namespace: home}, Subjects: subjects},
	}
}

func user(name string) commonv1.TypedObjectRef {
	return commonv1.TypedObjectRef{Kind: rbac.User, Name: name}
}

// of are the rules in which ada has a Role with a spec.
func of(spec rbacv1.RoleSpec) *rbac.Rules {
	return rbac.New(home, []*rbacv1.Role{role("mine", spec)}, []*rbacv1.RoleBinding{binding("mine", user("ada"))})
}

var ada = rbac.Subject{User: "ada", Groups: []string{"system:authenticated"}}

func matcher(namespace, cluster string, labels map[string]string) []commonv1.DestinationSelector {
	return []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Labels: labels, Namespaces: []string{namespace}, Clusters: []string{cluster}}}}
}

func refs(name, namespace, cluster string) []commonv1.DestinationSelector {
	return []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{{Name: name, Namespace: namespace, ClusterName: cluster}}}}}
}

func workloads(namespace, cluster string, labels map[string]string) []commonv1.WorkloadSelector {
	return []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Labels: labels, Namespaces: []string{namespace}, Clusters: []string{cluster}}}}
}

var star = map[string]string{"*": "*"}

// traffic is a Role that lets ada set timeouts on the services of a namespace, for all callers.
func traffic() rbacv1.RoleSpec {
	return rbacv1.RoleSpec{TrafficPolicyScopes: []rbacv1.TrafficPolicyScope{{
		TrafficPolicyActions: []rbacv1.TrafficPolicyAction{rbacv1.TrafficPolicyActionRequestTimeout},
		DestinationSelectors: matcher("shop", "*", star), WorkloadSelectors: workloads("*", "*", star),
	}}}
}

func timeout(selectors []commonv1.DestinationSelector) *networkingv1.TrafficPolicy {
	return &networkingv1.TrafficPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "slow", Namespace: home},
		Spec:       networkingv1.TrafficPolicySpec{DestinationSelector: selectors, Policy: &networkingv1.Policy{RequestTimeout: &metav1.Duration{Duration: time.Second}}},
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	faults := timeout(matcher("shop", "cluster-1", nil))
	faults.Spec.Policy.FaultInjection = &networkingv1.FaultInjection{}
	csrf := timeout(matcher("shop", "cluster-1", nil))
	csrf.Spec.Policy.Csrf = &networkingv1.CsrfPolicy{}
	cases := map[string]struct {
		spec   rbacv1.RoleSpec
		object snapshot.APIObject
		want   string // part of what is missing; "" if it is allowed
	}{
		"within the scope":                 {traffic(), timeout(matcher("shop", "cluster-1", nil)), ""},
		"labels are a part of all":         {traffic(), timeout(matcher("shop", "cluster-1", map[string]string{"app": "cart"})), ""},
		"another namespace":                {traffic(), timeout(matcher("bank", "cluster-1", nil)), "destinationSelectors does not cover namespace bank in cluster cluster-1"},
		"every service":                    {traffic(), timeout(nil), "destinationSelectors does not cover any namespace in any cluster"},
		"an empty element":                 {traffic(), timeout([]commonv1.DestinationSelector{{}}), "does not cover any namespace"},
		"by name, where labels are listed": {traffic(), timeout(refs("cart", "shop", "cluster-1")), "does not cover name cart in namespace shop"},
		"another action":                   {traffic(), faults, "trafficPolicyActions lacks FAULT_INJECTION"},
		"an action that only ALL has":      {traffic(), csrf, "trafficPolicyActions lacks ALL"},
		"no scope of the kind":             {traffic(), &networkingv1.VirtualMesh{}, "Role mine has no virtualMeshScopes"},
		"nothing is implied": {rbacv1.RoleSpec{TrafficPolicyScopes: []rbacv1.TrafficPolicyScope{{
			TrafficPolicyActions: []rbacv1.TrafficPolicyAction{rbacv1.TrafficPolicyActionAll}, DestinationSelectors: matcher("shop", "*", nil),
		}}}, timeout(matcher("shop", "cluster-1", nil)), "workloadSelectors is empty, so allows none"},
		"a virtual mesh": {
			rbacv1.RoleSpec{VirtualMeshScopes: []rbacv1.VirtualMeshScope{{VirtualMeshActions: []rbacv1.VirtualMeshAction{rbacv1.VirtualMeshActionFederation}, MeshRefs: []commonv1.ObjectRef{{Name: "*", Namespace: home}}}}},
			&networkingv1.VirtualMesh{Spec: networkingv1.VirtualMeshSpec{Meshes: []commonv1.ObjectRef{{Name: "istio", Namespace: home}}, Federation: &networkingv1.Federation{}}}, "",
		},
		"a virtual mesh with another action": {
			rbacv1.RoleSpec{VirtualMeshScopes: []rbacv1.VirtualMeshScope{{VirtualMeshActions: []rbacv1.VirtualMeshAction{rbacv1.VirtualMeshActionFederation}, MeshRefs: []commonv1.ObjectRef{{Name: "*", Namespace: home}}}}},
			&networkingv1.VirtualMesh{Spec: networkingv1.VirtualMeshSpec{GlobalAccessPolicy: networkingv1.GlobalAccessPolicyDisabled, MtlsConfig: &networkingv1.MTLSConfig{}}}, "lacks MTLS_CONFIG, GLOBAL_ACCESS_POLICY",
		},
		"a virtual destination": {
			rbacv1.RoleSpec{VirtualDestinationScopes: []rbacv1.VirtualDestinationScope{{VirtualMeshRefs: []commonv1.ObjectRef{{Name: "all", Namespace: home}}, DestinationSelectors: matcher("shop", "*", star)}}},
			&enterprisev1beta1.VirtualDestination{Spec: enterprisev1beta1.VirtualDestinationSpec{
				VirtualMesh: &commonv1.ObjectRef{Name: "all", Namespace: home}, Localized: &enterprisev1beta1.LocalizedDestinations{DestinationSelectors: matcher("shop", "cluster-1", nil)},
			}}, "",
		},
		"a virtual destination of listed services": {
			rbacv1.RoleSpec{VirtualDestinationScopes: []rbacv1.VirtualDestinationScope{{VirtualMeshRefs: []commonv1.ObjectRef{{Name: "all", Namespace: home}}}}},
			&enterprisev1beta1.VirtualDestination{Spec: enterprisev1beta1.VirtualDestinationSpec{
				VirtualMesh: &commonv1.ObjectRef{Name: "all", Namespace: home},
				Static:      &enterprisev1beta1.StaticDestinations{Destinations: []enterprisev1beta1.BackingDestination{{KubeService: &commonv1.ClusterObjectRef{Name: "cart", Namespace: "shop", ClusterName: "cluster-1"}}}},
			}}, "destinations is empty",
		},
		"a filter":              {rbacv1.RoleSpec{WasmDeploymentScopes: []rbacv1.WasmDeploymentScope{{WorkloadSelectors: workloads("shop", "*", star)}}}, &enterprisev1beta1.WasmDeployment{Spec: enterprisev1beta1.WasmDeploymentSpec{WorkloadSelector: workloads("shop", "cluster-1", nil)}}, ""},
		"a log":                 {rbacv1.RoleSpec{AccessLogRecordScopes: []rbacv1.AccessLogRecordScope{{WorkloadSelectors: workloads("shop", "*", star)}}}, &observabilityv1.AccessLogRecord{Spec: observabilityv1.AccessLogRecordSpec{WorkloadSelectors: workloads("shop", "cluster-1", nil)}}, ""},
		"a log of everybody":    {rbacv1.RoleSpec{AccessLogRecordScopes: []rbacv1.AccessLogRecordScope{{WorkloadSelectors: workloads("shop", "*", star)}}}, &observabilityv1.AccessLogRecord{}, "does not cover any namespace"},
		"a kind without scopes": {traffic(), &enterprisev1beta1.ServiceDependency{}, "Role mine has no scopes for this kind"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := of(c.spec).Allowed(ada, rbac.Create, c.object, nil)
			if c.want == "" {
				require.True(t, verdict.Allowed, verdict.Text())
				assert.Contains(t, verdict.Text(), "Scopes[0] of Role mine, by RoleBinding mines")
				return
			}
			require.False(t, verdict.Allowed)
			assert.Contains(t, verdict.Text(), c.want)
		})
	}
}

// TestVerbs: who updates needs the right on both sides, and who deletes on what is there.
func TestVerbs(t *testing.T) {
	t.Parallel()
	mine, theirs := timeout(matcher("shop", "*", nil)), timeout(matcher("bank", "*", nil))
	rules := of(traffic())
	for _, c := range []struct {
		verb           rbac.Verb
		object, before snapshot.APIObject
		want           bool
	}{
		{rbac.Create, mine, nil, true},
		{rbac.Create, theirs, nil, false},
		{rbac.Update, mine, mine, true},
		{rbac.Update, theirs, mine, false},
		{rbac.Update, mine, theirs, false},
		{rbac.Update, theirs, theirs, false},
		{rbac.Delete, nil, mine, true},
		{rbac.Delete, nil, theirs, false},
		{"steal", mine, mine, false},
	} {
		verdict := rules.Allowed(ada, c.verb, c.object, c.before)
		assert.Equal(t, c.want, verdict.Allowed, "%v", c)
	}
	assert.Contains(t, rules.Allowed(ada, rbac.Update, mine, theirs).Text(), "for the object as it is stored, ")
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	object := timeout(matcher("shop", "*", nil))
	roles := []*rbacv1.Role{role("mine", traffic())}
	account := rbac.Subject{User: "system:serviceaccount:ci:deployer"}
	for name, c := range map[string]struct {
		binding *rbacv1.RoleBinding
		subject rbac.Subject
		want    string
	}{
		"a user":                     {binding("mine", user("ada")), ada, ""},
		"another user":               {binding("mine", user("bob")), ada, "no RoleBinding in namespace gloo-mesh names User ada or one of its groups"},
		"a group":                    {binding("mine", commonv1.TypedObjectRef{Kind: rbac.Group, Name: "system:authenticated"}), ada, ""},
		"a group of a user's name":   {binding("mine", commonv1.TypedObjectRef{Kind: rbac.Group, Name: "ada"}), ada, "no RoleBinding"},
		"an account":                 {binding("mine", commonv1.TypedObjectRef{Kind: rbac.ServiceAccount, Name: "deployer", Namespace: "ci"}), account, ""},
		"an account as a user":       {binding("mine", user("system:serviceaccount:ci:deployer")), account, ""},
		"an account of elsewhere":    {binding("mine", commonv1.TypedObjectRef{Kind: rbac.ServiceAccount, Name: "deployer", Namespace: "other"}), account, "names ServiceAccount ci/deployer or"},
		"a Role that is not there":   {binding("gone", user("ada")), ada, "RoleBinding gones names Role gone, which does not exist"},
		"a binding of another place": {&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: binding("mine", user("ada")).Spec}, ada, "no RoleBinding in namespace gloo-mesh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := rbac.New(home, roles, []*rbacv1.RoleBinding{c.binding}).Allowed(c.subject, rbac.Create, object, nil)
			assert.Equal(t, c.want == "", verdict.Allowed)
			if c.want != "" {
				assert.Contains(t, verdict.Text(), c.want)
			}
		})
	}
	elsewhere := role("mine", traffic())
	elsewhere.Namespace = "team"
	assert.False(t, rbac.New(home, []*rbacv1.Role{elsewhere}, []*rbacv1.RoleBinding{binding("mine", user("ada"))}).Allowed(ada, rbac.Create, object, nil).Allowed,
		"who may write Roles in another namespace gives no rights")
}

func TestExempt(t *testing.T) {
	t.Parallel()
	for _, s := range []rbac.Subject{
		{User: "admin", Groups: []string{"system:masters"}},
		{User: "system:serviceaccount:gloo-mesh:meshctl"},
		{User: "system:serviceaccount:kube-system:namespace-controller", Groups: []string{"system:serviceaccounts:kube-system"}},
	} {
		assert.NotEmpty(t, rbac.Exempt(s, home, "meshctl"), s)
	}
	for _, s := range []rbac.Subject{ada, {User: "system:masters"}, {User: "system:serviceaccount:gloo-mesh:other"}, {User: "system:serviceaccount:team:meshctl"}} {
		assert.Empty(t, rbac.Exempt(s, home, "meshctl"), s)
	}
}

// TestDocumentedRoles: the Roles of Gloo Mesh's documents allow what these say that they do.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	read := func(name string) rbacv1.RoleSpec {
		data, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		require.NoError(t, err)
		r := &rbacv1.Role{}
		require.NoError(t, yaml.UnmarshalStrict(data, r))
		return r.Spec
	}
	anyone := &networkingv1.AccessPolicy{}
	ratings := &networkingv1.AccessPolicy{Spec: networkingv1.AccessPolicySpec{
		SourceSelector: []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{ServiceAccounts: []commonv1.ClusterObjectRef{
			{Name: "productpage", Namespace: "bookinfo", ClusterName: "cluster-1"}}}}},
		DestinationSelector: refs("ratings", "bookinfo", "cluster-1"),
	}}
	retries := timeout(refs("ratings", "bookinfo", "cluster-2"))
	retries.Spec.SourceSelector = workloads("bookinfo", "cluster-1", map[string]string{"app": "productpage", "version": "v1", "pod": "x"})
	for _, c := range []struct {
		role   string
		object snapshot.APIObject
		want   bool
	}{
		{"admin", anyone, true},
		{"admin", timeout(nil), true},
		{"admin", ratings, true},
		{"consumer", anyone, false},
		{"consumer", ratings, true},
		{"consumer", retries, true},
		{"consumer", timeout(refs("ratings", "bookinfo", "cluster-2")), false},
	} {
		verdict := of(read(c.role)).Allowed(ada, rbac.Create, c.object, nil)
		assert.Equal(t, c.want, verdict.Allowed, "%s: %s", c.role, strings.Join(verdict.Missing, "; "))
	}
}

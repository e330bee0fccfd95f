package rbac_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/certs/serving"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// writer is somebody with a client: what a RoleBinding may call the subject, and what it may not.
type writer struct {
	dynamic.Interface
	subject rbac.Subject
	is, not []commonv1.TypedObjectRef
}

// liveRoles is an API server whose webhook enforces Roles.
type liveRoles struct {
	t       *testing.T
	config  *rest.Config
	state   atomic.Pointer[snapshot.State]
	masters dynamic.Interface
	writers []writer
}

// everybodyWrites is what Kubernetes allows: the tests are about Roles.
const everybodyWrites = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writers}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
`

func newLiveRoles(t *testing.T) *liveRoles {
	t.Helper()
	server := registrationtest.APIServers(t, 1)[0]
	config, err := server.Config()
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, config, home)
	sandboxtest.Apply(t, config, []byte(everybodyWrites))
	l := &liveRoles{t: t, config: kube.Unlimited(config)}
	l.config.WarningHandler = rest.NoWarnings{}
	l.rules(nil, nil)
	l.masters, err = dynamic.NewForConfig(l.config)
	require.NoError(t, err)
	_, err = sandboxtest.Clientset(t, config).CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	l.add(l.impersonated("ada", "crew"), commonv1.TypedObjectRef{Kind: rbac.User, Name: "ada"}, commonv1.TypedObjectRef{Kind: rbac.Group, Name: "crew"})
	l.add(l.impersonated("ben"), commonv1.TypedObjectRef{Kind: rbac.User, Name: "ben"}, commonv1.TypedObjectRef{Kind: rbac.Group, Name: "system:authenticated"})
	l.add(sandboxtest.As(t, config, "default", "robot"), commonv1.TypedObjectRef{Kind: rbac.ServiceAccount, Namespace: "default", Name: "robot"},
		commonv1.TypedObjectRef{Kind: rbac.User, Name: "system:serviceaccount:default:robot"})
	// One whom the API server knows by a client certificate.
	certified, err := clientcmd.BuildConfigFromFlags("", filepath.Join(filepath.Dir(server.Kubeconfig()), "pki", "kube-scheduler.kubeconfig"))
	require.NoError(t, err)
	require.NotEmpty(t, certified.CertData)
	l.add(certified, commonv1.TypedObjectRef{Kind: rbac.User, Name: "system:kube-scheduler"})
	l.serve()
	return l
}

func (l *liveRoles) impersonated(name string, groups ...string) *rest.Config {
	config := rest.CopyConfig(l.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	return config
}

func (l *liveRoles) add(config *rest.Config, is ...commonv1.TypedObjectRef) {
	l.t.Helper()
	info := sandboxtest.UserInfo(l.t, config)
	config = kube.Unlimited(config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(l.t, err)
	w := writer{Interface: client, subject: rbac.Subject{User: info.Username, Groups: info.Groups}, is: is}
	w.not = []commonv1.TypedObjectRef{
		{Kind: rbac.User, Name: "eve"}, {Kind: rbac.Group, Name: info.Username}, {Kind: rbac.User, Name: "system:authenticated"},
		{Kind: rbac.ServiceAccount, Namespace: home, Name: "robot"}, {Kind: rbac.ServiceAccount, Name: info.Username}, {Name: info.Username},
	}
	l.writers = append(l.writers, w)
}

// rules has the webhook know Roles and RoleBindings.
func (l *liveRoles) rules(roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding) {
	l.state.Store(&snapshot.State{Input: &snapshot.Input{Management: &snapshot.Management{Namespace: home, Roles: roles, RoleBindings: bindings}}})
}

// serve serves the webhook until the test ends, and waits until the API server asks it.
func (l *liveRoles) serve() {
	t := l.t
	t.Helper()
	client, err := kube.NewClientset(l.config)
	require.NoError(t, err)
	address := sandboxtest.Address(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	store := &serving.Store{Client: client, Namespace: home, Name: webhook.Secret, Hosts: []string{"localhost"}, Now: time.Now}
	hook := webhook.New(webhook.Options{Namespace: home, State: l.state.Load, Mode: webhook.Enforce, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- hook.Run(ctx, webhook.ServeOptions{
			Bind: address, URL: "https://localhost:" + port, FailurePolicy: "Fail", Client: client, Dynamic: l.masters,
			Certificate: func(ctx context.Context) (webhook.Certificate, error) {
				shown, bundle, err := store.Certificate(ctx)
				return webhook.Certificate{TLS: shown, Bundle: bundle}, err
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	stranger := &networkingv1.TrafficPolicy{Spec: networkingv1.TrafficPolicySpec{Policy: &networkingv1.Policy{}}}
	waittest.NoError(t, "Roles are enforced", func() error {
		if err := l.create(l.writers[0], "stranger", stranger); !apierrors.IsForbidden(err) {
			return fmt.Errorf("not rejected: %w", err)
		}
		return nil
	})
}

// dry are the options of writes that only ask.
var dry = []string{metav1.DryRunAll}

// kindOf is that of an object.
func kindOf(object snapshot.APIObject) snapshot.Kind {
	switch object.(type) {
	case *networkingv1.TrafficPolicy:
		return snapshot.TrafficPolicy
	case *networkingv1.AccessPolicy:
		return snapshot.AccessPolicy
	case *enterprisev1beta1.VirtualDestination:
		return snapshot.VirtualDestination
	case *observabilityv1.AccessLogRecord:
		return snapshot.AccessLogRecord
	case *enterprisev1beta1.ServiceDependency:
		return snapshot.ServiceDependency
	}
	return snapshot.VirtualMesh
}

// at is where objects of the kind of one are.
func at(client dynamic.Interface, object snapshot.APIObject) dynamic.ResourceInterface {
	return client.Resource(kindOf(object).GroupVersionResource()).Namespace(home)
}

// wire is an object as it is sent.
func (l *liveRoles) wire(name string, object snapshot.APIObject) *unstructured.Unstructured {
	l.t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(l.t, err)
	out := &unstructured.Unstructured{Object: raw}
	out.SetGroupVersionKind(kindOf(object).Info().GroupVersionKind)
	out.SetName(name)
	out.SetNamespace(home)
	unstructured.RemoveNestedField(out.Object, "status")
	return out
}

func (l *liveRoles) create(w writer, name string, object snapshot.APIObject) error {
	to := at(w, object)
	_, err := to.Create(l.t.Context(), l.wire(name, object), metav1.CreateOptions{DryRun: dry})
	return err
}

// matrix draws cases.
type matrix struct{ *rand.Rand }

func (m matrix) role(name string) *rbacv1.Role {
	if m.IntN(3) == 0 {
		return role(name, m.generous())
	}
	var spec rbacv1.RoleSpec
	for range m.IntN(3) {
		scope := rbacv1.TrafficPolicyScope{DestinationSelectors: randomSelectors(m.Rand, true), WorkloadSelectors: workloads("*", "*", star)}
		if m.IntN(2) == 0 {
			scope.DestinationSelectors = append(scope.DestinationSelectors, matcher("*", "*", star)...)
		}
		scope.TrafficPolicyActions = [][]rbacv1.TrafficPolicyAction{
			{rbacv1.TrafficPolicyActionAll}, {rbacv1.TrafficPolicyActionRequestTimeout}, {rbacv1.TrafficPolicyActionRetries, rbacv1.TrafficPolicyActionRequestTimeout}, nil,
		}[m.IntN(4)]
		spec.TrafficPolicyScopes = append(spec.TrafficPolicyScopes, scope)
	}
	for range m.IntN(3) {
		var scope rbacv1.AccessPolicyScope
		if m.IntN(3) > 0 {
			scope.IdentitySelectors = []commonv1.IdentitySelector{{KubeIdentityMatcher: &commonv1.KubeIdentityMatcher{Namespaces: [][]string{{"*"}, {"a"}, {"a", "b"}, nil}[m.IntN(4)], Clusters: []string{"*"}}}}
		}
		if m.IntN(3) > 0 {
			scope.DestinationSelectors = append(randomSelectors(m.Rand, true), matcher("a", "*", star)...)
		}
		spec.AccessPolicyScopes = append(spec.AccessPolicyScopes, scope)
	}
	for range m.IntN(3) {
		scope := rbacv1.VirtualMeshScope{VirtualMeshActions: [][]rbacv1.VirtualMeshAction{{rbacv1.VirtualMeshActionAll}, {rbacv1.VirtualMeshActionFederation}, nil}[m.IntN(3)]}
		for _, name := range pick(m.Rand, 3, "m1", "m2", "*") {
			scope.MeshRefs = append(scope.MeshRefs, commonv1.ObjectRef{Name: name, Namespace: []string{home, "*"}[m.IntN(2)]})
		}
		spec.VirtualMeshScopes = append(spec.VirtualMeshScopes, scope)
	}
	m.scopes(&spec)
	return role(name, spec)
}

// generous is a spec that allows much: what is drawn alone seldom allows anything.
func (m matrix) generous() rbacv1.RoleSpec {
	all := append(matcher([]string{"*", "a"}[m.IntN(2)], "*", star), refs("*", "*", "*")...)
	spec := rbacv1.RoleSpec{
		TrafficPolicyScopes: []rbacv1.TrafficPolicyScope{{
			TrafficPolicyActions: []rbacv1.TrafficPolicyAction{rbacv1.TrafficPolicyActionAll}, DestinationSelectors: all, WorkloadSelectors: workloads("*", "*", star),
		}},
		AccessPolicyScopes: []rbacv1.AccessPolicyScope{{
			IdentitySelectors:    []commonv1.IdentitySelector{{KubeIdentityMatcher: &commonv1.KubeIdentityMatcher{Namespaces: []string{"*"}, Clusters: []string{"*"}}}},
			DestinationSelectors: all,
		}},
		VirtualMeshScopes: []rbacv1.VirtualMeshScope{{
			VirtualMeshActions: []rbacv1.VirtualMeshAction{rbacv1.VirtualMeshActionAll}, MeshRefs: []commonv1.ObjectRef{{Name: "*", Namespace: "*"}},
		}},
	}
	m.generousScopes(&spec, all)
	return spec
}

func (m matrix) policy(kind int) snapshot.APIObject {
	switch kind {
	case 0:
		p := timeout(randomSelectors(m.Rand, false))
		if m.IntN(3) == 0 {
			p.Spec.Policy = &networkingv1.Policy{Retries: &networkingv1.RetryPolicy{Attempts: 2}}
		}
		return &networkingv1.TrafficPolicy{Spec: p.Spec}
	case 1:
		p := &networkingv1.AccessPolicy{Spec: networkingv1.AccessPolicySpec{DestinationSelector: randomSelectors(m.Rand, false)}}
		for range m.IntN(2) {
			p.Spec.SourceSelector = append(p.Spec.SourceSelector, commonv1.IdentitySelector{KubeIdentityMatcher: &commonv1.KubeIdentityMatcher{Namespaces: pick(m.Rand, 2, "a", "b")}})
		}
		return p
	case 2:
		return m.virtual()
	case 3:
		return m.logs()
	case 4:
		return m.dependency()
	}
	v := &networkingv1.VirtualMesh{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(pick(m.Rand, 2, "m1", "m2", "m3")))) {
		v.Spec.Meshes = append(v.Spec.Meshes, commonv1.ObjectRef{Name: name, Namespace: home})
	}
	switch m.IntN(3) {
	case 0:
		v.Spec.Federation = &networkingv1.Federation{}
	case 1:
		v.Spec.GlobalAccessPolicy = networkingv1.GlobalAccessPolicyEnabled
	}
	return v
}

// mayByModel reports whether one of the specs allows an object: each thing that it is about is asked for.
func mayByModel(specs []rbacv1.RoleSpec, object snapshot.APIObject) bool {
	if kindOf(object) == snapshot.ServiceDependency {
		return true
	}
	for _, spec := range specs {
		switch o := object.(type) {
		case *networkingv1.TrafficPolicy:
			if allowedByModel(spec.TrafficPolicyScopes, &o.Spec) {
				return true
			}
		case *networkingv1.AccessPolicy:
			if accessByModel(spec.AccessPolicyScopes, &o.Spec) {
				return true
			}
		case *networkingv1.VirtualMesh:
			if slices.ContainsFunc(spec.VirtualMeshScopes, func(s rbacv1.VirtualMeshScope) bool { return meshByModel(s, &o.Spec) }) {
				return true
			}
		case *enterprisev1beta1.VirtualDestination:
			if slices.ContainsFunc(spec.VirtualDestinationScopes, func(s rbacv1.VirtualDestinationScope) bool { return virtualByModel(s, &o.Spec) }) {
				return true
			}
		case *observabilityv1.AccessLogRecord:
			if slices.ContainsFunc(spec.AccessLogRecordScopes, func(s rbacv1.AccessLogRecordScope) bool { return logsByModel(s, &o.Spec) }) {
				return true
			}
		}
	}
	return false
}

// identities are a matcher of identities as one of services, whose labels do not matter.
func identities(of []commonv1.IdentitySelector) (out []commonv1.DestinationSelector) {
	for _, s := range of {
		m := s.KubeIdentityMatcher
		out = append(out, commonv1.DestinationSelector{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Namespaces: m.Namespaces, Clusters: m.Clusters, Labels: star}})
	}
	return out
}

func accessByModel(scopes []rbacv1.AccessPolicyScope, p *networkingv1.AccessPolicySpec) bool {
	var pool rbacv1.AccessPolicyScope
	for _, s := range scopes {
		if len(s.IdentitySelectors) == 0 || len(s.DestinationSelectors) == 0 {
			pool.IdentitySelectors = append(pool.IdentitySelectors, s.IdentitySelectors...)
			pool.DestinationSelectors = append(pool.DestinationSelectors, s.DestinationSelectors...)
		}
	}
	var callers []commonv1.DestinationSelector
	for _, s := range identities(p.SourceSelector) {
		s.KubeServiceMatcher.Labels = nil
		callers = append(callers, s)
	}
	for _, s := range append(slices.Clone(scopes), pool) {
		ok := true
		for _, x := range things() {
			ok = ok && (!selected(callers, x) || permitted(identities(s.IdentitySelectors), x)) && (!selected(p.DestinationSelector, x) || permitted(s.DestinationSelectors, x))
		}
		if ok {
			return true
		}
	}
	return false
}

func meshByModel(s rbacv1.VirtualMeshScope, v *networkingv1.VirtualMeshSpec) bool {
	may := func(action rbacv1.VirtualMeshAction) bool {
		return slices.Contains(s.VirtualMeshActions, action) || slices.Contains(s.VirtualMeshActions, rbacv1.VirtualMeshActionAll)
	}
	for _, mesh := range v.Meshes {
		if !refByModel(s.MeshRefs, mesh) {
			return false
		}
	}
	return (v.Federation == nil || may(rbacv1.VirtualMeshActionFederation)) && (v.GlobalAccessPolicy == "" || may(rbacv1.VirtualMeshActionGlobalAccessPolicy))
}

// TestMatrix: whoever writes whatever, the API server answers as a model of the Roles does that asks of each thing. Of users, groups and
// ServiceAccounts, as they are impersonated, by a token and by a client certificate.
func TestMatrix(t *testing.T) {
	waittest.SkipIfShort(t, "starts an API server")
	t.Parallel()
	seed := waittest.Seed(t)
	l, m := newLiveRoles(t), matrix{rand.New(rand.NewPCG(seed, 2))}
	verdicts := map[string]int{}
	for i := range 400 {
		w := l.writers[m.IntN(len(l.writers))]
		var roles []*rbacv1.Role
		var bindings []*rbacv1.RoleBinding
		var held []rbacv1.RoleSpec
		for n := range 1 + m.IntN(3) {
			r := m.role(fmt.Sprintf("role-%d", n))
			b := binding(r.Name, w.not[m.IntN(len(w.not))])
			counts := m.IntN(4) > 0
			if counts {
				b.Spec.Subjects = append(b.Spec.Subjects, w.is[m.IntN(len(w.is))])
			}
			switch m.IntN(8) { // where nothing counts
			case 0:
				r.Namespace, counts = "elsewhere", false
			case 1:
				b.Namespace, counts = "elsewhere", false
			case 2:
				b.Spec.RoleRef.Namespace, counts = "elsewhere", false
			}
			roles, bindings = append(roles, r), append(bindings, b)
			if counts {
				held = append(held, r.Spec)
			}
		}
		kind := m.IntN(6)
		before, after := m.policy(kind), m.policy(kind)
		l.rules(roles, bindings)
		asMaster := at(l.masters, before)
		stored, err := asMaster.Create(t.Context(), l.wire("stored", before), metav1.CreateOptions{})
		require.NoError(t, err, "seed %d, case %d", seed, i)
		edited := l.wire("stored", after)
		edited.SetResourceVersion(stored.GetResourceVersion())
		to := at(w, before)
		_, updated := to.Update(t.Context(), edited, metav1.UpdateOptions{DryRun: dry})
		may := func(object snapshot.APIObject) bool { return mayByModel(held, object) }
		for _, c := range []struct {
			verb rbac.Verb
			err  error
			want bool
		}{
			{rbac.Create, l.create(w, "made", after), may(after)},
			{rbac.Update, updated, may(before) && may(after)},
			{rbac.Delete, to.Delete(t.Context(), "stored", metav1.DeleteOptions{DryRun: dry}), may(before)},
		} {
			about := fmt.Sprintf("seed %d, case %d: %s of %T by %s: %+v → %+v\nRoles %+v", seed, i, c.verb, after, w.subject, before, after, held)
			if c.want {
				require.NoError(t, c.err, about)
			} else {
				require.True(t, apierrors.IsForbidden(c.err) && strings.Contains(c.err.Error(), "roles.meshctl.io"), "%v: %s", c.err, about)
			}
			verdicts[fmt.Sprintf("%d %s %t", kind, c.verb, c.want)]++
		}
		require.NoError(t, asMaster.Delete(t.Context(), "stored", metav1.DeleteOptions{}))
	}
	require.Len(t, verdicts, 5*3*2+3, "seed %d: each verdict about each verb and kind occurs, of ServiceDependencies one: %v", seed, verdicts)
}

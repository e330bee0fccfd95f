package registration_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// owner is the annotation of the agent of these tests.
	owner = "agent.example/of"
	// plane is the namespace of the management plane, and own that of the accounts in its cluster.
	plane, own = "gloo-mesh", "gloo-mesh-agent"
	itsMesh    = "istiod-istio-system-self"
	aRoot      = "2bfb202c3c22ce9642f16aba67852ba8c86ecf8b4d1bc459a850267a04972bac"
)

// movable is a management cluster that is registered in itself.
type movable struct {
	t      *testing.T
	config *rest.Config
	client dynamic.Interface
	id     string
}

func newMovable(t *testing.T) *movable {
	t.Helper()
	config := single(t)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	m := &movable{t: t, config: config, client: client}
	sandboxtest.Apply(t, config, []byte(anIstio))
	_, err = registration.Register(t.Context(), m.options(nil))
	require.NoError(t, err)
	m.id = planeID(t, config, plane)
	return m
}

// options are those of a registration, whose process is killed if there is a killer.
func (m *movable) options(k *killer) registration.Options {
	config := m.config
	if k != nil {
		config = k.wrap(config)
	}
	a := anAgent("")
	a.OwnerAnnotation, a.FieldManager = owner, "an-agent"
	if m.id == "" {
		a.Image = "registry.example/meshctl:v1"
	}
	return registration.Options{Name: "self", RemoteConfig: config, MgmtConfig: config, Agent: a}
}

// serveAccount is the account of serve: each registration makes one of another name.
func (m *movable) serveAccount() string {
	m.t.Helper()
	list, err := sandboxtest.Clientset(m.t, m.config).CoreV1().ServiceAccounts(own).List(m.t.Context(), metav1.ListOptions{})
	require.NoError(m.t, err)
	var names []string
	for _, o := range list.Items {
		if o.Name == "self" || strings.HasPrefix(o.Name, "self-") {
			names = append(names, o.Name)
		}
	}
	require.Len(m.t, names, 1, "%v", names)
	return names[0]
}

// accounts are what a registration has in a namespace, by type, with the account of serve.
func (m *movable) accounts(serve string) map[schema.GroupVersionResource][]string {
	name := registration.AgentName(m.id)
	return map[schema.GroupVersionResource][]string{
		corev1.SchemeGroupVersion.WithResource("serviceaccounts"): {name, serve},
		rbacv1.SchemeGroupVersion.WithResource("roles"):           {name, registration.TokenRoleName("self")},
		rbacv1.SchemeGroupVersion.WithResource("rolebindings"):    {name, registration.TokenRoleName("self")},
		{Group: "apps", Version: "v1", Resource: "deployments"}:   {name},
	}
}

// asBefore moves all that the registration has to where versions before had it, with what an agent has written.
func (m *movable) asBefore() {
	m.t.Helper()
	ctx := m.t.Context()
	serve := m.serveAccount()
	for gvr, names := range m.accounts(serve) {
		for _, name := range names {
			o, err := m.client.Resource(gvr).Namespace(own).Get(ctx, name, metav1.GetOptions{})
			require.NoError(m.t, err)
			require.NoError(m.t, m.client.Resource(gvr).Namespace(own).Delete(ctx, name, metav1.DeleteOptions{}))
			text, err := o.MarshalJSON()
			require.NoError(m.t, err)
			moved := &unstructured.Unstructured{}
			require.NoError(m.t, moved.UnmarshalJSON([]byte(strings.NewReplacer(`"`+own+`"`, `"`+plane+`"`, `"`+serve+`"`, `"self"`).Replace(string(text)))))
			moved.SetResourceVersion("")
			moved.SetUID("")
			_, err = m.client.Resource(gvr).Namespace(plane).Create(ctx, moved, metav1.CreateOptions{})
			require.NoError(m.t, err)
		}
	}
	_, err := m.client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(plane).Patch(ctx, "self", types.MergePatchType,
		[]byte(`{"status":{"namespace":"`+plane+`"}}`), metav1.PatchOptions{}, "status")
	require.NoError(m.t, err)
	err = m.client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Namespace(own).Delete(ctx, itsMesh, metav1.DeleteOptions{})
	require.True(m.t, err == nil || apierrors.IsNotFound(err), "%v", err)
	ours := map[string]string{snapshot.PlaneLabel: m.id, snapshot.NetworkingOwnerLabel: plane}
	for name, labels := range map[string]map[string]string{itsMesh: ours, "another-planes": {snapshot.PlaneLabel: "another"}} {
		m.create(plane, snapshot.IssuedCertificate, name, labels, nil)
		m.create(plane, snapshot.CertificateRequest, name, nil, nil)
		m.createSecret(plane, name, snapshot.KeySecretType, plane+"/"+name)
	}
	_, err = m.client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Namespace(plane).Patch(ctx, itsMesh, types.MergePatchType,
		[]byte(`{"status":{"observedGeneration":1,"state":"FINISHED","trust":{"trusted":["`+aRoot+`"]}}}`), metav1.PatchOptions{}, "status")
	require.NoError(m.t, err)
	m.createSecret("istio-system", "cacerts", corev1.SecretTypeOpaque, plane+"/"+itsMesh)
	m.createSecret("istio-system", "of-another-agent", corev1.SecretTypeOpaque, "elsewhere/"+itsMesh)
	m.createSecret("istio-system", "of-a-user", corev1.SecretTypeOpaque, "")
}

func (m *movable) create(namespace string, k snapshot.Kind, name string, labels, annotations map[string]string) {
	m.t.Helper()
	err := m.client.Resource(k.GroupVersionResource()).Namespace(namespace).Delete(m.t.Context(), name, metav1.DeleteOptions{})
	require.True(m.t, err == nil || apierrors.IsNotFound(err), "%v", err)
	put(m.t, m.config, k, namespace, name, labels, annotations)
}

func (m *movable) createSecret(namespace, name string, kind corev1.SecretType, of string) {
	m.t.Helper()
	secrets := sandboxtest.Clientset(m.t, m.config).CoreV1().Secrets(namespace)
	err := secrets.Delete(m.t.Context(), name, metav1.DeleteOptions{})
	require.True(m.t, err == nil || apierrors.IsNotFound(err), "%v", err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind}
	if of != "" {
		secret.Annotations = map[string]string{owner: of}
	}
	_, err = secrets.Create(m.t.Context(), secret, metav1.CreateOptions{})
	require.NoError(m.t, err)
}

// installed is what `meshctl check` and `meshctl version` say of the registrations.
func (m *movable) installed() []registration.InstalledAccount {
	m.t.Helper()
	versions, err := registration.Versions(m.t.Context(), registration.VersionsOptions{Config: m.config})
	require.NoError(m.t, err)
	return versions.Clusters
}

// hasMoved checks that nobody but the management plane has rights in its namespace.
func (m *movable) hasMoved() {
	m.t.Helper()
	ctx := m.t.Context()
	for gvr, names := range m.accounts("self") {
		for _, name := range names {
			_, err := m.client.Resource(gvr).Namespace(plane).Get(ctx, name, metav1.GetOptions{})
			assert.True(m.t, apierrors.IsNotFound(err), "%s %s: %v", gvr.Resource, name, err)
		}
	}
	for gvr, names := range m.accounts(m.serveAccount()) {
		for _, name := range names {
			_, err := m.client.Resource(gvr).Namespace(own).Get(ctx, name, metav1.GetOptions{})
			require.NoError(m.t, err)
		}
	}
	in := func(namespace string, k snapshot.Kind) []string {
		list, err := m.client.Resource(k.GroupVersionResource()).Namespace(namespace).List(ctx, metav1.ListOptions{})
		require.NoError(m.t, err)
		var names []string
		for _, o := range list.Items {
			names = append(names, o.GetName())
		}
		slices.Sort(names)
		return names
	}
	assert.Equal(m.t, []string{"another-planes"}, in(plane, snapshot.CertificateRequest))
	assert.Equal(m.t, []string{itsMesh}, in(own, snapshot.IssuedCertificate))
	asked, err := m.client.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Namespace(own).Get(ctx, itsMesh, metav1.GetOptions{})
	require.NoError(m.t, err)
	trusted, _, _ := unstructured.NestedStringSlice(asked.Object, "status", "trust", "trusted")
	assert.Equal(m.t, []string{aRoot}, trusted, "what the agent has reported goes with it")
	assert.Equal(m.t, m.id, asked.GetLabels()[snapshot.PlaneLabel])
	assert.Equal(m.t, []string{"another-planes", "self"}, in(plane, snapshot.Secret), "the keys of the agent are gone, but not those of others")
	owners := map[string]string{}
	for _, name := range in("istio-system", snapshot.Secret) {
		owners[name] = sandboxtest.Secret(m.t, m.config, "istio-system", name).Annotations[owner]
	}
	assert.Equal(m.t, map[string]string{"cacerts": own + "/" + itsMesh, "of-another-agent": "elsewhere/" + itsMesh, "of-a-user": ""}, owners)
	registered, err := m.client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(plane).Get(ctx, "self", metav1.GetOptions{})
	require.NoError(m.t, err)
	namespace, _, _ := unstructured.NestedString(registered.Object, "status", "namespace")
	assert.Equal(m.t, own, namespace)
}

// TestAccountsLeaveTheManagementPlanesNamespace: a registration of versions before had the account of an agent beside the keys
// of roots; registering again moves it, and the old credential is worth nothing any more.
func TestAccountsLeaveTheManagementPlanesNamespace(t *testing.T) {
	t.Parallel()
	m := newMovable(t)
	m.asBefore()
	before := agentToken(t, m.config, plane, m.id)
	_, err := before.CoreV1().Secrets(plane).Get(t.Context(), itsMesh, metav1.GetOptions{})
	require.NoError(t, err, "as an agent that reads its key")

	assert.Equal(t, []registration.InstalledAccount{{Cluster: "self"}}, m.installed())
	report, err := registration.Register(t.Context(), m.options(nil))
	require.NoError(t, err)
	assert.Equal(t, []registration.InstalledAccount{{Cluster: "self", Current: true}}, m.installed())
	assert.Contains(t, strings.Join(report.Notes, "\n"), "an agent that you run yourself needs --namespace "+own)
	m.hasMoved()
	_, err = before.CoreV1().Secrets(plane).Get(t.Context(), itsMesh, metav1.GetOptions{})
	require.True(t, apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err), "%v", err)
	_, err = agentToken(t, m.config, own, m.id).CoreV1().Secrets(plane).Get(t.Context(), itsMesh, metav1.GetOptions{})
	require.ErrorContains(t, err, "forbidden")

	options := m.options(nil)
	options.KeepCredential = true
	again, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.True(t, again.Unchanged(), "%+v", again.Changes)
	assert.Empty(t, again.Notes)
}

// TestAccountsMoveOverSomeDeaths: the same command finishes what a process began that was killed before one of its writes.
func TestAccountsMoveOverSomeDeaths(t *testing.T) {
	t.Parallel()
	moveDies(t, 3)
}

func TestAccountsMoveOverAnyDeath(t *testing.T) {
	shard.Only(t, shard.Soak)
	t.Parallel()
	assert.Greater(t, len(moveDies(t, all)), 10)
}

func moveDies(t *testing.T, some int) []string {
	t.Helper()
	m := newMovable(t)
	return atWrites(t, some, func(k *killer) error {
		m.asBefore()
		_, err := registration.Register(t.Context(), m.options(k))
		if k.fatal == "" {
			m.hasMoved()
			return err
		}
		require.ErrorIs(t, err, errKilled, k.fatal)
		_, err = registration.Register(t.Context(), m.options(nil))
		require.NoError(t, err, "killed before %s", k.fatal)
		m.hasMoved()
		return nil
	})
}

// TestNoAccountsInTheManagementPlanesNamespace: where they must not be is refused, and what needs an administrator is said
// before anything is written.
func TestNoAccountsInTheManagementPlanesNamespace(t *testing.T) {
	t.Parallel()
	m := newMovable(t)
	options := m.options(nil)
	options.RemoteNamespace = plane
	report, err := registration.Register(t.Context(), options)
	require.ErrorContains(t, err, "cluster self: namespace gloo-mesh belongs to a management plane, in which the agent of a cluster must have no rights; name another one with --remote-namespace, or leave it out (gloo-mesh-agent)")
	assert.Empty(t, report.Changes)

	options = m.options(nil)
	options.Agent.MoreRules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"vault-token"}, Verbs: []string{"get"}}}
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	m.asBefore()
	roles := m.client.Resource(rbacv1.SchemeGroupVersion.WithResource("roles"))
	more, err := roles.Namespace(own).Get(t.Context(), registration.AgentName(m.id)+"-more", metav1.GetOptions{})
	require.NoError(t, err)
	more.SetNamespace(plane)
	more.SetResourceVersion("")
	_, err = roles.Namespace(plane).Create(t.Context(), more, metav1.CreateOptions{})
	require.NoError(t, err)
	before := maps.Clone(inventory(t, m.config))
	_, err = registration.Register(t.Context(), m.options(nil))
	require.ErrorContains(t, err, "create the same Secrets and ServiceAccounts in gloo-mesh-agent, and use --vault-token-secret or --vault-service-account")
	assert.Equal(t, before, inventory(t, m.config), "nothing was written")
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	m.hasMoved()
}

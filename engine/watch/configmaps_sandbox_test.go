package watch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// settingsWorld is a registered cluster with a control plane without a revision in
// istio-system.
type settingsWorld struct {
	*watched
	management, config *rest.Config
}

func newSettingsWorld(t *testing.T) *settingsWorld {
	t.Helper()
	servers := sandboxtest.APIServers(t, 2)
	w := &settingsWorld{}
	var err error
	w.management, err = servers[0].Config()
	require.NoError(t, err)
	w.config, err = servers[1].Config()
	require.NoError(t, err)
	w.install(t, "istio-system", "", "first.example")
	w.register(t)
	return w
}

// install makes a control plane, with the evidence of one.
func (w *settingsWorld) install(t *testing.T, namespace, revision, domain string) {
	t.Helper()
	k8s := client(t, w.config)
	_, err := k8s.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		sandboxtest.MakeNamespace(t, w.config, namespace)
		createInjector(t, k8s, namespace)
	}
	name := "istio"
	if revision != "" {
		name += "-" + revision
	}
	createSettings(t, w.config, namespace, name, domain)
	createIstiod(t, w.config, namespace, revision)
}

func (w *settingsWorld) register(t *testing.T) {
	t.Helper()
	_, err := registration.Register(t.Context(), registration.Options{Name: "west", RemoteConfig: w.config, MgmtConfig: w.management, KeepCredential: true})
	require.NoError(t, err)
}

// account is a client with the credential of the registration.
func (w *settingsWorld) account(t *testing.T) *rest.Config {
	t.Helper()
	c, err := cluster.ParseKubeconfig(sandboxtest.Secret(t, w.management, "gloo-mesh", "west").Data[cluster.SecretKey])
	require.NoError(t, err)
	return &rest.Config{Host: c.Server, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, ServerName: c.ServerName}}
}

// has waits until the meshes have these trust domains, by revision, and returns the issues
// of ConfigMaps.
func (w *settingsWorld) has(what string, domains map[string]string, issues ...string) {
	w.t.Helper()
	w.until(what, func(i *snapshot.Input) bool {
		found := discovery.Discover(named(i, "west"), discovery.Options{Detectors: engine.Detectors()})
		have := map[string]string{}
		for _, mesh := range found.Meshes {
			have[mesh.Name] = mesh.Spec.Istio.TrustDomain
		}
		var said []string
		for _, issue := range found.Issues {
			if issue.Ref.Kind == snapshot.ConfigMap {
				said = append(said, issue.Ref.Namespace+"/"+issue.Ref.Name+": "+issue.Message+"; "+issue.Hint)
			}
		}
		return assert.ObjectsAreEqual(domains, have) && assert.ObjectsAreEqual(issues, said) && named(i, "west").Sync == snapshot.Synced
	})
}

// TestOnlyTheConfigMapsOfMeshesMayBeRead, with the account of a registered cluster.
func TestOnlyTheConfigMapsOfMeshesMayBeRead(t *testing.T) {
	t.Parallel()
	w := newSettingsWorld(t)
	sandboxtest.MakeNamespace(t, w.config, "team")
	createSettings(t, w.config, "team", "istio", "team.example")
	createSettings(t, w.config, "team", "database", "as-good-as-a-secret")
	k8s := client(t, w.account(t))
	for _, c := range []struct {
		namespace, name string
		allowed         bool
	}{
		{"", "", false}, {"team", "", false}, {"kube-system", "", false},
		{"team", "database", false}, {"", "database", false}, {"team", "istio-canary", false},
		{"", "istio", true}, {"team", "istio", true}, {"istio-system", "istio", true}, {"istio-system", "istio-ca-root-cert", true},
		{"istio-system", "istio-canary", true},
	} {
		options := metav1.ListOptions{}
		if c.name != "" {
			options.FieldSelector = "metadata.name=" + c.name
		}
		_, listed := k8s.CoreV1().ConfigMaps(c.namespace).List(t.Context(), options)
		watcher, watched := k8s.CoreV1().ConfigMaps(c.namespace).Watch(t.Context(), options)
		if watched == nil {
			watcher.Stop()
		}
		for verb, err := range map[string]error{"list": listed, "watch": watched} {
			if c.allowed {
				assert.NoError(t, err, "%s %s/%s", verb, c.namespace, c.name)
			} else {
				assert.True(t, apierrors.IsForbidden(err), "%s %s/%s: %v", verb, c.namespace, c.name, err)
			}
		}
	}
	_, err := k8s.CoreV1().ConfigMaps("team").Get(t.Context(), "database", metav1.GetOptions{})
	assert.True(t, apierrors.IsForbidden(err), "get: %v", err)
}

// TestSettingsOfRevisionsAreRead: with the account of a registered cluster, as control
// planes come and go.
func TestSettingsOfRevisionsAreRead(t *testing.T) {
	t.Parallel()
	w := newSettingsWorld(t)
	w.watched = start(t, w.management, watch.Options{Namespace: "gloo-mesh"})
	w.Set("west", "", w.account(t), nil)
	w.has("the first settings", map[string]string{"istiod-istio-system-west": "first.example"})
	configMaps := client(t, w.config).CoreV1().ConfigMaps("istio-system")
	edit := func(name, domain string) {
		t.Helper()
		_, err := configMaps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{"mesh":"trustDomain: `+domain+`"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	edit("istio", "second.example")
	w.has("an edit", map[string]string{"istiod-istio-system-west": "second.example"})

	t.Log("a new revision beside another needs nothing")
	w.install(t, "istio-system", "canary", "canary.example")
	w.has("the canary", map[string]string{"istiod-istio-system-west": "second.example", "istiod-canary-istio-system-west": "canary.example"})

	t.Log("a control plane without a revision, neither")
	w.install(t, "another", "", "another.example")
	meshes := map[string]string{
		"istiod-istio-system-west": "second.example", "istiod-canary-istio-system-west": "canary.example", "istiod-another-west": "another.example",
	}
	w.has("another namespace", meshes)

	t.Log("a revision in a new namespace is left out until the cluster is registered again")
	w.install(t, "third", "blue", "blue.example")
	w.has("what may not be read", meshes, "third/istio-blue: it cannot be read (meshctl's account on the cluster is not allowed to read it), "+
		"so its control plane is left out: the trust domain is not known; "+
		"run `meshctl cluster register west` again: it gives access to the ConfigMaps in the namespaces that have a control plane now")
	edit("istio", "third.example")
	meshes["istiod-istio-system-west"] = "third.example"
	w.until("an edit meanwhile", func(i *snapshot.Input) bool {
		return discovery.Discover(named(i, "west"), discovery.Options{Detectors: engine.Detectors()}).Meshes[1].Spec.Istio.TrustDomain == "canary.example" &&
			discovery.Discover(named(i, "west"), discovery.Options{Detectors: engine.Detectors()}).Meshes[2].Spec.Istio.TrustDomain == "third.example"
	})
	w.register(t)
	meshes["istiod-blue-third-west"] = "blue.example"
	w.has("the revision after registering again", meshes)

	t.Log("settings that may not be read any more stay as they were")
	bindings := client(t, w.config).RbacV1().RoleBindings("third")
	require.NoError(t, bindings.Delete(t.Context(), w.role(t), metav1.DeleteOptions{}))
	w.isDenied(t, "third")
	w.Set("west", "", w.account(t), nil) // a session that reads everything again
	w.has("what was read last", meshes, "third/istio-blue: it cannot be read (meshctl's account on the cluster is not allowed to read it), "+
		"so its settings stay as they were read last; "+
		"run `meshctl cluster register west` again: it gives access to the ConfigMaps in the namespaces that have a control plane now")
	w.register(t)
	w.has("all of it again", meshes)

	t.Log("what goes, goes; deregistering removes what gave access")
	require.NoError(t, client(t, w.config).AppsV1().Deployments("third").Delete(t.Context(), "istiod-blue", metav1.DeleteOptions{}))
	delete(meshes, "istiod-blue-third-west")
	w.has("one control plane less", meshes)
	w.Remove("west")
	assert.ElementsMatch(t, []string{"istio-system", "third", "another"}, w.granted(t), "registered again")
	_, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "west", RemoteConfig: w.config, MgmtConfig: w.management, ServeWait: time.Millisecond})
	require.NoError(t, err)
	assert.Empty(t, w.granted(t))
}

// TestAnAccountOfTheVersionBefore: it may not read the kinds that came with this version. All
// else is read, and these as soon as it may.
func TestAnAccountOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	w := newSettingsWorld(t)
	roles := client(t, w.config).RbacV1().ClusterRoles()
	plane, err := cluster.PlaneID(t.Context(), client(t, w.management), "gloo-mesh")
	require.NoError(t, err)
	role, err := roles.Get(t.Context(), registration.RoleName(plane), metav1.GetOptions{})
	require.NoError(t, err)
	later := snapshot.IssuedCertificate.Info()
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, later.Group) })
	_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	account, err := dynamic.NewForConfig(w.account(t))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := account.Resource(snapshot.IssuedCertificate.GroupVersionResource()).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	}, time.Minute, 50*time.Millisecond)

	w.watched = start(t, w.management, watch.Options{Namespace: "gloo-mesh"})
	w.Set("west", "", w.account(t), nil)
	w.has("all else", map[string]string{"istiod-istio-system-west": "first.example"})

	sandboxtest.MakeNamespace(t, w.config, "gloo-mesh")
	sandboxtest.Apply(t, w.config, []byte(`
apiVersion: certificates.mesh.gloo.solo.io/v1
kind: IssuedCertificate
metadata: {name: a, namespace: gloo-mesh}
spec: {hosts: ["spiffe://a/ns/b/sa/c"]}
`))
	w.register(t)
	w.until("what it may read now", func(i *snapshot.Input) bool { return len(named(i, "west").IssuedCertificates) == 1 })
}

// role is the name of the objects that give access to the ConfigMaps of a namespace.
func (w *settingsWorld) role(t *testing.T) string {
	t.Helper()
	plane, err := cluster.PlaneID(t.Context(), client(t, w.management), "gloo-mesh")
	require.NoError(t, err)
	return registration.SettingsRoleName("west", plane)
}

// granted are the namespaces in which registration gives access.
func (w *settingsWorld) granted(t *testing.T) []string {
	t.Helper()
	out := []string{}
	named := metav1.ListOptions{FieldSelector: "metadata.name=" + w.role(t)}
	roles, err := client(t, w.config).RbacV1().Roles("").List(t.Context(), named)
	require.NoError(t, err)
	bindings, err := client(t, w.config).RbacV1().RoleBindings("").List(t.Context(), named)
	require.NoError(t, err)
	require.Len(t, bindings.Items, len(roles.Items))
	for i := range roles.Items {
		out = append(out, roles.Items[i].Namespace)
	}
	return out
}

// isDenied waits until the API server knows that the account may not read a namespace.
func (w *settingsWorld) isDenied(t *testing.T, namespace string) {
	t.Helper()
	account := client(t, w.account(t))
	require.Eventually(t, func() bool {
		_, err := account.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	}, time.Minute, 50*time.Millisecond)
}

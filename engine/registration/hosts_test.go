package registration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestNamesOfFederatedServicesAreKept: an editor of one namespace writes no host below the suffix of a VirtualMesh, and any
// other. Serve does, and so does who administers the cluster.
func TestNamesOfFederatedServicesAreKept(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	admin := dynamicOf(t, remote)
	sandboxtest.MakeNamespace(t, remote, "tenant")
	tenant := editor(t, remote, "tenant")
	stood := istioObject(snapshot.ServiceEntry, "stood", map[string]any{"hosts": []any{"stood.tenant.svc.cluster-9.global"}})
	require.NoError(t, create(t, tenant, stood))

	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	serve := dynamicOf(t, storedConfig(t, sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2")))
	taken := istioObject(snapshot.ServiceEntry, "taken", map[string]any{"hosts": []any{"reviews.bookinfo.svc.cluster-2.global"}})
	const refused = "cannot be written: names below global are those of services that meshctl federates"
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		err := create(t, tenant, taken)
		if !assert.ErrorContains(c, err, refused, "API servers learn of a policy within seconds") && err == nil {
			assert.NoError(c, remove(t, tenant, taken))
		}
	}, waittest.Limit(), 100*time.Millisecond)

	hosts := func(names ...any) map[string]any { return map[string]any{"hosts": names} }
	for what, o := range map[string]*unstructured.Unstructured{
		"a route":                istioObject(snapshot.VirtualService, "o", hosts("reviews.bookinfo.svc.cluster-2.global")),
		"settings":               istioObject(snapshot.DestinationRule, "o", map[string]any{"host": "reviews.bookinfo.svc.cluster-2.global"}),
		"a wildcard":             istioObject(snapshot.ServiceEntry, "o", hosts("*.bookinfo.svc.cluster-2.global")),
		"all names":              istioObject(snapshot.ServiceEntry, "o", hosts("*.global")),
		"a VirtualDestination":   istioObject(snapshot.ServiceEntry, "o", hosts("reviews.global")),
		"capitals":               istioObject(snapshot.ServiceEntry, "o", hosts("Reviews.Bookinfo.SVC.cluster-2.GLOBAL")),
		"the root at the end":    istioObject(snapshot.ServiceEntry, "o", hosts("reviews.bookinfo.svc.cluster-2.global.")),
		"the second of two":      istioObject(snapshot.ServiceEntry, "o", hosts("a.example", "reviews.global")),
		"what was one before":    istioObject(snapshot.ServiceEntry, "o", hosts("stood.tenant.svc.cluster-9.global")),
		"the suffix as one name": istioObject(snapshot.ServiceEntry, "o", hosts("global")),
	} {
		require.ErrorContains(t, create(t, tenant, o), refused, what)
		require.NoError(t, create(t, serve, o), what)
		require.NoError(t, remove(t, admin, o), what)
		require.NoError(t, create(t, admin, o), what)
		require.NoError(t, remove(t, admin, o), what)
	}
	for what, o := range map[string]*unstructured.Unstructured{
		"another name":           istioObject(snapshot.ServiceEntry, "o", hosts("api.example.com")),
		"a name that ends alike": istioObject(snapshot.ServiceEntry, "o", hosts("api.notglobal")),
		"all hosts":              istioObject(snapshot.VirtualService, "o", hosts("*")),
		"a route of another":     istioObject(snapshot.VirtualService, "o", map[string]any{"http": []any{}}),
		"a local service":        istioObject(snapshot.DestinationRule, "o", map[string]any{"host": "reviews.global.svc.cluster.local"}),
		"nothing":                istioObject(snapshot.DestinationRule, "o", nil),
	} {
		require.NoError(t, create(t, tenant, o), what)
		require.NoError(t, remove(t, tenant, o), what)
	}

	// What stood before can be labelled, and deleted, but not changed.
	patch := func(text string) error {
		_, err := tenant.Resource(resourceOf(stood)).Namespace("tenant").Patch(t.Context(), "stood", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	require.NoError(t, patch(`{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/mine"]}}`))
	require.ErrorContains(t, patch(`{"spec":{"endpoints":[{"address":"192.0.2.1"}]}}`), refused)
	require.NoError(t, remove(t, tenant, stood))
	require.NoError(t, patch(`{"metadata":{"finalizers":null}}`))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := admin.Resource(resourceOf(stood)).Namespace("tenant").Get(t.Context(), "stood", metav1.GetOptions{})
		assert.True(c, apierrors.IsNotFound(err), "%v", err)
	}, waittest.Limit(), 50*time.Millisecond)

	// A VirtualMesh with another suffix: the registration is to be made again.
	current := func() bool {
		versions, err := registration.Versions(t.Context(), registration.VersionsOptions{Config: management})
		require.NoError(t, err)
		require.Len(t, versions.Clusters, 1)
		return versions.Clusters[0].Current
	}
	require.True(t, current())
	vm := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"federation": map[string]any{"hostnameSuffix": "mesh.example"}}}}
	vm.SetGroupVersionKind(snapshot.VirtualMesh.Info().GroupVersionKind)
	vm.SetNamespace("gloo-mesh")
	vm.SetName("all")
	_, err = dynamicOf(t, management).Resource(snapshot.VirtualMesh.GroupVersionResource()).Namespace("gloo-mesh").Create(t.Context(), vm, metav1.CreateOptions{})
	require.NoError(t, err)
	require.False(t, current())
	other := istioObject(snapshot.ServiceEntry, "other", hosts("reviews.bookinfo.svc.cluster-2.mesh.example"))
	require.NoError(t, create(t, tenant, other))
	require.NoError(t, remove(t, tenant, other))
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	require.True(t, current())
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		err := create(t, tenant, other)
		if !assert.ErrorContains(c, err, "names below global, mesh.example are those") && err == nil {
			assert.NoError(c, remove(t, tenant, other))
		}
	}, waittest.Limit(), 100*time.Millisecond)

	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.NoError(c, create(t, tenant, taken)) }, waittest.Limit(), 100*time.Millisecond)
}

func dynamicOf(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// editor may write all objects of Istio in a namespace.
func editor(t *testing.T, config *rest.Config, namespace string) dynamic.Interface {
	t.Helper()
	rbac := sandboxtest.Clientset(t, config).RbacV1()
	_, err := rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "editor"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{snapshot.ServiceEntry.Info().Group}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "editor"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "editor"}
	return dynamicOf(t, as)
}

func istioObject(kind snapshot.Kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	o.SetGroupVersionKind(kind.Info().GroupVersionKind)
	o.SetNamespace("tenant")
	o.SetName(name)
	o.SetLabels(map[string]string{cluster.ManagedByLabel: "somebody"})
	return o
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	kind, _ := snapshot.KindOf(o.GroupVersionKind().GroupKind())
	return kind.GroupVersionResource()
}

func create(t *testing.T, client dynamic.Interface, o *unstructured.Unstructured) error {
	t.Helper()
	_, err := client.Resource(resourceOf(o)).Namespace(o.GetNamespace()).Create(t.Context(), o.DeepCopy(), metav1.CreateOptions{})
	return err
}

func remove(t *testing.T, client dynamic.Interface, o *unstructured.Unstructured) error {
	t.Helper()
	return client.Resource(resourceOf(o)).Namespace(o.GetNamespace()).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{})
}

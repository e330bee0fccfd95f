package registration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestInstall: nothing but what it says is written, a second time nothing at all, and an upgrade
// keeps what was set.
func TestInstall(t *testing.T) {
	t.Parallel()
	config := empty(t)
	before := inventory(t, config)
	options := registration.InstallOptions{
		Config: config, Namespace: "mesh", Image: "registry.example:5000/mirror/meshctl:v1.0.0", Version: "v1.0.0", Replicas: ptr.To[int32](3),
		PullSecrets: []string{"pull"}, Resources: registration.Resources{MemoryLimit: "2Gi"},
	}
	_, err := registration.Install(t.Context(), registration.InstallOptions{Config: config, Namespace: "mesh", Upgrade: true, Version: "v1.0.0"})
	var absent *registration.NotInstalledError
	require.ErrorAs(t, err, &absent)
	require.Empty(t, without(inventory(t, config), before), "nothing is written")

	report, err := registration.Install(t.Context(), options)
	require.NoError(t, err)
	made := slices.DeleteFunc(without(inventory(t, config), before), func(key string) bool {
		return strings.HasPrefix(key, "CustomResourceDefinition ")
	})
	assert.Equal(t, []string{
		"ClusterRole /meshctl-mesh", "ClusterRoleBinding /meshctl-mesh", "Deployment mesh/meshctl", "Namespace /mesh", "NetworkPolicy mesh/meshctl",
		"PodDisruptionBudget mesh/meshctl", "Role mesh/meshctl", "RoleBinding mesh/meshctl", "Service mesh/meshctl", "ServiceAccount mesh/meshctl",
	}, made)
	assert.Len(t, report.Changes, len(without(inventory(t, config), before)))

	again, err := registration.Install(t.Context(), registration.InstallOptions{Config: config, Namespace: "mesh", Image: options.Image, Version: "v1.0.0"})
	require.NoError(t, err)
	assert.True(t, again.Unchanged(), "%v", again.Changes)

	upgraded, err := registration.Install(t.Context(), registration.InstallOptions{Config: config, Namespace: "mesh", Version: "v1.1.0", Upgrade: true})
	require.NoError(t, err)
	upgraded.Changes = slices.DeleteFunc(upgraded.Changes, func(c registration.Change) bool { return c.Action == registration.Unchanged })
	require.Len(t, upgraded.Changes, 1, "%v", upgraded.Changes)
	d := deploymentOf(t, config, "mesh")
	assert.EqualValues(t, 3, *d.Spec.Replicas)
	container := d.Spec.Template.Spec.Containers[0]
	assert.Equal(t, "registry.example:5000/mirror/meshctl:v1.1.0", container.Image)
	assert.Equal(t, "2Gi", container.Resources.Limits.Memory().String())
	assert.Equal(t, "pull", d.Spec.Template.Spec.ImagePullSecrets[0].Name)
}

func deploymentOf(t *testing.T, config *rest.Config, namespace string) *appsv1.Deployment {
	t.Helper()
	d, err := sandboxtest.Clientset(t, config).AppsV1().Deployments(namespace).Get(t.Context(), registration.ServeName, metav1.GetOptions{})
	require.NoError(t, err)
	return d
}

// TestInstallLosesNothing: a field that a newer meshctl has stored is not dropped by the types of this one.
func TestInstallLosesNothing(t *testing.T) {
	t.Parallel()
	config := empty(t)
	options := registration.InstallOptions{Config: config, Image: "meshctl:1"}
	_, err := registration.Install(t.Context(), options)
	require.NoError(t, err)
	crds, err := apiextensions.NewForConfig(config)
	require.NoError(t, err)
	name := snapshot.TrafficPolicy.Info().Resource + "." + snapshot.TrafficPolicy.Info().Group
	crd, err := crds.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	crd.Annotations["registration.multicluster.solo.io/crd-hash"] = "of another version"
	policy := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["policy"]
	policy.Properties["future"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	policy.Properties["unused"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	_, err = crds.ApiextensionsV1().CustomResourceDefinitions().Update(t.Context(), crd, metav1.UpdateOptions{})
	require.NoError(t, err)

	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	policies := client.Resource(snapshot.TrafficPolicy.GroupVersionResource()).Namespace("default")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"policy": map[string]any{"future": "x"}}}}
	u.SetGroupVersionKind(snapshot.TrafficPolicy.Info().GroupVersionKind)
	u.SetName("newer")
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the API server takes up the type
		made, err := policies.Apply(t.Context(), "newer", u, metav1.ApplyOptions{FieldManager: "somebody", Force: true})
		if assert.NoError(c, err) {
			_, stored, _ := unstructured.NestedString(made.Object, "spec", "policy", "future")
			assert.True(c, stored)
		}
	}, waittest.Limit(), 50*time.Millisecond)

	_, err = registration.Install(t.Context(), options)
	var loss *registration.LossError
	require.ErrorAs(t, err, &loss)
	assert.Equal(t, []string{"TrafficPolicy default/newer: spec.policy.future"}, loss.Losses)
	now, err := crds.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["policy"].Properties, "future", "nothing was written")

	_, err = policies.Patch(t.Context(), "newer", types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/policy/future"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = registration.Install(t.Context(), options)
	require.NoError(t, err, "what no object has is not lost")
}

// TestInstallRefuses: nothing is written if it cannot be finished.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	config := empty(t)
	clientset := sandboxtest.Clientset(t, config)
	before := inventory(t, config)

	poor := rest.CopyConfig(config)
	poor.Impersonate = rest.ImpersonationConfig{UserName: "poor"}
	_, err := registration.Install(t.Context(), registration.InstallOptions{Config: poor, Image: "meshctl:1"})
	var denied *registration.PermissionError
	require.ErrorAs(t, err, &denied)
	assert.Empty(t, without(inventory(t, config), before))

	for name, c := range map[string]struct {
		change func(*registration.InstallOptions)
		want   string
	}{
		"no image":            {func(o *registration.InstallOptions) { o.Image = "" }, "--image"},
		"a space in it":       {func(o *registration.InstallOptions) { o.Image = "a b" }, "want a reference"},
		"image and registry":  {func(o *registration.InstallOptions) { o.Registry = "registry.example" }, "no registry beside it"},
		"no namespace's name": {func(o *registration.InstallOptions) { o.Namespace = "A" }, "lower-case"},
		"no quantity":         {func(o *registration.InstallOptions) { o.Resources.MemoryLimit = "much" }, "want a quantity"},
		"more than the limit": {func(o *registration.InstallOptions) { o.Resources.MemoryRequest = "4Gi" }, "at most the limit"},
	} {
		options := registration.InstallOptions{Config: config, Image: "meshctl:1"}
		c.change(&options)
		_, err := registration.Install(t.Context(), options)
		assert.ErrorContains(t, err, c.want, name)
		_, err = registration.InstallManifests(options)
		assert.ErrorContains(t, err, c.want, name)
	}
	assert.Empty(t, without(inventory(t, config), before))

	_, err = registration.Install(t.Context(), registration.InstallOptions{Config: config, Image: "meshctl:1"})
	require.NoError(t, err)
	d := deploymentOf(t, config, snapshot.DefaultNamespace)
	d.Spec.Replicas = ptr.To[int32](0)
	_, err = clientset.AppsV1().Deployments(d.Namespace).Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = registration.Install(t.Context(), registration.InstallOptions{Config: config, Image: "meshctl:2", Upgrade: true})
	require.NoError(t, err)
	d = deploymentOf(t, config, snapshot.DefaultNamespace)
	assert.Zero(t, *d.Spec.Replicas, "who has stopped serve does not want it started")
	d.Labels["app.kubernetes.io/managed-by"] = "Helm"
	d, err = clientset.AppsV1().Deployments(d.Namespace).Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = registration.Install(t.Context(), registration.InstallOptions{Config: config, Image: "meshctl:2"})
	require.ErrorContains(t, err, "helm upgrade")
	d.Labels = nil
	_, err = clientset.AppsV1().Deployments(d.Namespace).Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	before = inventory(t, config)
	_, err = registration.Install(t.Context(), registration.InstallOptions{Config: config, Image: "meshctl:2", Replicas: ptr.To[int32](1), ServiceMonitor: ptr.To(false)})
	var foreign *registration.ForeignObjectError
	require.ErrorAs(t, err, &foreign)
	assert.Equal(t, before, inventory(t, config))
}

package serve

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestADefinitionMadeAgainInTime deletes a CustomResourceDefinition and creates it again
// before any object of its kind is missed. What users delete later is their own doing.
func TestADefinitionMadeAgainInTime(t *testing.T) {
	t.Parallel()
	home := newHomeCluster(t)
	serve := start(t, home.config, "only", prompt)
	until(t, "it leads", func() bool { return serve.ready(leads) })
	home.works()

	kind := snapshot.VirtualDestination
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	crd, err := home.client.Get(t.Context(), resource, "", crdName(kind))
	require.NoError(t, err)
	require.NoError(t, home.client.Delete(t.Context(), resource, "", crd.GetName()))
	until(t, "it is gone", func() bool {
		_, err := home.client.Get(t.Context(), resource, "", crd.GetName())
		return apierrors.IsNotFound(err)
	})
	until(t, "it exists again", func() bool { return home.client.Apply(t.Context(), anew(crd)) == nil })
	const later = `
apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: VirtualDestination
metadata: {name: later, namespace: gloo-mesh}
spec:
  hostname: later.global
  port: {number: 80, protocol: http}
  virtualMesh: {name: none, namespace: gloo-mesh}
  static: {destinations: [{kubeService: {name: none, namespace: none, clusterName: none}}]}
`
	require.NoError(t, home.client.ApplyYAML(t.Context(), []byte(later)))
	until(t, "it has a status", func() bool {
		o, err := home.client.Get(t.Context(), kind.GroupVersionResource(), "gloo-mesh", "later")
		require.NoError(t, err)
		return o.Object["status"] != nil
	})
	require.NoError(t, home.client.Delete(t.Context(), kind.GroupVersionResource(), "gloo-mesh", "later"))
	home.works()
	require.True(t, serve.ready(leads))
}

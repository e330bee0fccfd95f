package manifests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
)

func TestBookinfo(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string][]string{
		"cluster-1": {"productpage-v1", "details-v1", "ratings-v1", "reviews-v1", "reviews-v2"},
		"cluster-2": {"ratings-v1", "reviews-v1", "reviews-v2", "reviews-v3"},
	} {
		data, err := manifests.Bookinfo(cluster)
		require.NoError(t, err)
		objects, err := kube.Decode(data)
		require.NoError(t, err)
		var deployments []string
		for _, obj := range objects {
			if obj.GetKind() == "Deployment" {
				deployments = append(deployments, obj.GetName())
			}
			if obj.GetKind() == "Service" {
				assert.Equal(t, obj.GetName(), obj.GetLabels()["service"])
				assert.Equal(t, obj.GetName(), obj.GetLabels()["app"])
			}
		}
		assert.Equal(t, want, deployments, cluster)
	}
	_, err := manifests.Bookinfo("cluster-3")
	require.ErrorContains(t, err, "not for cluster-3")
}

func TestPoliciesAreComplete(t *testing.T) {
	t.Parallel()
	var got []string
	for _, data := range [][]byte{manifests.VirtualMesh(), manifests.SharedVirtualMesh(), manifests.Policies()} {
		objects, err := kube.Decode(data)
		require.NoError(t, err)
		for _, obj := range objects {
			got = append(got, obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName())
		}
	}
	assert.Equal(t, []string{
		"VirtualMesh gloo-mesh/virtual-mesh", "VirtualMesh gloo-mesh/virtual-mesh", "TrafficPolicy gloo-mesh/reviews-shift",
		"AccessPolicy gloo-mesh/productpage", "AccessPolicy gloo-mesh/reviews",
	}, got)
}

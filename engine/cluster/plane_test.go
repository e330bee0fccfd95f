package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/meshctl/meshctl/engine/cluster"
)

func system(uid string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(uid)}}
}

func TestPlaneIDIsMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	ctx, here := t.Context(), fake.NewClientset(system("1"))
	before, err := cluster.PlaneID(ctx, here, "mesh")
	require.NoError(t, err)
	_, err = here.CoreV1().ConfigMaps("mesh").Get(ctx, cluster.PlaneName, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "who reads stores nothing")

	kept, err := cluster.KeepPlaneID(ctx, here, "mesh")
	require.NoError(t, err)
	assert.Equal(t, before, kept)
	stored, err := here.CoreV1().ConfigMaps("mesh").Get(ctx, cluster.PlaneName, metav1.GetOptions{})
	require.NoError(t, err)
	other, err := cluster.KeepPlaneID(ctx, here, "another")
	require.NoError(t, err)
	assert.NotEqual(t, kept, other, "another namespace is another management plane")

	// Restored in another cluster, it is the same; what was not restored is another one.
	moved := fake.NewClientset(system("2"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mesh", Name: cluster.PlaneName}, Data: stored.Data})
	same, err := cluster.KeepPlaneID(ctx, moved, "mesh")
	require.NoError(t, err)
	assert.Equal(t, kept, same)
	elsewhere, err := cluster.KeepPlaneID(ctx, fake.NewClientset(system("2")), "mesh")
	require.NoError(t, err)
	assert.NotEqual(t, kept, elsewhere)
}

func TestPlaneIDErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, id := range []string{"", "not a label", "-x"} {
		broken := fake.NewClientset(system("1"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mesh", Name: cluster.PlaneName}, Data: map[string]string{"id": id}})
		_, err := cluster.KeepPlaneID(ctx, broken, "mesh")
		require.ErrorContains(t, err, "ConfigMap mesh/meshctl-identity: its key id is no identity", id)
	}
	_, err := cluster.PlaneID(ctx, fake.NewClientset(), "mesh")
	require.ErrorContains(t, err, "namespace kube-system: ")

	// Without the namespace there is nowhere to store it.
	lost := fake.NewClientset(system("1"))
	missing := apierrors.NewNotFound(corev1.Resource("namespaces"), "mesh")
	lost.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, missing })
	id, err := cluster.KeepPlaneID(ctx, lost, "mesh")
	require.NoError(t, err)
	assert.NotEmpty(t, id)

	refused := fake.NewClientset(system("1"))
	refused.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), cluster.PlaneName, nil)
	})
	_, err = cluster.KeepPlaneID(ctx, refused, "mesh")
	require.ErrorContains(t, err, "allow meshctl to create it")
}

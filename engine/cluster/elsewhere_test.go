package cluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestDeregisterLooksAtOtherClusters(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	installTranslatedTypes(t, management)
	installTranslatedTypes(t, remote)
	options := cluster.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err := cluster.Register(t.Context(), cluster.Options{Name: "cluster-1", RemoteConfig: management, MgmtConfig: management})
	require.NoError(t, err)
	ours := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-1"}
	put(t, management, snapshot.ServiceEntry, "gloo-mesh", "reviews", ours, map[string]string{snapshot.FederationAnnotation: "reviews.bookinfo.cluster-2"})
	put(t, management, snapshot.ServiceEntry, "gloo-mesh", "ratings", ours, map[string]string{snapshot.FederationAnnotation: "ratings.bookinfo.cluster-3"})
	deregister := cluster.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, ServeWait: time.Second}

	// Nobody collects: it is said at once.
	_, err = cluster.Register(t.Context(), options)
	require.NoError(t, err)
	report, err := cluster.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "objects in other clusters that still lead to this one: 1; no `meshctl serve` holds the Lease gloo-mesh/meshctl")

	// Somebody should and does not: it is waited for, not forever.
	holder, seconds, now := "serve-0", int32(3600), metav1.NowMicro()
	_, err = clientsetFor(t, management).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	finishNamespaces(t, remote)
	_, err = cluster.Register(t.Context(), options)
	require.NoError(t, err)
	report, err = cluster.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "objects in other clusters that still lead to this one after 1s: 1")

	// Somebody does: the end is clean.
	finishNamespaces(t, remote)
	_, err = cluster.Register(t.Context(), options)
	require.NoError(t, err)
	collected := make(chan error, 1)
	go func() { collected <- collectWhenForgotten(t.Context(), t, options) }()
	deregister.ServeWait = waittest.Limit
	report, err = cluster.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	require.NoError(t, <-collected)
	assert.Empty(t, report.Notes)
}

// collectWhenForgotten plays a serve that notices that a cluster is gone.
func collectWhenForgotten(ctx context.Context, t *testing.T, options cluster.Options) error {
	t.Helper()
	client, err := dynamic.NewForConfig(options.MgmtConfig)
	if err != nil {
		return err
	}
	clusters := client.Resource(gvr(snapshot.KubernetesCluster)).Namespace("gloo-mesh")
	for ctx.Err() == nil {
		if _, err := clusters.Get(ctx, options.Name, metav1.GetOptions{}); err != nil {
			return client.Resource(gvr(snapshot.ServiceEntry)).Namespace("gloo-mesh").Delete(ctx, "reviews", metav1.DeleteOptions{})
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

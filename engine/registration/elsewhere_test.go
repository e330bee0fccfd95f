package registration_test

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

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestDeregisterLooksAtOtherClusters(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	installTranslatedTypes(t, management)
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err := registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: management, MgmtConfig: management})
	require.NoError(t, err)
	ours := map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-1"}
	put(t, management, snapshot.ServiceEntry, "gloo-mesh", "reviews", ours, map[string]string{snapshot.FederationAnnotation: "reviews.bookinfo.cluster-2"})
	put(t, management, snapshot.ServiceEntry, "gloo-mesh", "ratings", ours, map[string]string{snapshot.FederationAnnotation: "ratings.bookinfo.cluster-3"})
	deregister := registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, ServeWait: time.Second}

	// Nobody collects: it is said at once.
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	report, err := registration.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "objects in other clusters that still refer to this one: 1; no `meshctl serve` holds the Lease gloo-mesh/meshctl")

	// Somebody should and does not: it is waited for, not forever.
	holder, seconds, now := "serve-0", int32(3600), metav1.NowMicro()
	_, err = sandboxtest.Clientset(t, management).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	finishNamespaces(t, remote)
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	report, err = registration.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "objects in other clusters that still refer to this one after 1s: 1")

	// Somebody does: the end is clean.
	finishNamespaces(t, remote)
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	collected := make(chan error, 1)
	go func() { collected <- collectWhenForgotten(t.Context(), t, options) }()
	deregister.ServeWait = waittest.Limit()
	report, err = registration.Deregister(t.Context(), deregister)
	require.NoError(t, err)
	require.NoError(t, <-collected)
	assert.Empty(t, report.Notes)
}

// collectWhenForgotten plays a serve that notices that a cluster is gone.
func collectWhenForgotten(ctx context.Context, t *testing.T, options registration.Options) error {
	t.Helper()
	client, err := dynamic.NewForConfig(options.MgmtConfig)
	if err != nil {
		return err
	}
	clusters := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh")
	for ctx.Err() == nil {
		if _, err := clusters.Get(ctx, options.Name, metav1.GetOptions{}); err != nil {
			return client.Resource(snapshot.ServiceEntry.GroupVersionResource()).Namespace("gloo-mesh").Delete(ctx, "reviews", metav1.DeleteOptions{})
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

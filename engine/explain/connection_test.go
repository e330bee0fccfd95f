package explain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// byAgent is bookinfo as it is read where cluster-2 cannot be: its agent speaks to the server, which has stored a state.
func byAgent(t *testing.T, state multiclusterv1alpha1.ClusterState, c *multiclusterv1alpha1.Connection) *explain.Index {
	t.Helper()
	in := *load(t, "bookinfo")
	in.Clusters = slices.Clone(in.Clusters)
	for i, each := range in.Clusters {
		if each.Name == "cluster-2" {
			away := *each
			away.Sync, away.Reason = snapshot.Stale, "only its agent reaches it"
			in.Clusters[i] = &away
		}
	}
	status := multiclusterv1alpha1.ClusterStatus{State: state}
	if state != multiclusterv1alpha1.ClusterStateAccepted {
		status.Reasons = []multiclusterv1alpha1.ClusterReason{{Code: string(snapshot.ClusterFrozen), What: "its agent has no connection: closed"}}
	}
	out, err := in.With("", &multiclusterv1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "cluster-2"},
		Status:     multiclusterv1alpha1.KubernetesClusterStatus{Status: []multiclusterv1alpha1.ClusterStatus{status}, Connection: c},
	})
	require.NoError(t, err)
	return explain.NewLive(engine.Translate(out))
}

// TestOnlyByAgent: a cluster that only its agent reaches is as the server says, and not unreachable because it cannot be read from here;
// what is not known from here is named.
func TestOnlyByAgent(t *testing.T) {
	t.Parallel()
	at := &metav1.Time{Time: time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)}
	connected := &multiclusterv1alpha1.Connection{
		Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateConnected, Since: at, AgentVersion: "v1.4.0", CertificateExpires: at, Objects: 7,
	}
	x := byAgent(t, multiclusterv1alpha1.ClusterStateAccepted, connected)
	cluster := describe[*explain.Cluster](t, x, snapshot.KubernetesCluster, "cluster-2")
	assert.Equal(t, snapshot.Healthy, cluster.Health)
	assert.Equal(t, connected, cluster.Connection)
	assert.Contains(t, cluster.Page().Sections[0].Rows, []string{"State", "connected since 2026-01-01T11:00:00Z"})
	assert.NotContains(t, codes(x.Issues()), snapshot.ClusterFrozen)
	assert.Equal(t, "cluster-2 was not read: it is reached via relay, and its agent speaks to meshctl serve only; what that has stored is used, without what users wrote there", x.NotRead("cluster-2"))
	assert.Empty(t, x.NotRead("cluster-1"))

	table := x.Tables(nil).Clusters()
	titles := make([]string, 0, len(table.Columns))
	for _, c := range table.Columns {
		titles = append(titles, c.Title)
	}
	via := slices.Index(titles, "VIA")
	require.Positive(t, via, titles)
	assert.Equal(t, []string{"direct", "", "", "", "", "", ""}, table.Rows[0].Cells[via:via+7])
	assert.Equal(t, []string{"relay", "connected", "2026-01-01T11:00:00Z", "", "", "v1.4.0", "2026-01-01T11:00:00Z"}, table.Rows[1].Cells[via:via+7])

	t.Log("away")
	lost := *connected
	lost.State, lost.Reason = multiclusterv1alpha1.ConnectionStateLost, &multiclusterv1alpha1.ClusterReason{Code: string(snapshot.RelayAbsent), What: "its agent has no connection: closed"}
	x = byAgent(t, multiclusterv1alpha1.ClusterStateFailed, &lost)
	cluster = describe[*explain.Cluster](t, x, snapshot.KubernetesCluster, "cluster-2")
	assert.Equal(t, snapshot.HealthUnreachable, cluster.Health)
	assert.Equal(t, "its agent has no connection: closed", cluster.Reason)
	assert.Contains(t, codes(x.Issues()), snapshot.ClusterFrozen)

	t.Log("all are dialled")
	for _, c := range explain.NewLive(engine.Translate(load(t, "bookinfo"))).Tables(nil).Clusters().Columns {
		assert.NotEqual(t, "VIA", c.Title)
	}
}

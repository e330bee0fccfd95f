package status

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatIsNotedOfAClusterIsNoFailure: another management plane, objects that wait, and an old agent are all told of a cluster that works.
func TestWhatIsNotedOfAClusterIsNoFailure(t *testing.T) {
	t.Parallel()
	ref := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "gloo-mesh", Name: "cluster-1"}
	in := &snapshot.Input{
		Management: &snapshot.Management{KubernetesClusters: []*multiclusterv1alpha1.KubernetesCluster{{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}}},
		Clusters:   []*snapshot.Cluster{{Name: "cluster-1", Sync: snapshot.Synced}},
	}
	for _, code := range []snapshot.Code{snapshot.AnotherPlane, snapshot.ObjectsWait, snapshot.VersionSkew} {
		in.Failures = append(in.Failures, snapshot.Failure{Ref: ref, Reason: snapshot.Reason{Code: code, What: "this is " + string(code)}})
	}
	var statuses clusterStatuses
	assert.True(t, statuses.update(in))
	assert.False(t, statuses.update(in), "nothing has changed")
	got := statuses.made[0].Value.(*multiclusterv1alpha1.KubernetesClusterStatus).Status[0]
	assert.Equal(t, multiclusterv1alpha1.ClusterStateAccepted, got.State)
	assert.Equal(t, "this is AnotherPlane; this is ObjectsWait; this is VersionSkew", got.Message)
	assert.Len(t, got.Reasons, 3)
}

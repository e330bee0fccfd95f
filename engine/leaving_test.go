package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAClusterThatLeaves: nothing is wanted there, and others have what they have without it; but it may be written to, as long as it can be
// read. Its mark counts in the namespace of the management plane only.
func TestAClusterThatLeaves(t *testing.T) {
	t.Parallel()
	stays := enginetest.World(enginetest.Size{Services: 3, Clusters: 3, FederateEvery: 1, Policies: 2})
	const leaver = "cluster-02"
	require.NotNil(t, stays.Cluster(leaver))
	marked := func(namespace string) *snapshot.Input {
		in, management := *stays, *stays.Management
		management.KubernetesClusters = append(management.KubernetesClusters[:0:0], &multiclusterv1alpha1.KubernetesCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: leaver, Annotations: map[string]string{snapshot.LeavingAnnotation: time.Unix(0, 0).Format(time.RFC3339)}},
		})
		in.Management = &management
		return &in
	}
	objects := func(in *snapshot.Input) map[string]map[string]any {
		out := map[string]map[string]any{}
		for o := range engine.Translate(in).Output.Objects {
			if out[o.Ref.Cluster] == nil {
				out[o.Ref.Cluster] = map[string]any{}
			}
			out[o.Ref.Cluster][o.Ref.String()] = o.Content.Spec
		}
		return out
	}
	before := objects(stays)
	require.NotEmpty(t, before[leaver])
	assert.Equal(t, before, objects(marked("elsewhere")))

	leaving := marked(stays.Management.Namespace)
	got := objects(leaving)
	assert.Empty(t, got[leaver])
	assert.NotEmpty(t, got["cluster-01"])
	assert.Equal(t, objects(stays.WithoutCluster(leaver)), got)
	translator := engine.New(engine.Options{})
	translator.Translate(stays)
	out := translator.Translate(leaving).Output
	assert.Contains(t, out.Clusters, leaver)
	assert.Empty(t, out.Frozen)
	assert.Equal(t, engine.Translate(leaving).Output.Issues, out.Issues, "with a memo")

	away := *leaving.Cluster(leaver)
	away.Sync = snapshot.Stale
	unread := *leaving
	unread.Clusters = nil
	for _, c := range leaving.Clusters {
		if c.Name == leaver {
			c = &away
		}
		unread.Clusters = append(unread.Clusters, c)
	}
	assert.Equal(t, []string{leaver}, engine.Translate(&unread).Output.Frozen)
	assert.Equal(t, got, objects(&unread), "others do not wait for it")
}

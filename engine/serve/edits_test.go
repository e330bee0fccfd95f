package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestUsersEditPoliciesInClusters: an edit in a registered cluster explains what goes because of it, unless it is not known whether
// anybody made it.
func TestUsersEditPoliciesInClusters(t *testing.T) {
	t.Parallel()
	input := func(sync snapshot.Sync, policies ...*networkingv1.AccessPolicy) *snapshot.Input {
		return &snapshot.Input{Management: &snapshot.Management{Namespace: "gloo-mesh"}, Clusters: []*snapshot.Cluster{{Name: "east", Sync: sync, AccessPolicies: policies}}}
	}
	policy := func(name string, generation int64) *networkingv1.AccessPolicy {
		return &networkingv1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Generation: generation}}
	}
	ref := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.AccessPolicy, Cluster: "east", Namespace: "shop", Name: name}
	}
	a, b := policy("a", 1), policy("b", 1)
	for name, c := range map[string]struct {
		before, now *snapshot.Input
		edited      map[snapshot.Ref]bool
	}{
		"nothing":             {input(snapshot.Synced, a, b), input(snapshot.Synced, a, b), map[snapshot.Ref]bool{}},
		"one edited":          {input(snapshot.Synced, a, b), input(snapshot.Synced, policy("a", 2), b), map[snapshot.Ref]bool{ref("a"): true}},
		"one deleted":         {input(snapshot.Synced, a, b), input(snapshot.Synced, b), map[snapshot.Ref]bool{ref("a"): true}},
		"the last deleted":    {input(snapshot.Synced, a), input(snapshot.Synced), map[snapshot.Ref]bool{ref("a"): true}},
		"all gone at once":    {input(snapshot.Synced, a, b), input(snapshot.Synced), map[snapshot.Ref]bool{}},
		"the cluster is away": {input(snapshot.Synced, a, b), input(snapshot.Stale, a), map[snapshot.Ref]bool{}},
	} {
		assert.Equal(t, c.edited, userChanges(c.before, c.now), name)
	}
}

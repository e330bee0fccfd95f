package inventory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// services are the Services of the clusters east and west, in namespaces of a hundred.
func services(n int) *Inventory {
	found := &snapshot.Discovered{}
	for _, cluster := range []string{"east", "west"} {
		for i := range n {
			ref := commonv1.ClusterObjectRef{Name: fmt.Sprintf("service-%05d", i), Namespace: fmt.Sprintf("team-%03d", i/100), ClusterName: cluster}
			found.Destinations = append(found.Destinations, &discoveryv1.Destination{
				ObjectMeta: metav1.ObjectMeta{Name: ref.Name + "-" + ref.Namespace + "-" + cluster, Namespace: snapshot.DefaultNamespace},
				Spec:       discoveryv1.DestinationSpec{KubeService: &discoveryv1.KubeService{Ref: ref}},
			})
		}
	}
	return New([]*snapshot.Discovered{found}, nil)
}

// TestNearest: a name in the same place that is written nearly alike comes before the same name elsewhere.
func TestNearest(t *testing.T) {
	t.Parallel()
	inv := services(200)
	for missing, want := range map[commonv1.ClusterObjectRef]string{
		{Name: "servcie-00007", Namespace: "team-000", ClusterName: "east"}: "service-00007",
		{Name: "service-0010", Namespace: "team-001", ClusterName: "west"}:  "service-00100",
		{Name: "service-00107", Namespace: "other", ClusterName: "east"}:    "service-00107.team-001.east",
		{Name: "service-00007", Namespace: "team-000", ClusterName: "none"}: "service-00007.team-000.east",
		{Name: "service-00007", Namespace: "other", ClusterName: "none"}:    "",
		{Name: "reviews", Namespace: "team-000", ClusterName: "east"}:       "",
	} {
		assert.Equal(t, want, inv.nearest(missing), "%v", missing)
	}
}

func BenchmarkNotDiscovered(b *testing.B) {
	inv := services(5000)
	for name, ref := range map[string]commonv1.ClusterObjectRef{
		"misspelt":  {Name: "servcie-00007", Namespace: "team-000", ClusterName: "east"},
		"elsewhere": {Name: "service-00007", Namespace: "team-000", ClusterName: "none"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = inv.NotDiscovered("field", ref, "correct the reference")
			}
		})
	}
}

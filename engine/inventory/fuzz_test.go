package inventory

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// someServices are two services in two namespaces of two clusters, and one that
// is outside all clusters.
func someServices() *Inventory {
	found := &snapshot.Discovered{}
	for _, cluster := range []string{"a", "b"} {
		for _, namespace := range []string{"n", "m"} {
			for _, name := range []string{"x", "y"} {
				found.Destinations = append(found.Destinations, &discoveryv1.Destination{
					ObjectMeta: metav1.ObjectMeta{Name: name + "-" + namespace + "-" + cluster, Namespace: snapshot.DefaultNamespace},
					Spec: discoveryv1.DestinationSpec{KubeService: &discoveryv1.KubeService{
						Ref:    commonv1.ClusterObjectRef{Name: name, Namespace: namespace, ClusterName: cluster},
						Labels: map[string]string{"app": name},
					}},
				})
			}
		}
	}
	found.Destinations = append(found.Destinations, &discoveryv1.Destination{
		ObjectMeta: metav1.ObjectMeta{Name: "z", Namespace: snapshot.DefaultNamespace},
		Spec:       discoveryv1.DestinationSpec{ExternalService: &discoveryv1.ExternalService{Name: "z"}},
	})
	return New([]*snapshot.Discovered{found}, nil)
}

// FuzzSelectors: what a list of selectors selects is what its elements select,
// one Destination at a time; each reference is either found or missing.
func FuzzSelectors(f *testing.F) {
	inv := someServices()
	f.Fuzz(func(t *testing.T, data []byte) {
		var selectors []commonv1.DestinationSelector
		if json.Unmarshal(data, &selectors) != nil {
			return
		}
		selected, missing := inv.SelectDestinations(selectors)
		require.True(t, slices.IsSorted(selected))
		require.Len(t, slices.Compact(slices.Clone(selected)), len(selected), "one twice")
		for i, d := range inv.Destinations {
			require.Equal(t, SelectsDestination(selectors, d), slices.Contains(selected, i), d.Name)
			for _, s := range selectors {
				if SelectsDestination([]commonv1.DestinationSelector{s}, d) {
					require.Contains(t, selected, i, "one of several selectors is enough")
				}
			}
		}
		for _, ref := range missing {
			_, found := inv.IndexOfService(ref)
			require.False(t, found, ServiceName(ref))
		}
		slices.Reverse(selectors)
		again, _ := inv.SelectDestinations(selectors)
		require.Equal(t, selected, again, "order does not matter")
	})
}

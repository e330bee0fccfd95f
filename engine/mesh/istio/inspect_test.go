package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestNoLabelHidesAnObject: whoever may write an object may also label it as he likes.
// Only what would be collected as garbage if it were not ours is left out.
func TestNoLabelHidesAnObject(t *testing.T) {
	t.Parallel()
	owner, at, plane := snapshot.NetworkingOwnerLabel, snapshot.ClusterLabel, snapshot.PlaneLabel
	for name, c := range map[string]struct {
		labels map[string]string
		hidden bool
	}{
		"no labels":              {nil, false},
		"ours":                   {map[string]string{owner: "mgmt", at: "west"}, true},
		"ours, marked":           {map[string]string{owner: "mgmt", at: "west", plane: "p1"}, true},
		"another plane's":        {map[string]string{owner: "mgmt", at: "west", plane: "p2"}, false},
		"a plane without a name": {map[string]string{owner: "mgmt", at: "west", plane: ""}, false},
		"another owner":          {map[string]string{owner: "another", at: "west"}, false},
		"no owner's name":        {map[string]string{owner: "", at: "west"}, false},
		"our name, no cluster":   {map[string]string{owner: "mgmt"}, false},
		"our name, another one":  {map[string]string{owner: "mgmt", at: "east"}, false},
		"only the cluster":       {map[string]string{at: "west"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: c.labels}
			hosts := []string{"a.example"}
			hand, ok := inspect(&snapshot.Cluster{Name: "west", OfMeshes: snapshot.ObjectsOfMeshes{
				snapshot.VirtualService:      {&istionetworkingv1.VirtualService{ObjectMeta: meta, Spec: networking.VirtualService{Hosts: hosts}}},
				snapshot.DestinationRule:     {&istionetworkingv1.DestinationRule{ObjectMeta: meta, Spec: networking.DestinationRule{Host: hosts[0]}}},
				snapshot.ServiceEntry:        {&istionetworkingv1.ServiceEntry{ObjectMeta: meta, Spec: networking.ServiceEntry{Hosts: hosts}}},
				snapshot.AuthorizationPolicy: {&istiosecurityv1.AuthorizationPolicy{ObjectMeta: meta}},
				snapshot.Sidecar:             {&istionetworkingv1.Sidecar{ObjectMeta: meta}},
			}}, snapshot.Plane{Namespace: "mgmt", ID: "p1"}).(*handWritten)
			assert.True(t, ok)
			assert.Equal(t, c.hidden, hand.Empty())
			seen := len(hand.virtualServices.matching(hosts[0])) + len(hand.destinationRules.matching(hosts[0])) + len(hand.serviceEntries.named(hosts[0])) +
				len(hand.authorizationPolicies["shop"]) + len(hand.sidecars["shop"])
			assert.Equal(t, map[bool]int{true: 0, false: 5}[c.hidden], seen)
		})
	}
}

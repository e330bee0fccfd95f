package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTargetOfTwoKinds: a target that names a VirtualDestination and a service is the
// VirtualDestination, and ends nothing.
func TestTargetOfTwoKinds(t *testing.T) {
	t.Parallel()
	in := enginetest.World(enginetest.Size{Services: 2, Clusters: 1, FederateEvery: 1})
	v := &enterprisev1beta1.VirtualDestination{ObjectMeta: metav1.ObjectMeta{Name: "virtual", Namespace: snapshot.DefaultNamespace}}
	v.Spec = enterprisev1beta1.VirtualDestinationSpec{
		Hostname: "virtual.global", Port: &enterprisev1beta1.VirtualDestinationPort{Number: 8080},
		VirtualMesh: &commonv1.ObjectRef{Name: "virtual-mesh", Namespace: snapshot.DefaultNamespace},
		Static: &enterprisev1beta1.StaticDestinations{Destinations: []enterprisev1beta1.BackingDestination{{
			KubeService: &commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: enginetest.Namespace(1), ClusterName: enginetest.Cluster(0)},
		}}},
	}
	in.Management.VirtualDestinations = []*enterprisev1beta1.VirtualDestination{v}
	p := enginetest.TrafficPolicy(0, 0, 0, time.Second)
	p.Spec.Policy.TrafficShift.Destinations = []networkingv1.WeightedDestination{{
		KubeService:        &networkingv1.KubeDestination{Name: enginetest.Service(1), Namespace: enginetest.Namespace(1), ClusterName: enginetest.Cluster(0)},
		VirtualDestination: &networkingv1.VirtualDestinationRef{Name: v.Name, Namespace: v.Namespace},
	}}
	in.Management.TrafficPolicies = []*networkingv1.TrafficPolicy{p}

	found := false
	for d := range engine.Translate(in).Plan.Destinations.All() {
		if ref := d.Destination.Spec.KubeService.Ref; ref.Name == enginetest.Service(0) {
			found = true
			require.Equal(t, "virtual.global", d.Views[0].Routes[0].Action.Targets.Value[0].Host)
		}
	}
	require.True(t, found)
}

package osm

import (
	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// reads are the settings of meshes.
var reads = map[snapshot.Kind]func(snapshot.APIObject){
	snapshot.MeshConfig: func(o snapshot.APIObject) {
		if config, ok := o.(*osmconfigv1alpha2.MeshConfig); ok {
			stripMeshConfig(config)
		}
	},
}

// stripMeshConfig keeps which images a mesh injects, and whether it lets
// everybody call everybody.
func stripMeshConfig(o *osmconfigv1alpha2.MeshConfig) {
	sidecar, traffic := o.Spec.Sidecar, o.Spec.Traffic
	*o = osmconfigv1alpha2.MeshConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Spec: osmconfigv1alpha2.MeshConfigSpec{
			Sidecar: osmconfigv1alpha2.SidecarSpec{
				EnvoyImage: sidecar.EnvoyImage, EnvoyWindowsImage: sidecar.EnvoyWindowsImage,
				InitContainerImage: sidecar.InitContainerImage,
			},
			Traffic: osmconfigv1alpha2.TrafficSpec{EnablePermissiveTrafficPolicyMode: traffic.EnablePermissiveTrafficPolicyMode},
		},
	}
}

package watch

import (
	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
)

// stripMeshConfig keeps which images a mesh injects, and whether it lets
// everybody call everybody.
func stripMeshConfig(o *osmconfigv1alpha2.MeshConfig) bool {
	sidecar, traffic := o.Spec.Sidecar, o.Spec.Traffic
	*o = osmconfigv1alpha2.MeshConfig{
		ObjectMeta: essential(o.ObjectMeta),
		Spec: osmconfigv1alpha2.MeshConfigSpec{
			Sidecar: osmconfigv1alpha2.SidecarSpec{
				EnvoyImage: sidecar.EnvoyImage, EnvoyWindowsImage: sidecar.EnvoyWindowsImage,
				InitContainerImage: sidecar.InitContainerImage,
			},
			Traffic: osmconfigv1alpha2.TrafficSpec{EnablePermissiveTrafficPolicyMode: traffic.EnablePermissiveTrafficPolicyMode},
		},
	}
	return true
}

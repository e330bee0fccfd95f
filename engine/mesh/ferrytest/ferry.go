// Package ferrytest is Ferry, a mesh that does not exist: all that the engine has to know of a kind of mesh, in one folder. It shows
// that nothing else must change for a new one, and is the shortest example of one. Tests put it into the list of meshes.
//
//   - detect.go finds its control planes and sidecars
//   - inspect.go reads what users wrote for it
//   - render.go turns a Plan into its objects
//
// It brings two kinds. A kind needs a row in the table of kinds (snapshot.Kind), and the table is closed; so Ferry has two of those of
// Open Service Mesh, which must not be in the same list of meshes.
package ferrytest

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The kinds of Ferry.
const (
	// Timetable is written by users, for the Service of the same name.
	Timetable = snapshot.MeshConfig
	// Crossing is what everything becomes.
	Crossing = snapshot.HTTPRouteGroup
)

// dialect says that Ferry can do everything.
var dialect = &snapshot.Dialect{
	Type: "linkerd", Name: "Ferry", SPIFFE: true,
	Fields: slices.Concat(
		snapshot.Declare(snapshot.TrafficPolicy, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.AccessPolicy, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.VirtualMesh, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.VirtualDestination, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.ServiceDependency, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.Settings, snapshot.Enforced, "", ""),
	),
	Describe: func(plan *snapshot.MeshPlan) {
		plan.TrustDomain, plan.DNS.ResolvesAll = plan.Mesh.Spec.Linkerd.ClusterDomain, true
	},
	Principal: func(trustDomain, _, account string) string { return trustDomain + "/" + account },
	CA: &snapshot.ControlPlaneCA{
		Secret: "ferry-ca", ConfigMap: "ferry-roots", Key: "roots.pem",
		Account: func(*discoveryv1.MeshSpec) string { return "ferry-control" },
	},
	Inspect: inspect, Reads: map[snapshot.Kind]func(snapshot.APIObject){Timetable: strip}, Egress: Crossing,
}

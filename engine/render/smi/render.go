// Package smi turns a Plan into the objects of the Service Mesh Interface, in
// the versions that Open Service Mesh 1.2 reads: TrafficSplit, TrafficTarget,
// HTTPRouteGroup and TCPRoute.
package smi

import (
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Destination renders what follows from the plan of one service. Namespace is
// the management plane's, the value of owner labels. The objects are ascending
// by Ref.
func Destination(*snapshot.DestinationPlan, string) []*snapshot.Object { return nil }

// Mesh renders what follows from the plan of one mesh: nothing, since SMI has
// no objects for a mesh as a whole.
func Mesh(*snapshot.MeshPlan, string) []*snapshot.Object { return nil }

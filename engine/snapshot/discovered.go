package snapshot

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Discovered is what discovery finds in one cluster: the objects to write on the
// management plane, without status, each list ascending by name.
type Discovered struct {
	Cluster      string
	Meshes       []*discoveryv1.Mesh
	Workloads    []*discoveryv1.Workload
	Destinations []*discoveryv1.Destination
	Issues       []Issue
}

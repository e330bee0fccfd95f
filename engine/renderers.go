package engine

import (
	"github.com/meshctl/meshctl/engine/render/istio"
	"github.com/meshctl/meshctl/engine/render/smi"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// renderer turns plans into the objects of one kind of mesh.
type renderer struct {
	dialect     *snapshot.Dialect
	destination func(*snapshot.DestinationPlan, string) []*snapshot.Object
	mesh        func(*snapshot.MeshPlan, string) []*snapshot.Object
	// external is nil where routes cannot leave the mesh, and filters where
	// proxies have all filters that routes need.
	external func(*snapshot.ExternalPlan, string) []*snapshot.Object
	filters  func(*snapshot.FilterPlan, string) []*snapshot.Object
}

// renderers lists the kinds of mesh there are; a new one is a line here.
func renderers() []renderer {
	return []renderer{
		{dialect: istio.Dialect(), destination: istio.Destination, mesh: istio.Mesh, external: istio.External, filters: istio.Filters},
		{dialect: smi.Dialect(), destination: smi.Destination, mesh: smi.Mesh},
	}
}

// Dialects are what each kind of mesh can express, as its renderer declares it.
func Dialects() []*snapshot.Dialect {
	var out []*snapshot.Dialect
	for _, r := range renderers() {
		out = append(out, r.dialect)
	}
	return out
}

// rendererOf finds the renderer for a mesh; one that renders nothing for a mesh
// that nobody knows.
func rendererOf(all []renderer, mesh *snapshot.MeshPlan) renderer {
	if mesh != nil {
		for _, r := range all {
			if r.dialect.Speaks(&mesh.Mesh.Spec) {
				return r
			}
		}
	}
	return renderer{
		destination: func(*snapshot.DestinationPlan, string) []*snapshot.Object { return nil },
		mesh:        func(*snapshot.MeshPlan, string) []*snapshot.Object { return nil },
	}
}

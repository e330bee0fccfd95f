package policy

import "github.com/meshctl/meshctl/engine/snapshot"

// speak gives each mesh what follows from the kind of mesh it is.
func (g *Groups) speak(dialects []*snapshot.Dialect) *Groups {
	for _, mesh := range g.Meshes {
		if d := dialectOf(dialects, mesh); d != nil {
			mesh.ByAccount = d.ByAccount
		}
	}
	return g
}

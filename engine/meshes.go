package engine

import (
	"slices"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/mesh/osm"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Mesh is all that the engine knows about one kind of mesh: how it is detected, and what is rendered for it. The dialect of its
// renderer also says what users write for it, and how that is inspected.
type Mesh struct {
	Detector discovery.Detector
	Renderer render.Renderer
}

// Meshes lists the kinds of mesh there are. A new one is a line here.
func Meshes() []Mesh {
	return []Mesh{
		{istio.Detector(), istio.Renderer{}},
		{osm.Detector(), osm.Renderer{}},
	}
}

// Dialects are what each kind of mesh supports, as its renderer declares it.
func Dialects() []*snapshot.Dialect { return dialects(Meshes()) }

func dialects(meshes []Mesh) []*snapshot.Dialect {
	out := make([]*snapshot.Dialect, 0, len(meshes))
	for _, m := range meshes {
		out = append(out, m.Renderer.Dialect())
	}
	return out
}

// Detectors are how each kind of mesh is found, and what is read for that.
func Detectors() discovery.Detectors { return detectors(Meshes()) }

// ReadableNames are those of the only objects of a kind that may be read in all namespaces of a registered cluster; nil for all.
func ReadableNames(kind snapshot.Kind) []string {
	if kind == snapshot.ConfigMap {
		return Detectors().ConfigMapNames()
	}
	return nil
}

func detectors(meshes []Mesh) discovery.Detectors {
	out := make(discovery.Detectors, 0, len(meshes))
	for _, m := range meshes {
		out = append(out, m.Detector)
	}
	return out
}

// Widen is that of the renderer of a kind of object: what to write while proxies use what after has not.
func Widen(kind snapshot.Kind, before, after any) any {
	for _, m := range Meshes() {
		if wide := m.Renderer.Widen(kind, before, after); wide != nil {
			return wide
		}
	}
	return nil
}

// unknown renders nothing for meshes of unknown kinds.
type unknown struct{ render.Nothing }

func (unknown) Dialect() *snapshot.Dialect { return nil }

// rendererOf finds the renderer for a mesh, which may be nil.
func (c *partCache) rendererOf(mesh *snapshot.MeshPlan) render.Renderer {
	if mesh != nil {
		for _, m := range c.kinds {
			if m.Renderer.Dialect() == mesh.Dialect {
				return m.Renderer
			}
		}
	}
	return unknown{}
}

// renderAll collects the objects of all renderers, ascending by Ref.
func (c *partCache) renderAll(objects func(render.Renderer) []*snapshot.Object) []*snapshot.Object {
	var out []*snapshot.Object
	for _, m := range c.kinds {
		out = append(out, objects(m.Renderer)...)
	}
	slices.SortFunc(out, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	return out
}

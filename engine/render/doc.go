// Package render has what the renderers of all kinds of mesh share. A renderer turns
// plans into the objects of one kind of mesh.
//
//	renderer.go  the interface of a renderer, and Nothing, which renderers embed
//	content.go   the labels and annotations of every generated object
//
// To add a kind of mesh, write a package beside engine/mesh/istio and engine/mesh/osm with a
// detector (discovery.Detector), a renderer, and a Dialect that declares which fields the mesh
// supports (snapshot.Support) and inspects what users wrote for it. Then add a line to
// engine/meshes.go. engine/mesh/ferrytest is a complete one.
package render

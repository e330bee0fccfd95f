// Package helper builds the one binary that plays every process of a demo's
// clusters: the module in demo/sandbox. For tests it also builds the one that
// plays Open Service Mesh, from demo/osm.
//
// Their dependencies are those of Kubernetes, etcd and Istio together, or others
// that do not go with these, so each is a module of its own, and is built on the
// machine that needs it. Their sources travel in meshctl as text archives,
// because go:embed does not reach into another module; `go run
// ./demo/helper/pack` writes the archives anew, and a test fails when that was
// forgotten.
package helper

//go:generate go run ./pack

// Package helper builds the binary that runs as every process of a demo's
// clusters, from the module in demo/sandbox. For tests it also builds the one of
// Open Service Mesh, from demo/osm.
//
// Their dependencies, such as those of Kubernetes, etcd and Istio together, do
// not fit into one go.mod. So each is a module of its own, and is built on the
// machine that needs it. meshctl embeds their sources as text archives: another
// module cannot be embedded itself. `go run ./demo/helper/pack` writes the
// archives, and a test fails if they are outdated.
package helper

//go:generate go run ./pack

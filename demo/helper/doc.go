// Package helper builds the one binary that plays every process of a demo's
// clusters: the module in demo/sandbox.
//
// Its dependencies are those of Kubernetes, etcd and Istio together, so it is a
// module of its own, and it is built on the machine that needs it. Its sources
// travel in meshctl as one text archive, because go:embed does not reach into
// another module; `go run ./demo/helper/pack` writes the archive anew, and a
// test fails when that was forgotten.
package helper

//go:generate go run ./pack

// Package mirror is what exists in a cluster of the kinds that the management plane writes: a digest an object, kept up to date
// by watches. Who writes there, or compares what was written, has a Link.
//
//	mirror.go   the Mirror: what exists, and whether that is all
//	link.go     the Link to a cluster: connections that work, fail, and replace each other
//	wire.go     decoding objects to digests; project.go selects our fields
//	digest.go   digests, by which objects are compared
package mirror

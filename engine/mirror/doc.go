// Package mirror is what exists in a cluster of the kinds that the management plane writes: a digest an object, kept up to date
// by who reads the cluster (package watch). Who writes there, or compares what was written, has a Link.
//
//	mirror.go   the Mirror: what exists, and whether that is all
//	link.go     the Link to a cluster: which connection is in use, and whether it gets answers
//	wire.go     decoding objects to digests; project.go selects our fields
//	digest.go   digests, by which objects are compared
//	transitions.go  since when the conditions of a status are as they are
package mirror

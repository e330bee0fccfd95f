// Package watch is a Source: it watches the management cluster and every
// registered cluster, and returns what it sees as immutable snapshot.Inputs.
//
// Each kind of each cluster has a feed: a client-go reflector in front of a store
// that keeps objects stripped to what the engine reads. A change that stripping
// removes notifies nobody, and a relist keeps the pointers of unchanged objects.
//
// A session watches one cluster with one credential: it waits until the API server
// is ready, reads everything, watches, and when the server stops answering it
// freezes the lists and starts again. A new credential gets a session of its own,
// which replaces the old one only when it has read everything. No cluster waits
// for another.
//
//	source.go   the Source: its options, and the clusters it watches
//	start.go    what the first Input waits for; missing CRDs
//	input.go    building an Input that shares what did not change
//	cluster.go  the state of a registered cluster
//	session.go  watching one cluster with one credential
//	cache.go    all feeds of a cluster
//	kinds.go    which kinds are watched, and which objects of them
//	feed.go     one kind of one cluster
//	store.go    the objects of a feed
//	echo.go     what was read of our own writes stays
//	broken.go   objects that cannot be processed
//	decode.go   decoding objects one by one
//	strip*.go   removing what the engine does not read
//	once.go     reading the management cluster once
package watch

// Package watch is a Source: it watches the management cluster and every
// registered cluster, and returns what it sees as immutable snapshot.Inputs.
//
// Each kind of each cluster has one feed: a client-go reflector in front of a store
// that keeps objects stripped to what the engine reads. A change that stripping
// removes notifies nobody, and a relist keeps the pointers of unchanged objects. Of the kinds that
// the management plane writes, the same feed keeps the mirror (package mirror) up to date, and what the
// plane generated is in the mirror only: who writes or compares follows the Link of the cluster, and
// neither connects nor lists by itself.
//
// A session watches one cluster with one credential: it waits until the API server
// is ready, reads everything, watches, and when the server stops answering it
// freezes the lists and starts again. A new credential gets a session of its own,
// which replaces the old one only when it has read everything; writers change with it. No cluster waits
// for another. A kind that may be written and not listed stays as it was, and nothing of it is written; the
// cluster goes on.
//
// A watch that is open and delivers nothing may have lost its server: what is between
// may answer pings. Without an event or a bookmark for 2.5 minutes (kube.DefaultSilence)
// it ends and the objects are listed, which is also right for servers that send no
// bookmarks. A kind of which nothing came at all for twice this time freezes the
// cluster. So what is known of a cluster that is not frozen is at most five minutes old,
// plus the pause between two probes. Freshness has the age.
//
// A registered cluster has bounds (kube.Bounds): its share of memory, and the changes that it
// may make. If it exceeds one, its requests fail for a time, as those of a cluster that does
// not answer, so it is frozen; then it is tried again, with longer and longer pauses.
//
//	source.go   the Source: its options, and the clusters it watches
//	start.go    what the first Input waits for; missing CRDs
//	roots.go    the root certificates, which package certs sets
//	input.go    building an Input that shares what did not change
//	cluster.go  a registered cluster: its state, and its link for those who write there
//	session.go  watching one cluster with one credential
//	fresh.go    how old what is known may be; watches that deliver nothing
//	cache.go    all feeds of a cluster
//	kinds.go    which kinds are watched, and which objects of them
//	configmaps.go  the ConfigMaps of control planes, by their names
//	feed.go     one kind of one cluster
//	mirrored.go one that the management plane writes: a list for the engine, and a mirror for writers
//	store.go    the objects of a feed
//	echo.go     what was read of our own writes stays
//	broken.go   objects that cannot be processed
//	decode.go   decoding objects one by one
//	strip*.go   removing what the engine does not read
//	once.go     reading the management cluster once
package watch

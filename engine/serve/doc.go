// Package serve is the running management plane: it connects the registry of
// clusters, the Source, the engine and the Sink, and reports its state.
//
//	registry ─▶ Source ─▶ loop: engine.Translate ─▶ Sink
//	               ▲                               │
//	               └────── failed writes ──────────┘
//
// The loop waits for a change, calls the engine, and passes the Output to the Sink.
// One replica works at a time: the one that holds the Lease.
//
//	run.go       connecting the parts; starting and stopping them
//	options.go   options and defaults
//	plane.go     the identity of the management plane
//	clusters.go  the registered clusters, for the Source and the Sink
//	loop.go      one translation after another
//	quarantine.go  objects with which the translation panics
//	absent.go    meshes whose control plane is not there
//	edits.go     what users changed, which explains what is deleted
//	freeze.go    no translation while the management plane itself is being deleted
//	pace.go      how long to collect changes before a translation
//	cause.go     why something is written, for the log
//	compare.go   what a translation changed, for the metrics
//	lead.go      leader election: one term after another
//	lock.go      the Lease as the election uses it
//	fence.go     who does not hold the Lease writes nothing
//	runnable.go what else runs while this process leads
//	http.go      health and readiness; the listeners
//	metrics.go   metrics
//	guard.go     who may use the debug endpoints
//	debug.go     the latest translation as JSON
//	record.go    Events about what was written
//	recordstates.go  Events about objects that are no longer ready, or are again
//	timeline.go  what changed for traffic, and because of what: the record in timelinestore.go,
//	             hand edits that were put back in reverted.go
//	readonce.go  one Input of all clusters, without a server
package serve

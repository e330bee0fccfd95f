// Package apply writes an Output: a Sink takes the objects and statuses of a
// snapshot.Output to the API servers of their clusters, writes only what differs
// from what exists, in an order in which references resolve, and deletes what is
// no longer wanted.
//
//	sink.go        the Sink and its clusters
//	cluster.go     one cluster: items, queue, and the types below
//	remote.go      whether its API server may be written to, and what exists there
//	live.go        what exists is another, and connections that work or fail (package mirror)
//	diff.go        what changes from one Output to the next
//	unmet.go       what does not hold yet in a cluster that does not answer
//	planes.go      what another management plane wrote, or we for another cluster
//	withdraw.go    when objects that are no longer wanted are deleted
//	reports.go     what is reported of a cluster
//	item.go        what is wanted for one object; content.go, its content
//	queue.go       the order of writes
//	crowd.go       statuses that change again and again
//	work.go        a pass over an item: gathering the facts, and entering what follows; perform.go sends requests
//	decide.go      what follows from the facts: a request or, as phase.go names it, why there is none
//	history.go     what is remembered of requests: refusals, conflicts, repairs, slow writes
//	lasting.go     what is reported of items that wait for long
//	timer.go       when an item is reconciled again
//	order.go       a tracker keeps items and ledger.go, what proxies know, in step
//	outage.go      holding back what would fail because of the server
//	changeset.go   what was done
//	observe.go     an Observer compares and writes nothing; difference.go says in which fields
//	errors.go      what an error means for a write
//	metrics.go     metrics
//
// # How it knows what to write
//
// Each cluster has an index of what is wanted (kept up to date by comparing
// Outputs by pointer, so that one edit costs what it changes) and a mirror of
// what is there (a digest an object, kept up to date by watches). A difference
// between the two queues the object; nothing else does. The same rule serves a
// first start, an edited policy, and an object that a user changed.
//
// # How it decides
//
// decide is a pure function of the facts about one item: what is wanted and what
// exists, its history, and a view of what is around it. It returns one request, or
// the phase that says why there is none and when to decide again. Nothing else says
// so: all pauses of a cluster are entries of one delaying queue. A request and its
// answer change the history, and the item is decided about once more.
//
// The queue of items is not client-go's: that has no order in which nothing of a
// later rank starts while something of an earlier one is on its way.
//
// # How it stays safe
//
// Every write is a server-side apply with the resource version that the decision
// was based on: if the object was created or changed in the meantime, that is a
// conflict, and the object is checked again. Objects without our owner label are
// reported, not changed. Nothing is written to clusters that are frozen, not yet
// listed, or do not answer, and they delay no other; but statuses wait a moment for
// the objects of the same change in all clusters, so that they are true when they
// are read.
//
// # How requests do not fail during a change
//
// What a route needs (subsets, ServiceEntries, gateways, also those of other
// clusters) is known to the proxies before the route is written, and goes after the
// last route that uses it has gone from them. The names are the Relations that a renderer
// states with each object, and that are stored with it for a process that starts later; the
// ledger knows which writes the control planes have not passed on yet, and how long each of
// them collects changes (Output.Debounces). An edit that
// needs nothing new waits for nothing. Waits are bounded, but where requests would fail for
// certain: a route is not written while what it needs cannot be, because the write is refused
// or the gateways are in a cluster that does not answer; that is a failure until then. And an
// object that stays keeps what a route as it is written needs.
package apply

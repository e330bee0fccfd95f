// Package apply makes an Output true: a Sink takes the objects and statuses of
// a snapshot.Output to the API servers they belong to, writes only what differs
// from what is there, in an order in which references resolve, and collects
// what is no longer asked for.
//
// # How it knows what to write
//
// Each cluster has an index of what is wanted (kept up to date by comparing
// Outputs by pointer, so that one edit costs what it changes) and a mirror of
// what is there (a digest an object, kept up to date by watches). A difference
// between the two queues the object; nothing else does. The same rule serves a
// first start, an edited policy, and an object somebody changed by hand.
//
// # How it stays safe
//
// Every write is a server-side apply that carries the resource version the
// decision was made on, so nothing is ever written that was not seen: an object
// that somebody created or changed meanwhile is a conflict, looked at again.
// Objects without our owner label are reported, not touched. Clusters that are
// frozen, not yet listed, or not answering are left alone, and delay no other;
// but statuses wait a moment for the objects of the same change, in whichever
// cluster these are, so that what they say is true when it is read.
package apply

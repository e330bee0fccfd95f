// Package watch is a Source: it follows the management cluster and every
// registered cluster, and offers what it sees as immutable snapshot.Inputs.
//
// Each kind of each cluster is a feed: a client-go reflector in front of a
// collection of its own (store.go), which keeps objects stripped to what the
// engine reads (strip*.go). A change that stripping removes wakes nobody, and
// a relist leaves the pointers of unchanged objects as they are.
//
// The life of one cluster is a session (session.go): ask whether its API server
// answers, read everything, watch, and on the first doubt freeze the lists and
// start again. A member (member.go) owns the sessions of one cluster and
// replaces them make before break. No cluster ever waits for another.
package watch

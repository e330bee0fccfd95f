// Package proof gets the configuration that real control planes send to the proxies
// of real pods, and compares it with the Plan: with what was intended, not with
// what was written. An API server may accept objects that have no effect on a
// proxy.
//
// A case is a file of policies in testdata; the expected facts follow from the Plan
// alone. Cases remain in force together, in the order of their names; those in
// testdata/federation come last. To prove a new kind of value, add it to the facts
// of the Plan and to those of a proxy's configuration; add a mutation of it, which
// shows that a difference would be detected; and add a case that has it.
//
// TestDrawnWorlds needs no clusters: it draws worlds with what users write beside
// policies, and lets istiod's own code make the configuration of their proxies. It
// prints how many answers of each kind there are. An answer may leave open only
// what the help lists (notKnown), and the configuration what is not evaluated
// (notEvaluated). MESHCTL_TEST_WORLDS=n draws fewer or more worlds.
package proof

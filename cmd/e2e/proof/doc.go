// Package proof asks real control planes, as the proxies of real pods, what they
// tell them, and compares that with the Plan: what was meant, not what was
// written. An object that an API server takes can still mean nothing to a proxy.
//
// A case is a file of policies in testdata; what to expect follows from the Plan
// alone. Cases stay in force together, in the order of their names, and those in
// testdata/federation come last. To prove a new sort of value: spell it in what
// makes facts of the Plan, and in what reads a proxy's configuration; add a lie
// about it, so that it is known to be noticed; and add a case that has it.
package proof

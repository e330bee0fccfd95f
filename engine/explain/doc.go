// Package explain answers questions about one translation: what a mesh is, which
// policies apply to a service, who may call it, and why. Answers are values; the
// command line, JSON, the dashboard and the golden files show the same ones.
//
// An Index is a State with its objects indexed:
//
//	index.go         New, and Find by a name that a person types
//	kinds.go         the table of kinds that can be described: Refs, Has, Describe, List
//	stored.go        NewStored and NewLive: how the statuses that a server wrote differ
//	                 from those that follow now; statusfacts.go compares them
//	pending.go       objects of which the server has not processed the latest version
//	inforce.go       what serves, and how what clusters have differs from what follows
//	issues.go        the issues by their objects (issueBook); problems.go lists those of all objects,
//	                 and issuegroups.go puts those of one object together; tally.go counts them
//	generated.go     the YAML of an object, and what was generated from it
//
// A Description is all about one object, as JSON and as a Page of Sections (page.go). A describer (describer.go) makes it:
//
//	cluster.go, mesh.go, virtualmesh.go
//	destination.go   with its routes and settings (view.go), its pods (endpoints.go)
//	                 and its callers (access.go)
//	workload.go      with its calls (calls.go)
//	policy.go        TrafficPolicies and AccessPolicies; callers.go finds their callers
//	dependency.go    ServiceDependencies, and the hosts of a workload's proxies
//	virtualdestination.go
//	trust.go         whom the members of a VirtualMesh trust; trustpage.go is it as text,
//	                 and trustissues.go what is wrong with it
//
// A Table lists the objects of a kind (table.go). Tables (tables.go) makes it: list_*.go has one file for each.
// changes.go is the table of what a server wrote.
//
// Other questions:
//
//	why.go           what becomes of a request, and because of what: the routes that take it
//	                 (request.go), who lets it in (whyaccess.go), what would (whychange.go), as
//	                 text (whypage.go); whyfind.go finds what callers mean by a name
//	planned.go       what an edit (edit.go) does: to generated objects (compare.go), and to traffic (effects.go, with
//	                 effectaccess.go, effectviews.go and effectsizes.go); plannedverdict.go is it in a line
//	graph.go         who may call what, and where requests go, to be drawn (graphtext.go)
//	synced.go        how many proxies have what follows from an object, by what control planes say
//	simulation.go    who answers (outageanswers.go) after an outage (outage.go), as text (simulationpage.go)
//	exposure.go      what stands open, and what has no use
//	delta.go         what differs between two recordings, and what that does to traffic
//	checks.go        what is checked, and what follows from what else; checkup.go has the results
//	evidence.go      what proxies have counted, beside the answers: seen.go of an object, with seenpage.go, of shifts (seenshift.go)
//	                 and failover (seenfailover.go); in lists (seenlist.go), requests (seenwhy.go), checks (seencheck.go) and plans
//	                 (seenplan.go)
//	support.go       what each kind of mesh supports of each field
//	words.go         values as text
package explain

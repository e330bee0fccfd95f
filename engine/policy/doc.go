// Package policy decides which TrafficPolicies, AccessPolicies,
// VirtualDestinations and ServiceDependencies are in force on what, and what
// follows, independent of any mesh. It takes an inventory of what was discovered,
// the topology of the VirtualMeshes, and the custom resources that users wrote,
// and produces a snapshot.Plan.
//
// The parts of a plan are functions of explicit inputs, so that a Planner can
// keep a part while its inputs are the same objects as before.
//
// Planning:
//
//	planner.go      the Planner: its cache, and the steps of one Plan
//	environment.go  what policies are applied to
//	state.go        the cache of one Destination
//	bind.go         which policies select which Destinations
//	binding.go      a policy with what it selects
//	reuse.go        objects that are equal to those of before
//	assemble.go     the Plan, and the verdict on each policy
//	enforcement.go  policies that were in force before and are not now
//
// TrafficPolicies:
//
//	accept.go    precedence and conflicts
//	missing.go   targets that disappear after a policy was accepted
//	support.go   what a mesh cannot express
//	features.go  the list of fields; each field has a file of its own:
//	             shift.go shiftvirtual.go external.go fault.go timeout.go
//	             retries.go cors.go mirror.go headers.go outlier.go tls.go csrf.go
//	             ratelimit.go
//	match.go     which requests a policy is about, and in which order
//	routes.go    the routes that follow, as each mesh sees them
//	shadow.go    matchers that never apply
//	subset.go    the names of subsets
//	filters.go   what routes need of the proxies of a mesh
//	values.go    checks of values
//	ports.go     ports on which a proxy sees requests
//
// AccessPolicies:
//
//	access.go        whom a policy allows
//	accounts.go      who runs under which service account
//	callers.go       the accounts that a policy allows
//	grants.go        what is granted to accounts
//	keptout.go       grants that policies on services with the same pods forbid
//	sharedpods.go    the services that have pods in common
//	sharedaccess.go  how the policies on them restrict each other
//	effective.go     who may call what: the answer in the Plan
//	unidentified.go  callers that present no identity
//	denials.go       whom a policy denies, and denialissues.go what of that a mesh cannot do
//
// VirtualDestinations:
//
//	virtualdestination.go  the meshes that see one
//	reachvirtual.go        what one of a registered cluster may not do
//	virtualbacking.go      the services behind one
//	hostnames.go           host names and addresses
//	failover.go            which service takes over from which
//	virtualplan.go         the plans, and their cache
//
// ServiceDependencies:
//
//	dependency.go  what one selects
//	declared.go    what VirtualMeshes import that import only what is declared
//	podgroups.go   workloads whose pods one selector selects
//	egress.go      what proxies are configured with
//
// AccessLogRecords, of which engine/accesslog decides what becomes of them:
//
//	records.go  those of an Input, as far as they reach
//
// Hand-written objects of the meshes:
//
//	handwritten.go handwritten_access.go handwritten_hosts.go
package policy

// Package virtualmesh decides which VirtualMesh holds which mesh and what follows
// for the meshes: how they reach and name each other's services, and whom they
// trust. It produces a Topology, which policies are then applied to.
//
//	topology.go     the Topology; members, and what each mesh is
//	unsupported.go  what a member does not get from its VirtualMesh
//	settings.go     which Settings are in force, and what they call a gateway
//
//	gateways.go     the gateways between clusters, and those that stay open
//	gatewaychoice.go which Services may be gateways
//	gatewayserved.go which gateway is at fault if none serves
//	gatewaypods.go  which workloads are gateways
//	selectors.go    issues about the selectors of a VirtualMesh
//
//	federation.go   which service is visible in which mesh
//	needs.go        what callers were declared to need
//	declared.go     which service is imported where that has to be declared
//	budget.go       which services are left out because there are too many
//	budgetissues.go issues about them
//	limits.go       how many there may be
//	names.go        the host name by which a mesh calls a service
//	addresses.go    the virtual addresses of federated services; those that are stored
//	loads.go        what federation adds to each proxy
//
//	roots.go        members that trust no common root
//	trust.go        trust domains, and callers that cannot be told apart
//	trustfacts.go   what the common trust follows from: roots, reports of agents
//	trustplan.go    what members are to trust, and with which root each signs
//	trustgate.go    members that cannot verify each other yet share no services
//	certificates.go what is asked of the agent of a member
//	limited.go      trust between gateways only
package virtualmesh

// Package issuer signs the CertificateRequests of the agents, in `meshctl serve`.
//
// # Who may have what
//
// What a cluster may have signed follows from the Plan alone: a request is matched with the
// MemberTrust whose IssuedCertificate has the same cluster, namespace and name, and what is signed
// is its Grant (snapshot.CertificateGrant). The IssuedCertificate on the cluster does not count: whoever
// administers the cluster may edit it. Where the Plan only keeps what that says, it grants nothing,
// and the request waits. So a cluster gets certificates for the meshes in it that are members of a
// VirtualMesh, and for nothing else, whatever it asks for; which key they are for is its own
// business. Whether it gets a CA or a certificate for gateways, which signs nothing, follows from
// the Grant, too.
//
// # Who writes what
//
// The agent writes the spec of a CertificateRequest, the issuer its status, by server-side
// apply through the fence of the leader, and nothing else. The status is about one UID and
// generation of the request: a request that was made again in the meantime is not answered.
// A request with a signed certificate is final, whichever root signed it: an agent that
// needs another certificate makes another request.
//
// A request that no member asks for fails, unless an IssuedCertificate of its name is on
// the cluster: then the request waits. It may be that of another management plane, or of
// ours, which has not read its roots yet.
//
// A request whose member has a Vault sign is that member's agent's, and not answered here.
//
// # Order and bounds
//
// Each cluster has one worker, which answers one request after the other, so that a cluster
// that does not answer delays no other. All of them together sign two at a time.
// Nothing is done in clusters that are frozen. What failed is looked at again when
// anything changes, and every minute; writes that fail are tried again with a growing pause.
//
//	issuer.go   clusters and their workers
//	worker.go   the requests of one cluster
//	answer.go   what the answer to a request is
//	status.go   writing it
//	metrics.go  metrics
package issuer

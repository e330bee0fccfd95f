// Package agent gives the meshes of a managed cluster the common trust of their VirtualMesh. One agent works in a cluster; it
// is the only part that writes istiod's Secret cacerts, or that of gateways, and that has the private keys of both.
//
// # What it does
//
// For each IssuedCertificate in its namespace it makes a key and a CertificateRequest, which meshctl serve signs, and brings
// cacerts from what it is to what is asked for. It never stores at which step it is: it reads all that matters, decides on the
// next write (decide, a pure function), does it, and reads again. Every write replaces one object as a whole, and names the
// version that it replaces. So it may end before any write, and another process goes on; and two agents at once do no harm,
// although a Lease lets only one work.
//
// # Safety
//
// A certificate of root X signs only when everybody who may verify it trusts X; X is dropped only when nobody presents it:
//
//   - The roots in cacerts are those asked for, the signer's, and all that are still presented. What cannot be seen counts as
//     presented.
//   - The signer changes only to one whose root all of the mesh was seen to trust (MeshState.Trusted), to another of the same
//     root, or if there is nobody who could be cut off. When it changes, no root goes in the same write.
//   - All of the mesh, and everybody, are without the namespaces that it has waited for long enough, or that an administrator
//     leaves out (package verify, behind.go): their workloads lose their connections, and nobody else's do.
//   - A mesh that had no cacerts first gets one with the CA that istiod made for itself, and with more roots.
//   - cacerts is never missing and never incomplete: what pki.ReadCACerts refuses, or what is not valid by the agent's clock
//     and by the API server's, is not written.
//
// A Secret cacerts that a user made is replaced only with permission, and after a copy was made (BackupName). Its type stays,
// because Kubernetes does not let it change; so what is ours is known by an annotation.
//
// When the IssuedCertificate has been gone for a minute, the mesh leaves: the same exchange goes back to the former CA, and in
// the end the user's Secret is put back byte for byte, or cacerts is deleted. The CertificateRequest is the record of a mesh:
// it is there before the first write of cacerts, and goes last.
//
// Nothing that is logged or reported has a private key, or anything that was derived from one.
//
// # Gateways
//
// Where each mesh keeps its own root, only the gateways between meshes trust each other. An IssuedCertificate with usage Gateway
// asks for a certificate for those of one mesh. It has the same key and request, and goes into a Secret of type
// kubernetes.io/tls (snapshot.GatewaySecret), which istiod pushes to the gateways whenever it changes: nothing restarts.
//
// The agent writes what is asked for at once: who may be cut off are gateways of other meshes, and who asks knows what these
// trust. What gateways have loaded cannot be seen, so that a change counts a minute after it was made (loaded): only then is
// another root reported as trusted, and the former one as presented no more.
//
// A Secret of that name that somebody else made is never replaced. When the IssuedCertificate has been gone for a minute, all
// of it is deleted.
//
// # Vault
//
// With agentCa.vault a HashiCorp Vault signs, and the agent takes the place of meshctl serve: it has the request signed, and
// writes the answer into the status of the CertificateRequest. All that follows is the same. What meshctl serve could not have
// written is not written, so that a Vault that answers wrongly costs no keys. The credential is one of the agent's own
// namespace, or a token below /var/run/secrets: the VirtualMesh names it. It goes only to a server that the administrator of the
// cluster allowed (Options.VaultServers), by TLS unless that URL has none; and a token of a service account is one for Vault
// only, which the API server does not take.
// Who holds it may have any identity signed: what a cluster gets follows from Vault's policies, not from the Plan.
//
// # Files
//
//	options.go  Options; Verifier and Restarter, which look at the mesh and restart its pods
//	names.go    names of objects, types and annotations; the record of a mesh
//	facts.go    what the objects mean: whose cacerts is, what it has, what is valid and due
//	request.go  key, request, and whether an answer can be used
//	vault.go    having a request signed by a Vault
//	credential.go  what the agent logs in to a Vault with
//	vaultallow.go  which Vaults may be used, and with which tokens
//	signer.go   who is to sign and what is to be trusted: the safety rule
//	decide.go   the next write for a mesh that has an IssuedCertificate
//	leave.go    the next write for one that has none any more
//	gateway.go  both, for gateways
//	loaded.go   what gateways may have loaded of what their Secret had
//	write.go    a write; cacerts
//	status.go   what the IssuedCertificate says
//	store.go    reading and writing at the API server
//	observe.go  all that a decision needs
//	agent.go    passes over all meshes
//	watch.go    what starts a pass
//	clock.go    the clock of the API server
//	run.go      Run, and the Lease
//	health.go   /healthz, /readyz and /metrics
//	metrics.go  the metrics
//	parts.go    Parts: sees what the mesh holds, and restarts
//	refresh.go  having kubelets pass the Secret on at once
//	rules.go    what the agent may do
package agent

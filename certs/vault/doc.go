// Package vault talks to a HashiCorp Vault that signs the intermediates of meshes: as the VaultCA of a VirtualMesh says, and
// as nothing else says. The variables of Vault's own command line, such as VAULT_ADDR and VAULT_SKIP_VERIFY, do not count.
//
// The agent of a cluster logs in and has its request signed; meshctl serve reads the CA certificates, which Vault shows to
// everybody, and never logs in. Keys are made by the agent, and Vault gets none.
//
// Nothing that Vault answers is trusted: who calls verifies it. An answer is bounded in size and time, and is not followed to
// another address, because the token would go there. Tokens are in no error; of what Vault says, the start of its own
// sentence is. Nothing is retried here: the callers have their own pauses.
//
// # What Vault needs
//
//	vault write pki/root/generate/internal common_name=mesh ttl=87600h   # or an imported CA with its whole chain
//	vault policy write mesh - <<< 'path "pki/root/sign-intermediate" { capabilities = ["update"] }'
//	vault write auth/kubernetes/config kubernetes_host=... token_reviewer_jwt=...
//	vault write auth/kubernetes/role/mesh policies=mesh audience=vault bound_service_account_names=... bound_service_account_namespaces=...
//
// The token that logs in is for Vault only. So the role has to name its audience, and Vault cannot use it to review tokens: it
// needs a token_reviewer_jwt, or to run in a Pod of the same cluster.
//
// Who has this policy may have a CA for any identity signed. The mount gives certificates no longer lives than its
// max_lease_ttl, which is 32 days unless it is tuned.
//
// # Files
//
//	server.go  the URL of a Vault
//	client.go  Client: the address, and the bounds of a connection
//	path.go    what a caPath means
//	chain.go   the CA certificates of a mount
//	sign.go    login, and a certificate for a request
//	errors.go  what went wrong, as a sentence with the next step
package vault

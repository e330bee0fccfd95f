// Package identity is who is who between the hub and its agents: the names in their certificates, the tokens with which an agent gets its
// first one, and the TLS in which both are checked. It does no I/O; the time is an argument.
//
// The certificates have a root of their own, which is that of no mesh. An agent's name is the registered name of its cluster, and comes
// from the token, or from the certificate that is renewed, never from what the agent asks for. With a token that all agents share, it is
// what an administrator has approved.
//
//	names.go  names in certificates
//	token.go  tokens
//	issue.go  certificates of agents and of the hub
//	tls.go    TLS of both sides
//	shared.go the token that all agents share
package identity

// Package cluster is what serve needs of the registered clusters: which there
// are, and a client for each, whose credential is renewed before it expires
// while the client stays in use.
//
// A cluster is registered by two objects in the management namespace: a Secret
// of type solo.io/kubeconfig, and a KubernetesCluster that names it: a Secret alone registers nothing.
// A Secret is untrusted input: it passes an allow-list and is rebuilt from known fields. Only
// the management namespace is read, so that Secrets in other namespaces cannot make
// the engine connect to a server. Package registration writes both.
//
// A cluster is identified by the UID of its kube-system namespace, which its
// KubernetesCluster has as an annotation. Where that is absent, the first UID seen counts
// until the process ends. A server with another UID is neither read nor written, and of
// two names of one cluster only the older is used.
//
//	registry.go    watching Secrets and KubernetesClusters, for a Handler
//	entry.go       one registered cluster in the registry
//	identity.go    asking a server which cluster it is, before each connection
//	candidate.go   which clusters are used, and what a changed Secret leads to
//	probe.go       what a changed Secret has to prove before it is used
//	renew.go       renewing tokens
//	plane.go       the identity of the management plane
//	detour.go      other addresses for those who cannot dial the stored one
//	client.go      a client with a token that can be replaced
//	credential.go  the content of a kubeconfig, and the lifetime of its token
//	kubeconfig.go  the allow-list
//	secret.go      the Secret of a registration
//	token.go       requesting and verifying tokens
//	names.go       names and annotations
//	errors.go      typed errors
package cluster

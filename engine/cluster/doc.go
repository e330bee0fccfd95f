// Package cluster is the life of a registered cluster: it is registered with a
// bounded, least-privilege credential, handed to the engine as a client whose
// credential is renewed make before break, and deregistered with nothing left over.
//
// A cluster is known by two objects in the management namespace: a Secret of
// type solo.io/kubeconfig and a KubernetesCluster. What a Secret says is input
// from outside: it passes an allow-list and is rebuilt from known fields
// (kubeconfig.go). Only the management namespace is looked at: whoever may
// write Secrets elsewhere can not make the engine talk to a server.
package cluster

package cluster

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// SecretType is the type of Secrets that hold a cluster's kubeconfig.
	SecretType = "solo.io/kubeconfig"
	// SecretKey is the key of the kubeconfig in such a Secret.
	SecretKey = "kubeconfig"
	// DefaultNamespace holds the objects of the management plane, and on a
	// registered cluster the ServiceAccount.
	DefaultNamespace = snapshot.DefaultNamespace
	// LeaseName is the Lease, in the management namespace, that the leading
	// `meshctl serve` holds.
	LeaseName = "meshctl"

	// ManagedByLabel with the value ManagedBy is on every object that
	// registration makes.
	ManagedByLabel = snapshot.ManagedByLabel
	// ManagedBy is the value of ManagedByLabel.
	ManagedBy = snapshot.ManagedBy

	// UIDAnnotation is the UID of the registered cluster's kube-system
	// namespace, which identifies a cluster whatever its name is.
	UIDAnnotation = snapshot.ClusterUIDAnnotation
	// SuffixesAnnotation, on a KubernetesCluster, are the suffixes, ascending and separated by commas, below which its
	// registration keeps names of services to management planes.
	SuffixesAnnotation = "registration.multicluster.solo.io/kept-suffixes"
	// IssuedAnnotation is when the token in a Secret was issued, in RFC 3339 by the
	// registered cluster's clock.
	IssuedAnnotation = "registration.multicluster.solo.io/token-issued-at"
	// ExpiresAnnotation is when it expires, in the same form.
	ExpiresAnnotation = "registration.multicluster.solo.io/token-expires-at"
	// LifetimeAnnotation, on a KubernetesCluster, is the lifetime to ask for when its
	// token is renewed, in Go's notation such as 168h0m0s.
	LifetimeAnnotation = "registration.multicluster.solo.io/token-lifetime"
	// ReleaseAnnotation, on a KubernetesCluster, is the code of the withdrawal that an
	// administrator lets pass there.
	ReleaseAnnotation = snapshot.ReleaseAnnotation
	// LeavingAnnotation, on a KubernetesCluster, is since when an administrator deregisters the cluster through its agent, in RFC 3339.
	LeavingAnnotation = snapshot.LeavingAnnotation
	// VerifyAnnotation, on a KubernetesCluster, is a word of at most MaxVerifyRequest bytes with which an administrator asks serve to compare
	// what it has of the cluster with what its agent and the cluster itself have. The answer is in the status, with the same word.
	VerifyAnnotation = snapshot.VerifyAnnotation
)

// MaxVerifyRequest is the greatest length of what VerifyAnnotation is, in bytes.
const MaxVerifyRequest = 64

// ServiceAccountUser is the user name of a ServiceAccount.
func ServiceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// splitServiceAccountUser is the reverse of ServiceAccountUser.
func splitServiceAccountUser(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

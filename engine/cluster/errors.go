package cluster

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// KubeconfigError says why a stored kubeconfig is not used. Its text holds
// nothing of the kubeconfig's values.
type KubeconfigError struct{ Reason string }

func (e *KubeconfigError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *KubeconfigError) Advice() (what, hint string) {
	return "the stored kubeconfig cannot be used: " + e.Reason, "`meshctl cluster register` replaces it"
}

// Cause is that of an outage of the cluster.
func (*KubeconfigError) Cause() snapshot.Code { return snapshot.CredentialInvalid }

// ErrNoSecret says that a KubernetesCluster names a Secret that does not exist.
var ErrNoSecret error = noSecretError{}

type noSecretError struct{}

func (e noSecretError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (noSecretError) Advice() (what, hint string) {
	return "its kubeconfig Secret is missing", renewHint
}

// Cause is that of an outage of the cluster.
func (noSecretError) Cause() snapshot.Code { return snapshot.CredentialMissing }

// renewHint is the command that registers again all clusters that need it.
const renewHint = "run `meshctl cluster register --renew`"

// ExpiredError says that a token has expired and therefore cannot be renewed.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *ExpiredError) Advice() (what, hint string) {
	return "the token expired at " + e.At.UTC().Format(time.RFC3339), renewHint
}

// Cause is that of an outage of the cluster.
func (*ExpiredError) Cause() snapshot.Code { return snapshot.CredentialRefused }

// RenewalError says why the token of a cluster is not renewed.
type RenewalError struct {
	Cluster string
	// Expires is when the token in use expires.
	Expires time.Time
	Err     error
}

func (e *RenewalError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *RenewalError) Advice() (what, hint string) {
	const cannot = "its token cannot be renewed: "
	var expired *ExpiredError
	if errors.As(e.Err, &expired) {
		what, hint = expired.Advice()
		return cannot + what, hint
	}
	return fmt.Sprintf("%s%s; the one in use expires at %s", cannot, kube.Message(e.Err), e.Expires.UTC().Format(time.RFC3339)),
		"if the cause cannot be removed before, " + renewHint
}

func (e *RenewalError) Unwrap() error { return e.Err }

// ShortenedError says that an API server grants tokens of a shorter lifetime than asked for.
type ShortenedError struct{ Granted, Wanted time.Duration }

func (e *ShortenedError) Error() string {
	return fmt.Sprintf("the API server grants tokens of %s instead of the %s asked for; its --service-account-max-token-expiration bounds them",
		e.Granted, e.Wanted)
}

// OtherClusterError says that a server is not the cluster that is registered.
type OtherClusterError struct {
	Name, Server string
	// Registered and Actual are UIDs of kube-system namespaces.
	Registered, Actual types.UID
}

func (e *OtherClusterError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *OtherClusterError) Advice() (what, hint string) {
	return fmt.Sprintf("%s is another cluster: its kube-system namespace has UID %s, that of the registered one %s", e.Server, short(e.Actual), short(e.Registered)),
		fmt.Sprintf("restore the Secret, or, if %s was replaced, run `meshctl cluster deregister %[1]s` and `meshctl cluster register` again", e.Name)
}

// Cause is that of an outage of the cluster.
func (*OtherClusterError) Cause() snapshot.Code { return snapshot.DifferentCluster }

// NotUsed marks an error that says why a server that answers is not used (see kube.Reason).
func (e *OtherClusterError) NotUsed() {}

// SameClusterError says that a cluster is registered under an older name, too.
type SameClusterError struct{ Name, Other string }

func (e *SameClusterError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *SameClusterError) Advice() (what, hint string) {
	return "it is the cluster that is registered as " + e.Other + " already", "run `meshctl cluster deregister " + e.Name + "`"
}

// Cause is that of an outage of the cluster.
func (*SameClusterError) Cause() snapshot.Code { return snapshot.DifferentCluster }

// NotUsed is that of OtherClusterError.
func (e *SameClusterError) NotUsed() {}

// UnidentifiedError says that a server did not say which cluster it is.
type UnidentifiedError struct{ Server, Reason string }

func (e *UnidentifiedError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *UnidentifiedError) Advice() (what, hint string) {
	return e.Server + " does not say which cluster it is: " + e.Reason, "check that it is a Kubernetes API server"
}

// NotUsed is that of OtherClusterError.
func (e *UnidentifiedError) NotUsed() {}

// short is enough of a UID to tell two apart.
func short(uid types.UID) string { return string(uid[:min(len(uid), 8)]) }

// NotSwitchedError says why a connection is not replaced by what a Secret leads to now.
type NotSwitchedError struct{ Reason string }

func (e *NotSwitchedError) Error() string {
	return "its Secret is not used, and the previous connection stays in use: " + e.Reason
}

// BrokenPlaneError says that the stored identity of the management plane in a namespace is
// not one. Nothing is written then: it could be something that belongs to another.
type BrokenPlaneError struct{ Namespace string }

func (e *BrokenPlaneError) Error() string {
	return fmt.Sprintf("ConfigMap %s/%s: its key %s is no identity of a management plane; restore it, "+
		"or delete it if this management plane was never moved here from another cluster", e.Namespace, PlaneName, planeKey)
}

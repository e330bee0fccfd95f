package snapshot

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Annotations of a KubernetesCluster by which an administrator asks for something once.
const (
	// ReleaseAnnotation is the code of the withdrawal that may pass.
	ReleaseAnnotation = "registration.multicluster.solo.io/release-withdrawal"
	// VerifyAnnotation is a word with which a comparison of what an agent has is asked for.
	VerifyAnnotation = "registration.multicluster.solo.io/verify-relay"
	// LeavingAnnotation is since when the cluster is to leave, in RFC 3339: see Management.Leaves.
	LeavingAnnotation = "registration.multicluster.solo.io/leaving"
)

// Annotations of a CertificateRequest whose IssuedCertificate is gone.
const (
	// LeaveNowAnnotation is when an administrator asked that the mesh leaves without waiting whether its IssuedCertificate comes back,
	// in RFC 3339. It counts for LeaveNowLasts.
	LeaveNowAnnotation = "agent.certificates.mesh.gloo.solo.io/leave-now"
	// WaitsAnnotation is what the agent waits for, as a sentence for people.
	WaitsAnnotation = "agent.certificates.mesh.gloo.solo.io/waits-for"
)

// LogUntilAnnotation of an AccessLogRecord is until when it logs, in RFC 3339: who made it wanted it for a while.
const LogUntilAnnotation = "observability.enterprise.mesh.gloo.solo.io/until"

// LogEnded reports whether the time of an AccessLogRecord is over. One without a time, or whose time nobody understands,
// logs on.
func LogEnded(record metav1.Object, now time.Time) bool {
	until, err := time.Parse(time.RFC3339, record.GetAnnotations()[LogUntilAnnotation])
	return err == nil && !now.Before(until)
}

// LeaveNowLasts is how long what LeaveNowAnnotation asks for counts, by the clock of the agent.
const LeaveNowLasts = 10 * time.Minute

// requests are the annotations that ask for something once, or decide about what was found at the time.
var requests = []string{
	ReleaseAnnotation, VerifyAnnotation, LeavingAnnotation, TrustRotateAnnotation, TrustRootAnnotation, TrustAcceptAnnotation, TrustLeaveOutAnnotation,
}

// IsRequest reports whether an annotation asks for something once, or decides about what was found at the time: it must not
// be repeated later, or elsewhere.
func IsRequest(annotation string) bool { return slices.Contains(requests, annotation) }

// WrittenByUsers reports whether users write an object of the management plane: all kinds that meshctl only reads, and
// services outside of the clusters.
func WrittenByUsers(kind Kind, object APIObject) bool {
	if destination, ok := object.(*discoveryv1.Destination); ok {
		return destination.Spec.ExternalService != nil
	}
	return kind.Info().Access&Write == 0
}

package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ReadServing reads who leads in a management plane, from the Lease of serve
// (coordination.k8s.io/v1). A serve without leader election has none. The error is that of
// a server that does not answer; a Lease that may not be read is an answer.
func ReadServing(ctx context.Context, management kube.Clientset, namespace string) (snapshot.Serving, error) {
	lease, err := management.CoordinationV1().Leases(namespace).Get(ctx, LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return snapshot.Serving{Known: true}, nil
	case apierrors.IsForbidden(err):
		return snapshot.Serving{Reason: "you may not get leases in namespace " + namespace}, nil
	case err != nil:
		return snapshot.Serving{}, err
	}
	out, spec := snapshot.Serving{Known: true}, lease.Spec
	if spec.HolderIdentity != nil {
		out.Holder = *spec.HolderIdentity
	}
	if spec.RenewTime != nil {
		out.Since, out.Until = spec.RenewTime.UTC(), spec.RenewTime.UTC()
	}
	if out.Holder == "" {
		return out, nil
	}
	if spec.AcquireTime != nil {
		out.Since = spec.AcquireTime.UTC()
	}
	if spec.LeaseDurationSeconds != nil {
		out.Until = out.Until.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	}
	return out, nil
}

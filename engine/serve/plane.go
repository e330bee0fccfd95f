package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
)

// planeTimeout bounds one request for the identity of the management plane.
const planeTimeout = 5 * time.Second

// Pauses between requests for the identity, while the management cluster does not answer.
const (
	planeFirst = 50 * time.Millisecond
	planeLast  = time.Second
)

// planeID returns the identity of the management plane, and stores it if that was not done.
// It waits for a management cluster that is away. If ctx ends, the identity is empty.
func planeID(ctx context.Context, o Options, f *fence) (string, error) {
	client, err := kube.NewClientset(f.guard(o.Management))
	if err != nil {
		return "", fmt.Errorf("management cluster %s: %w", o.Management.Host, err)
	}
	for failures := 1; ; failures++ {
		bounded, cancel := context.WithTimeout(ctx, planeTimeout)
		id, err := cluster.KeepPlaneID(bounded, client, o.Namespace)
		cancel()
		switch {
		case err == nil:
			return id, nil
		case ctx.Err() != nil:
			return "", nil //nolint:nilerr // being stopped is no failure
		case settled(err):
			return "", err
		}
		if failures == 1 {
			o.Log.Warn("the management cluster cannot be read; trying again", "reason", kube.Reason(o.Management.Host, err))
		}
		select {
		case <-ctx.Done():
			return "", nil
		case <-time.After(kube.Backoff(planeFirst, planeLast, failures)):
		}
	}
}

// settled reports whether asking again would not help.
func settled(err error) bool {
	var broken *cluster.BrokenPlaneError
	return errors.As(err, &broken) || apierrors.IsForbidden(err)
}

// lookUpPlaneID is planeID for those that write nothing. If the identity cannot be read, all
// objects of management planes in a namespace of this name count as ours; the error is
// about an identity that is broken.
func lookUpPlaneID(ctx context.Context, o Options) (string, error) {
	client, err := kube.NewClientset(o.Management)
	if err != nil {
		return "", fmt.Errorf("management cluster %s: %w", o.Management.Host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	id, err := cluster.PlaneID(ctx, client, o.Namespace)
	var broken *cluster.BrokenPlaneError
	if errors.As(err, &broken) {
		return "", err
	}
	if err != nil {
		o.Log.Debug("the identity of the management plane cannot be read", "reason", kube.Reason(o.Management.Host, err))
	}
	return id, nil
}

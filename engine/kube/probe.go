package kube

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Probe asks whether the API server is ready, and returns nil if it is. A server
// that answers, but forbids or does not know the request, counts as ready.
func (c *Client) Probe(ctx context.Context, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.Read(bounded, "/readyz")
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	switch code := status.Status().Code; {
	case code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return err
	}
	return nil
}

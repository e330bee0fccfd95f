package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// identityTimeout bounds one request for the identity of a server, connecting included.
const identityTimeout = 2 * dialTimeout

// maxIdentity bounds the answer, in bytes.
const maxIdentity = 1 << 20

// guard asks a server which cluster it is before a Client connects to it. Each connection
// is preceded by a check: an address can lead to another cluster, and the Secret be the
// same. Whoever shares the Client, readers and writers, is let through or not together.
type guard struct {
	server     string
	namespaces kube.Clientset
	// accept decides about a server and the UID of its kube-system, which is empty if the
	// credential may not read it.
	accept func(string, types.UID) error
	// flight is one check for all connections that are made at the same time.
	flight singleflight.Group
}

// newGuard builds a guard. The transport makes a new connection for each check.
func newGuard(server, userAgent string, transport http.RoundTripper, accept func(string, types.UID) error) (*guard, error) {
	client, err := kube.NewClientset(&rest.Config{
		Host: server, Transport: transport, UserAgent: userAgent, QPS: -1, WarningHandler: rest.NoWarnings{},
	})
	if err != nil {
		return nil, fmt.Errorf("server %s: building a client: %w", server, err)
	}
	return &guard{server: server, namespaces: client, accept: accept}, nil
}

// check returns nil if the server is the cluster that is expected. It asks anew, unless
// it is being asked.
func (g *guard) check(ctx context.Context) error {
	checked := g.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), identityTimeout)
		defer cancel()
		return nil, g.probe(ctx)
	})
	select {
	case <-ctx.Done():
		return fmt.Errorf("server %s: asking which cluster it is: %w", g.server, ctx.Err())
	case result := <-checked:
		return result.Err
	}
}

func (g *guard) probe(ctx context.Context) error {
	system, err := g.namespaces.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	var status apierrors.APIStatus
	switch {
	case err == nil && system.UID != "":
		return g.accept(g.server, system.UID)
	case apierrors.IsForbidden(err):
		return g.accept(g.server, "")
	case err == nil:
		return &UnidentifiedError{Server: g.server, Reason: "its namespace kube-system has no UID"}
	case errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && !apierrors.IsUnauthorized(err):
		// As the answer to another request, it would mean something else: that a kind is
		// absent, for instance.
		return &UnidentifiedError{Server: g.server, Reason: err.Error()}
	}
	return fmt.Errorf("server %s: asking which cluster it is: %w", g.server, err)
}

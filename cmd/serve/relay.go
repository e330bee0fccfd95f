package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/hub"
)

// agents prepares what knows the agents of a management plane, and the TLS of the hub, which agents dial by these DNS names. Its certificate
// is kept until the context ends.
func agents(names []string, log *slog.Logger) func(context.Context, *rest.Config, string, string) (hub.Agents, *tls.Config, error) {
	return func(ctx context.Context, management *rest.Config, namespace, plane string) (hub.Agents, *tls.Config, error) {
		if plane == "" {
			return nil, nil, errors.New("the management plane has no identity, by which agents know it; allow meshctl serve to write the one in its namespace")
		}
		client, err := kube.NewClientset(kube.Unlimited(management))
		if err != nil {
			return nil, nil, fmt.Errorf("the management cluster: %w", err)
		}
		store := &enroll.Store{Client: client, Namespace: namespace, Plane: plane, Now: time.Now}
		own := &ownCertificate{store: store, names: names, log: log}
		if err := own.read(ctx); err != nil {
			return nil, nil, err
		}
		go own.keep(ctx)
		return enroll.NewAgents(store), identity.HubTLS(own.get), nil
	}
}

// ownCertificate is that of the hub. A connection takes the one that was read last, and never waits.
type ownCertificate struct {
	store *enroll.Store
	names []string
	log   *slog.Logger
	last  atomic.Pointer[identity.Own]
}

// readAgain is how often the certificate is read again, and renewed when it is time; readTimeout is how long that may take.
const (
	readAgain   = time.Minute
	readTimeout = 10 * time.Second
)

func (o *ownCertificate) get() (identity.Own, error) { return *o.last.Load(), nil }

func (o *ownCertificate) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	own, err := o.store.Hub(ctx, o.names...)
	if err == nil {
		o.last.Store(&own)
	}
	return err
}

// keep reads the certificate again until ctx ends. The last one stays if it cannot be read.
func (o *ownCertificate) keep(ctx context.Context) {
	ticker := time.NewTicker(readAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := o.read(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("the certificate of the hub was not read again; the last one is in use", "error", kube.Message(err))
		}
	}
}

package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/hub"
)

// agents prepares what knows the agents of a management plane, and the TLS of the hub, which agents dial by these DNS names.
func agents(names []string) func(context.Context, *rest.Config, string, string) (hub.Agents, *tls.Config, error) {
	return func(_ context.Context, management *rest.Config, namespace, plane string) (hub.Agents, *tls.Config, error) {
		if plane == "" {
			return nil, nil, errors.New("the management plane has no identity, by which agents know it; allow meshctl serve to write the one in its namespace")
		}
		client, err := kube.NewClientset(kube.Unlimited(management))
		if err != nil {
			return nil, nil, fmt.Errorf("the management cluster: %w", err)
		}
		store := &enroll.Store{Client: client, Namespace: namespace, Plane: plane, Now: time.Now}
		own := &ownCertificate{store: store, names: names}
		if _, err := own.get(); err != nil {
			return nil, nil, err
		}
		return enroll.NewAgents(store), identity.HubTLS(own.get), nil
	}
}

// ownCertificate is that of the hub, which is read again after a while, and renewed when it is time.
type ownCertificate struct {
	store *enroll.Store
	names []string

	mu   sync.Mutex
	last identity.Own
	read time.Time
}

// readAgain is how long a certificate that was read is used, and readTimeout how long reading it may take.
const (
	readAgain   = time.Minute
	readTimeout = 10 * time.Second
)

// get is the certificate; the last one if it cannot be read now.
func (o *ownCertificate) get() (identity.Own, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.read) < readAgain {
		return o.last, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	own, err := o.store.Hub(ctx, o.names...)
	switch {
	case err == nil:
		o.last, o.read = own, time.Now()
	case len(o.last.Chain) > 0:
		return o.last, nil
	}
	return own, err
}

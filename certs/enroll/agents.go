package enroll

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/certs/identity"
)

// Agents is a Store whose Records are watched, so that many agents that connect at once cost the API server nothing, and one that is
// revoked is known at once. Its methods may be called from any goroutine.
type Agents struct {
	*Store
	records cache.SharedIndexInformer

	mu    sync.Mutex
	roots trusted
	read  time.Time
	// shared is the token that agents share; see shared.go.
	shared sharedToken
}

// readRootsAgain is for how long roots are used that were read, and readRootsFirst how soon they are read again for an agent whose
// certificate is of another one.
const readRootsAgain, readRootsFirst = time.Minute, time.Second

// NewAgents prepares Agents; Run watches.
func NewAgents(s *Store) *Agents {
	watched := cache.NewFilteredListWatchFromClient(s.Client.CoreV1().RESTClient(), "secrets", s.Namespace, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("type", string(RecordType)).String()
	})
	return &Agents{Store: s, records: cache.NewSharedIndexInformer(watched, &corev1.Secret{}, 0, cache.Indexers{})}
}

// Run watches until ctx ends. It calls changed with the name of each cluster of whose agent something else is known than before.
func (a *Agents) Run(ctx context.Context, changed func(cluster string)) {
	tell := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if secret, ok := o.(*corev1.Secret); ok {
			changed(strings.TrimPrefix(secret.Name, recordPrefix))
		}
	}
	// Adding a handler fails for one that has ended.
	_, _ = a.records.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }, DeleteFunc: tell})
	a.records.RunWithContext(ctx)
}

// known is the record of the agent of a cluster, as it was watched; false if there is none.
func (a *Agents) known(cluster string) (r Record, known bool) {
	o, known, err := a.records.GetStore().GetByKey(a.Namespace + "/" + recordPrefix + cluster)
	secret, ok := o.(*corev1.Secret)
	if err != nil || !known || !ok || json.Unmarshal(secret.Data[recordKey], &r) != nil {
		return Record{}, false
	}
	return r, true
}

// record is that of the agent of a cluster, as it is known without asking, if it is.
func (a *Agents) record(ctx context.Context, cluster string) (Record, error) {
	if r, known := a.known(cluster); known {
		return r, nil
	}
	return a.Record(ctx, cluster)
}

// Enroll issues a certificate for a token, once. Whoever reaches the hub may try tokens: those that were not made are refused without asking
// the API server. An agent with the token that all share, at an address, waits for approval.
func (a *Agents) Enroll(ctx context.Context, text string, request []byte, uid, address string) (cluster string, chain, roots []byte, err error) {
	token, err := identity.ParseToken(text)
	if err != nil {
		return a.enrollShared(ctx, text, request, uid, address, err)
	}
	if a.records.HasSynced() {
		r, _ := a.known(token.Cluster)
		if err := r.made(token); err != nil {
			return "", nil, nil, err
		}
	}
	return a.Store.Enroll(ctx, text, request, uid)
}

// Admit is the cluster whose agent has shown a certificate, and is in the cluster with a UID. An error says why it is not to be heard.
func (a *Agents) Admit(ctx context.Context, shown []*x509.Certificate, uid string) (cluster string, err error) {
	issued := false
	for _, old := range []time.Duration{readRootsAgain, readRootsFirst} {
		roots, readErr := a.rootsOf(ctx, old)
		if readErr != nil {
			return "", readErr
		}
		if cluster, issued, err = a.namedBy(roots, shown); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	find := a.bind
	if issued {
		find = func(ctx context.Context, cluster, _ string) (Record, error) { return a.record(ctx, cluster) }
	}
	r, err := find(ctx, cluster, uid)
	if err != nil {
		return "", err
	}
	return cluster, r.admit(cluster, uid, shown[0], issued)
}

// rootsOf are the roots, read again if that is longer ago than a time.
func (a *Agents) rootsOf(ctx context.Context, old time.Duration) (trusted, error) {
	a.mu.Lock()
	roots, read := a.roots, a.read
	a.mu.Unlock()
	if a.Now().Sub(read) < old {
		return roots, nil
	}
	now, err := a.trust(ctx)
	switch {
	case err != nil && !read.IsZero():
		return roots, nil // those that were read last
	case err != nil:
		return roots, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roots, a.read = now, a.Now()
	return now, nil
}

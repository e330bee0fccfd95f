package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/meshctl/meshctl/engine/kube"
)

const (
	// firstRetry and lastRetry bound the pause after a renewal that failed; it
	// doubles from the one to the other.
	firstRetry = 10 * time.Second
	lastRetry  = 10 * time.Minute
	// renewTimeout bounds one renewal: a token, its proof and a write.
	renewTimeout = time.Minute
	// parallelRenewals bounds how many clusters are renewed at once.
	parallelRenewals = 8
	// renewInterval is how often the entries are checked for tokens to renew.
	renewInterval = 5 * time.Second
)

// CredentialStatus is the state of a cluster's credential.
type CredentialStatus struct {
	Cluster string
	Lifetime
	// RenewAt is when the next token will be asked for; zero if never.
	RenewAt time.Time
	// Err is why the last renewal failed; nil if it did not.
	Err error
	// Failures is how many renewals failed in a row.
	Failures int
}

// Renewer renews the tokens of the clusters in the registry: one third into the
// life of a token it requests the next one, verifies it, and only then writes it to
// the Secret, from which every replica reads it. The previous token stays valid
// until it expires. Only the leader may run it.
type Renewer struct {
	registry  *Registry
	clientset kube.Clientset
	guard     func(*rest.Config) *rest.Config
	clock     clock.Clock
	log       *slog.Logger

	// changed says that Failing has changed.
	changed chan struct{}

	mu       sync.Mutex
	failures map[string]*failure
}

// failure is what went wrong with the renewal of a cluster's token.
type failure struct {
	err   error
	count int
	retry time.Time
	// expires identifies the token: a new token has no failures.
	expires time.Time
}

// RenewerOptions configure a Renewer. Only Management is required.
type RenewerOptions struct {
	// Management reaches the management cluster.
	Management *rest.Config
	// Guard returns a configuration of a registered cluster whose writes pass the checks
	// of the caller; they are not checked if nil.
	Guard func(*rest.Config) *rest.Config
	// Clock is the real one if nil.
	Clock clock.Clock
	Log   *slog.Logger
}

// NewRenewer builds a renewer and does no I/O.
func NewRenewer(registry *Registry, o RenewerOptions) (*Renewer, error) {
	if o.Guard == nil {
		o.Guard = func(config *rest.Config) *rest.Config { return config }
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	clientset, err := kube.NewClientset(kube.Unlimited(o.Management))
	if err != nil {
		return nil, fmt.Errorf("credential renewal: building a client: %w", err)
	}
	return &Renewer{
		registry: registry, clientset: clientset, guard: o.Guard, clock: o.Clock, log: o.Log,
		changed: make(chan struct{}, 1), failures: map[string]*failure{},
	}, nil
}

// Run renews until ctx ends. It returns nil then.
func (r *Renewer) Run(ctx context.Context) error {
	for {
		r.renewDue(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.clock.After(renewInterval):
		}
	}
}

// Status returns the state of the credentials, ascending by cluster. It may be
// called whether or not the renewer runs.
func (r *Renewer) Status() []CredentialStatus {
	out := r.registry.Credentials()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out {
		if f := r.failures[out[i].Cluster]; f != nil && f.expires.Equal(out[i].Expires) {
			out[i].RenewAt, out[i].Err, out[i].Failures = f.retry, f.err, f.count
		}
	}
	return out
}

// Failing are the clusters whose tokens cannot be renewed, with a *RenewalError each.
func (r *Renewer) Failing() []CredentialStatus {
	return slices.DeleteFunc(r.Status(), func(s CredentialStatus) bool { return s.Failures == 0 })
}

// Changed says that Failing has changed.
func (r *Renewer) Changed() <-chan struct{} { return r.changed }

func (r *Renewer) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// prune drops the failures of tokens that are not used any more: whoever replaced them
// has fixed what was wrong.
func (r *Renewer) prune() {
	current := map[string]time.Time{}
	for _, status := range r.registry.Credentials() {
		current[status.Cluster] = status.Expires
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, f := range r.failures {
		if !f.expires.Equal(current[name]) {
			delete(r.failures, name)
			r.notify()
		}
	}
}

// renewDue renews every token that is due, and waits for all of them.
func (r *Renewer) renewDue(ctx context.Context) {
	r.prune()
	now := r.clock.Now()
	entries := r.registry.copies()
	var group errgroup.Group
	group.SetLimit(parallelRenewals)
	for _, status := range r.Status() {
		if status.IsZero() || now.Before(status.RenewAt) || ctx.Err() != nil {
			continue
		}
		e := entries[status.Cluster]
		if e.next != nil || e.connection.Config == nil {
			continue // the Secret is not that of the token, or the cluster is not used
		}
		group.Go(func() error {
			r.record(status.Cluster, e, r.renew(ctx, status.Cluster, e))
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil: record keeps what went wrong
}

// renew requests a new token with the current one, verifies it and stores it.
func (r *Renewer) renew(ctx context.Context, name string, e entry) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if !r.clock.Now().Before(e.life.Expires) {
		return &ExpiredError{At: e.life.Expires}
	}
	clientset, err := kube.NewClientset(r.guard(e.connection.Config))
	if err != nil {
		return fmt.Errorf("cluster %s: building a client: %w", name, err)
	}
	who, err := WhoAmI(ctx, clientset)
	if err != nil {
		return err
	}
	namespace, account, ok := splitServiceAccountUser(who.Username)
	if !ok {
		return fmt.Errorf("the credential is %s's, not a ServiceAccount's, and cannot be renewed", who.Username)
	}
	next := *e.stored
	wanted := cmp.Or(e.registration.Lifetime, e.life.Granted())
	token, life, err := RequestToken(ctx, clientset, namespace, account, wanted)
	if err != nil {
		return err
	}
	if life.Granted() < wanted && life.Granted() != e.life.Granted() {
		r.log.Warn((&ShortenedError{Granted: life.Granted(), Wanted: wanted}).Error(), "cluster", name)
	}
	next.Token = token
	if err := Verify(ctx, name, &next, who.Username, who.UID); err != nil {
		return err
	}
	return writeToken(ctx, r.clientset, e.secret, &next, life)
}

// record keeps the result of a renewal, for Status and for the next attempt.
func (r *Renewer) record(name string, e entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.failures, name)
		r.notify()
		r.log.Info("renewed the credential of a cluster", "cluster", name)
		return
	}
	if apierrors.IsConflict(err) {
		// The Secret was just changed; its new content is used.
		return
	}
	f := r.failures[name]
	if f == nil || !f.expires.Equal(e.life.Expires) {
		f = &failure{expires: e.life.Expires}
		r.failures[name] = f
	}
	f.err = &RenewalError{Cluster: name, Expires: e.life.Expires, Err: err}
	f.count++
	f.retry = r.clock.Now().Add(kube.Jitter(kube.Backoff(firstRetry, lastRetry, f.count)))
	r.notify()
	r.log.Warn("cannot renew the credential of a cluster; the current one is used until it expires",
		"cluster", name, "expires", e.life.Expires, "failures", f.count, "retry", f.retry, "error", err)
}

package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/kube"
)

// candidate is what a Secret leads to while another client is in use. It takes its place
// when it has proven that it is as good (see probe).
type candidate struct {
	// client is nil if the Secret cannot be read; then err says why, for good.
	client *Client
	stored *Credential
	cancel context.CancelFunc
	// seen is the identity of the cluster when the candidate appeared; empty if unknown.
	seen types.UID
	// identified: the credential may read which cluster it is.
	identified atomic.Bool
	// checked: it is as good. err is why that is not known.
	checked bool
	err     error
}

// refusal is why the candidate is not used; nil if there is none, or nothing is known yet.
func (c *candidate) refusal() error {
	if c == nil {
		return nil
	}
	return c.err
}

// dropCandidate ends the check of the candidate, if there is one.
func (e *entry) dropCandidate() {
	if e.next != nil && e.next.client != nil {
		e.next.cancel()
		e.next.client.Close()
	}
	e.next = nil
}

// Pauses between checks of a candidate; they double from the one to the other.
const (
	checkFirst = time.Second
	checkLast  = 10 * time.Second
)

// probeCandidate checks a credential until it may be used in the place of the one in use.
func (r *Registry) probeCandidate(ctx context.Context, e *entry, stored *Credential) (*candidate, error) {
	c := &candidate{stored: stored, seen: e.seen}
	accept := r.acceptFor(e)
	var err error
	c.client, err = newClient(stored, r.userAgent, func(server string, uid types.UID) error {
		c.identified.Store(uid != "")
		r.mu.Lock()
		worse := uid == "" && c.seen != "" && e.next == c
		r.mu.Unlock()
		if worse {
			return nil // probe refuses it; the one in use is known as before
		}
		return accept(server, uid)
	}, r.around(e, stored))
	if err != nil {
		return nil, err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	current := e.client
	r.group.Go(func() {
		defer c.cancel()
		for failures := 1; ; failures++ {
			err := c.probe(ctx, current)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				err = &NotSwitchedError{Reason: kube.Reason(stored.Server, err)}
			}
			r.mu.Lock()
			c.checked, c.err = err == nil, err
			r.mu.Unlock()
			r.notify()
			if err == nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(kube.Jitter(kube.Backoff(checkFirst, checkLast, failures))):
			}
		}
	})
	return c, nil
}

// take puts the candidate in the place of the client in use. If only the token is another,
// the client stays: whoever holds it goes on.
func (e *entry) take(life Lifetime) {
	next := e.next
	if next.seen == e.seen && next.stored.SameEndpoint(e.stored) {
		e.client.setToken(next.stored.Token)
		e.renewed = true
		e.use(e.client, next.stored, life)
		return
	}
	e.use(next.client, next.stored, life)
}

// works reports whether the client was let through to its cluster, so that what replaces
// it has to be as good.
func (e *entry) works() bool { return e.err == nil && e.client != nil && (e.seen != "" || e.unknown) }

// expected is the identity that the cluster must have: the registered one or, if none is
// stored, that which it had when serve saw it first; empty if any will do.
func (e *entry) expected() types.UID {
	switch {
	case e.registration.UID != "":
		return e.registration.UID
	case e.seen != "":
		return e.seen
	case e.secret != nil:
		return types.UID(e.secret.Annotations[UIDAnnotation])
	}
	return ""
}

// identity is the identity that the server told when it was last connected; empty if it
// told none.
func (e *entry) identity() types.UID {
	if e.unknown {
		return ""
	}
	return e.seen
}

// acceptFor returns what decides for a client of e whether it is the right cluster.
func (r *Registry) acceptFor(e *entry) func(string, types.UID) error {
	return func(server string, uid types.UID) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		name := e.registration.Name
		if uid == "" {
			if !e.unknown {
				e.unknown = true
				r.notify()
				r.log.Warn("the credential may not get the namespace kube-system, so nobody notices if its server becomes another cluster; run `meshctl cluster register` again",
					"cluster", name)
			}
			return nil
		}
		if e.unknown {
			e.unknown = false
			r.notify()
		}
		if want := e.expected(); want != "" && want != uid {
			return &OtherClusterError{Name: name, Server: server, Registered: want, Actual: uid}
		}
		if e.seen != uid {
			e.seen = uid
			r.notify() // a younger name of the same cluster is no longer used
		}
		return r.identityError(e)
	}
}

// identityError says why a cluster must not be used although its server answers: it was another
// one when it was connected, or has an older name.
func (r *Registry) identityError(e *entry) error {
	name, uid := e.registration.Name, e.expected()
	if uid == "" {
		return nil
	}
	if e.moved() {
		return &OtherClusterError{Name: name, Server: e.stored.Server, Registered: uid, Actual: e.seen}
	}
	for _, other := range r.entries {
		if other != e && other.expected() == uid && other.registration.olderThan(e.registration) {
			return &SameClusterError{Name: name, Other: other.registration.Name}
		}
	}
	return nil
}

// moved reports whether the registered cluster is not the one that is connected.
func (e *entry) moved() bool { return e.seen != "" && e.seen != e.expected() }

// olderThan reports whether r was registered before o; of two at the same time, the one
// with the lesser name counts as older.
func (r Registration) olderThan(o Registration) bool {
	if !r.Created.Equal(o.Created) {
		return r.Created.Before(o.Created)
	}
	return r.Name < o.Name
}

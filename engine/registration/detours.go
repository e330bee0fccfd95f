package registration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

// Detours are the contexts of a kubeconfig as ways to clusters whose stored address cannot be dialled
// from here: serve may run elsewhere. Which cluster is whose is asked of the servers, once, when the
// first detour is needed. What is read there is read with the stored credential all the same: of the
// contexts, only the addresses are used.
type Detours struct {
	contexts func() []Context
	timeout  time.Duration

	once sync.Once
	mu   sync.Mutex
	// found are the contexts by UID, and taken the names of those that were returned, by server.
	found map[types.UID][]Context
	taken map[string]string
	// asked is closed, and replaced, with each answer; all is closed with the last one.
	asked chan struct{}
	all   chan struct{}
}

// NewDetours prepares detours and asks nobody. Contexts is called when one is needed. Timeout bounds
// the answer of each context; DefaultCheckTimeout if zero.
func NewDetours(contexts func() []Context, timeout time.Duration) *Detours {
	return &Detours{
		contexts: contexts, timeout: cmp.Or(timeout, DefaultCheckTimeout),
		found: map[types.UID][]Context{}, taken: map[string]string{}, asked: make(chan struct{}), all: make(chan struct{}),
	}
}

// Notes say which addresses were used instead of which, ascending.
func (d *Detours) Notes() []string {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, server := range slices.Sorted(maps.Keys(d.taken)) {
		out = append(out, fmt.Sprintf("%s cannot be reached from here; the address of context %s was used instead", server, d.taken[server]))
	}
	return out
}

// Find is a cluster.Detour. It returns with the first context that leads there, or when all have
// answered.
func (d *Detours) Find(ctx context.Context, server string, uid types.UID) []string {
	if d == nil || d.contexts == nil || uid == "" {
		return nil
	}
	found := d.wait(ctx, uid)
	if len(found) > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.taken[server] = found[0].Name
	}
	return addresses(found)
}

// wait waits for the first context that leads to a cluster, or for the answers of all.
func (d *Detours) wait(ctx context.Context, uid types.UID) []Context {
	d.once.Do(func() { go d.ask() })
	for all := false; ; {
		d.mu.Lock()
		found, asked := slices.Clone(d.found[uid]), d.asked
		d.mu.Unlock()
		if len(found) > 0 || all {
			return found
		}
		select {
		case <-ctx.Done():
			return nil
		case <-asked:
		case <-d.all:
			all = true
		}
	}
}

// Contexts returns those that lead to a cluster, by name, with the user's own credentials: the first that is found, and others that are by
// then. None are returned if no context leads there, or for an empty UID.
func (d *Detours) Contexts(ctx context.Context, uid types.UID) []Context {
	if d == nil || d.contexts == nil || uid == "" {
		return nil
	}
	found := d.wait(ctx, uid)
	slices.SortFunc(found, func(a, b Context) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// ask asks the server of each context which cluster it is.
func (d *Detours) ask() {
	defer close(d.all)
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for _, c := range d.contexts() {
		group.Go(func() error {
			if c.Config == nil {
				return nil
			}
			c.Config = onThisMachine(c.Config)
			s, err := newServer(remoteSide, c.Name, c.Config, d.timeout)
			if err != nil || s.probe(context.Background()) != nil {
				return nil
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.found[s.uid] = append(d.found[s.uid], c)
			close(d.asked)
			d.asked = make(chan struct{})
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
}

func addresses(contexts []Context) []string {
	var out []string
	for _, c := range contexts {
		if address := hostPort(c.Config.Host); address != "" {
			out = append(out, address)
		}
	}
	return out
}

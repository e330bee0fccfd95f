package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
)

// Recording is everything that a cluster without controllers has stored at one moment. It is
// compared with what is stored later, so that a cluster can be put back without a restart.
type Recording struct {
	values map[string][]byte
	// revisions are those at which the keys have the values.
	revisions map[string]int64
	// resources are what the API server serves.
	resources []string
}

// registry is below what the API server stores: /registry/RESOURCE/NAMESPACE/NAME, or
// /registry/GROUP/RESOURCE/NAMESPACE/NAME.
const registry = "/registry/"

// allocated is the prefix of the ports of nodes, and addresses, that Services have. The API server reads it before it gives
// another one (pkg/registry/core/service/allocator/storage), and corrects it, also where nothing has changed, every few minutes.
const allocated = registry + "ranges/"

// kept are the prefixes of what the API server writes for itself at any time.
var kept = []string{
	registry + "apiregistration.k8s.io/", // follows the CRDs
	registry + "leases/kube-system/apiserver-",
	registry + "masterleases/", registry + "peerserverleases/",
	registry + "flowschemas/", registry + "prioritylevelconfigurations/",
	allocated,
}

// corrected are the prefixes of what the API server writes when it finds addresses and Services that do not agree, as after all of
// them were deleted at once, seconds later on a busy machine (pkg/registry/core/service/ipallocator/controller/repairip.go).
var corrected = []string{registry + "ipaddresses/", registry + "events/"}

// quiet is how long nothing is written before a cluster counts as at rest, and takesEffect how
// long the API server may enforce a deleted admission policy or webhook: it reads them once a second
// (PolicyRefreshInterval in k8s.io/apiserver/pkg/admission/plugin/policy/generic).
const (
	quiet       = 300 * time.Millisecond
	takesEffect = 1200 * time.Millisecond
)

// enforced are the prefixes of what decides about later requests only after takesEffect.
var enforced = []string{
	registry + "validatingadmissionpolicies/", registry + "validatingadmissionpolicybindings/",
	registry + "mutatingadmissionpolicies/", registry + "mutatingadmissionpolicybindings/",
	registry + "validatingwebhookconfigurations/", registry + "mutatingwebhookconfigurations/",
}

func under(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Record records what the cluster has stored, once it is at rest.
func (c *Cluster) Record(ctx context.Context) (*Recording, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for before := (*Recording)(nil); ; {
		r, err := recording(c).record(ctx)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: recording what is stored: %w", c.Name(), err)
		}
		if before != nil && len(before.changes(r.revisions)) == 0 && slices.Equal(before.resources, r.resources) {
			return r, nil
		}
		before = r
		if err := sleep(ctx, quiet); err != nil {
			return nil, fmt.Errorf("cluster %s: recording what is stored: it changes all the time: %w", c.Name(), err)
		}
	}
}

// recorder reads all that is in a cluster.
type recorder struct{ *Cluster }

func recording(c *Cluster) recorder { return recorder{c} }

func (c recorder) record(ctx context.Context) (*Recording, error) {
	client, err := c.etcdClient()
	if err != nil {
		return nil, err
	}
	all, err := client.list(ctx, false)
	if err != nil {
		return nil, err
	}
	r := &Recording{values: map[string][]byte{}, revisions: map[string]int64{}}
	for _, kv := range all {
		r.values[string(kv.Key)], r.revisions[string(kv.Key)] = kv.Value, kv.ModRevision
	}
	r.resources, err = c.resources()
	return r, err
}

// changes are the keys that are stored in another revision than the recorded one, not at all, or
// although they are not recorded.
func (r *Recording) changes(stored map[string]int64) []string {
	var keys []string
	for key, revision := range stored {
		if r.revisions[key] != revision && !under(key, kept) {
			keys = append(keys, key)
		}
	}
	for key := range r.revisions {
		if _, ok := stored[key]; !ok && !under(key, kept) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// under are the recorded keys with a prefix.
func (r *Recording) under(prefix string) (keys []string) {
	for key := range r.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Foreign are those of the changed keys that the API server does not write by itself.
func Foreign(changes []string) []string {
	return slices.DeleteFunc(slices.Clone(changes), func(key string) bool { return under(key, corrected) })
}

// Changes are the keys in etcd that differ from the recording, sorted.
func (c *Cluster) Changes(ctx context.Context, r *Recording) ([]string, error) {
	client, err := c.etcdClient()
	if err != nil {
		return nil, err
	}
	stored, err := client.revisions(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	return r.changes(stored), nil
}

// Restore puts back what was recorded, behind the back of the API server, which sees it as changes:
// no finalizer or admission plugin is asked. It returns once the API server acts on it. An error says
// what is still written at the same time, if anything is.
func (c *Cluster) Restore(ctx context.Context, r *Recording) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := c.etcdClient()
	if err != nil {
		return err
	}
	var wait time.Duration
	for try := 1; ; try++ {
		changed, err := c.Changes(ctx, r)
		if err != nil {
			return err
		}
		if len(changed) == 0 {
			break
		}
		if try > restoreTries {
			return fmt.Errorf("cluster %s: it is still written: %s", c.Name(), strings.Join(changed[:min(len(changed), 5)], ", "))
		}
		if slices.ContainsFunc(changed, func(key string) bool { return under(key, enforced) }) {
			wait = takesEffect
		}
		if err := client.restore(ctx, r, changed); err != nil {
			return fmt.Errorf("cluster %s: restoring what was stored: %w", c.Name(), err)
		}
	}
	if err := client.restore(ctx, r, r.under(allocated)); err != nil {
		return fmt.Errorf("cluster %s: restoring which ports Services have: %w", c.Name(), err)
	}
	if err := waitServed(ctx, c, r); err != nil {
		return err
	}
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	return os.Truncate(c.AuditLog(), 0)
}

// ErrServes is of an API server that goes on serving what nothing stored asks for, or does not serve what is stored.
var ErrServes = errors.New("it serves other resources than before")

// waitServed waits until the API server serves what was recorded: what it served for a CRD that is gone is served a moment longer.
func waitServed(ctx context.Context, c *Cluster, r *Recording) error {
	ctx, cancel := context.WithTimeout(ctx, servesTimeout)
	defer cancel()
	for {
		resources, err := recording(c).resources()
		if err == nil && slices.Equal(resources, r.resources) {
			return nil
		}
		if sleep(ctx, 20*time.Millisecond) == nil {
			continue
		}
		if changed, err := c.Changes(context.WithoutCancel(ctx), r); err == nil && len(changed) > 0 {
			return fmt.Errorf("cluster %s: it is written again: %s", c.Name(), strings.Join(changed[:min(len(changed), 5)], ", "))
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("cluster %s: %w: %s", c.Name(), ErrServes, strings.Join(differences(r.resources, resources), ", "))
	}
}

// servesTimeout is how long an API server may take to serve what was put back: it follows within a second on an idle machine.
const servesTimeout = 2 * time.Minute

// differences are what only one of two sorted lists has: "-" what only the first one has, "+" what only the second one has.
func differences(before, after []string) (list []string) {
	for _, s := range before {
		if _, ok := slices.BinarySearch(after, s); !ok {
			list = append(list, "-"+s)
		}
	}
	for _, s := range after {
		if _, ok := slices.BinarySearch(before, s); !ok {
			list = append(list, "+"+s)
		}
	}
	return list
}

// restoreTries bounds how often what was written meanwhile is put back.
const restoreTries = 20

// resources lists what the API server serves.
func (c recorder) resources() ([]string, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: reading what it serves: %w", c.Name(), err)
	}
	var names []string
	for _, list := range lists {
		for i := range list.APIResources {
			names = append(names, list.GroupVersion+" "+list.APIResources[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

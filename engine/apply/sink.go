package apply

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Sink makes Outputs true in clusters. Make one with New, give it clusters with
// Set, and Run it; all methods may be called at any time, from anywhere.
type Sink struct {
	shared *shared

	mu sync.Mutex
	// orders are what was asked for and not yet carried out.
	orders orders
	wake   chan struct{}
	// clusters and last belong to turn, which holds mu to change the map.
	clusters map[string]*cluster
	contents contents
	last     *snapshot.Output
}

// orders are what a Sink is asked for between two turns.
type orders struct {
	// configs are connections to make or, if nil, to give up.
	configs map[string]*rest.Config
	output  *snapshot.Output
	// running: a turn has taken orders and is not done.
	running bool
}

func (o *orders) empty() bool { return len(o.configs) == 0 && o.output == nil && !o.running }

// New makes a Sink. It does nothing until Run.
func New(o Options) *Sink {
	o = o.withDefaults()
	return &Sink{
		shared: &shared{
			Options: o, metrics: newMetrics(o.Registerer), recent: &ring{},
			failuresChanged: make(chan struct{}, 1),
		},
		wake:     make(chan struct{}, 1),
		clusters: map[string]*cluster{},
		contents: contents{},
	}
}

// Run works until ctx is done, and returns when all its work has stopped. A
// write that is under way is then abandoned. Run a Sink once.
func (s *Sink) Run(ctx context.Context) {
	var group sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.wake:
			s.turn(ctx, &group)
		}
	}
	for _, c := range s.clusters {
		c.disconnect()
		c.stop()
	}
	group.Wait()
}

// Set connects a cluster ("" is the management plane), or replaces its
// connection: the old one is in use until the new one has listed all there is.
func (s *Sink) Set(cluster string, cfg *rest.Config) {
	s.order(func(o *orders) { o.configs[cluster] = cfg })
}

// Remove gives up the connection of a cluster. Nothing is deleted there.
func (s *Sink) Remove(cluster string) {
	s.order(func(o *orders) { o.configs[cluster] = nil })
}

// Apply hands over what shall be true. It does not wait; of several Outputs
// that are handed over in quick succession, the last counts.
func (s *Sink) Apply(out *snapshot.Output) {
	s.order(func(o *orders) { o.output = out })
}

func (s *Sink) order(change func(*orders)) {
	s.mu.Lock()
	if s.orders.configs == nil {
		s.orders.configs = map[string]*rest.Config{}
	}
	change(&s.orders)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// turn carries out the orders that have come in.
func (s *Sink) turn(ctx context.Context, group *sync.WaitGroup) {
	s.mu.Lock()
	todo := s.orders
	s.orders = orders{running: true}
	s.mu.Unlock()
	for _, name := range sorted(todo.configs) {
		if cfg := todo.configs[name]; cfg != nil {
			c := s.cluster(ctx, group, name)
			if s.last != nil {
				c.update(nil, nil, gateOf(s.last, name))
			}
			c.connect(cfg)
		} else if c := s.clusters[name]; c != nil {
			c.disconnect()
			s.shared.announce()
		}
	}
	if todo.output != nil {
		s.apply(ctx, group, todo.output)
	}
	s.mu.Lock()
	for name, c := range s.clusters {
		if c.abandoned() {
			c.stop()
			delete(s.clusters, name)
			s.shared.metrics.forget(name)
		}
	}
	s.orders.running = false
	s.mu.Unlock()
	s.shared.stir()
}

// apply brings what is wanted in each cluster up to date.
func (s *Sink) apply(ctx context.Context, group *sync.WaitGroup, out *snapshot.Output) {
	changes := diff(s.last, out)
	first := s.last == nil
	regated := first || !slices.Equal(s.last.Clusters, out.Clusters) || !slices.Equal(s.last.Frozen, out.Frozen)
	s.last = out
	for name := range changes {
		s.cluster(ctx, group, name)
	}
	calm := !s.meshesBusy()
	update := func(name string, c *cluster) {
		if d := changes[name]; d != nil || regated || !c.armed() {
			c.update(d, s.resolve(d), gateOf(out, name))
		}
	}
	for name, c := range s.clusters {
		if name != "" {
			update(name, c)
		}
	}
	if management := s.clusters[""]; management != nil {
		if calm {
			s.putStatusesLast(ctx, group, management)
		}
		update("", management)
	}
}

// putStatusesLast has statuses wait until the objects of the same change stand in
// the meshes: who reads one finds it true, and the requests of both do not compete.
// It is not for when clusters are still at work on earlier changes, or statuses
// might never have their turn.
func (s *Sink) putStatusesLast(ctx context.Context, group *sync.WaitGroup, management *cluster) {
	if !s.meshesBusy() {
		return
	}
	management.holdStatuses(1)
	group.Go(func() {
		defer management.holdStatuses(-1)
		ctx, cancel := context.WithTimeout(ctx, s.shared.StatusPatience)
		defer cancel()
		_ = s.wait(ctx, s.meshesBusy) // then they go ahead
	})
}

// meshesBusy reports that there is work in a cluster other than the management plane.
func (s *Sink) meshesBusy() bool {
	return slices.ContainsFunc(s.all(), func(c *cluster) bool { return c.name != "" && c.busy() })
}

// resolve finds the contents of what a delta puts, and lets go of what it drops.
func (s *Sink) resolve(d *delta) map[*snapshot.Object]*content {
	if d == nil {
		return nil
	}
	made := make(map[*snapshot.Object]*content, len(d.put))
	for _, o := range d.put {
		made[o] = s.contents.acquire(o.Content)
	}
	for _, o := range d.drop {
		s.contents.release(o.Content)
	}
	return made
}

// cluster finds a cluster or makes it.
func (s *Sink) cluster(ctx context.Context, group *sync.WaitGroup, name string) *cluster {
	c := s.clusters[name]
	if c == nil {
		c = newCluster(ctx, group, s.shared, name)
		s.mu.Lock()
		s.clusters[name] = c
		s.mu.Unlock()
	}
	return c
}

// gateOf is what an Output permits in a cluster.
func gateOf(out *snapshot.Output, cluster string) gate {
	g := gate{armed: true, listed: slices.Contains(out.Clusters, cluster), frozen: out.IsFrozen(cluster)}
	if cluster == "" {
		g.listed = true
		g.clusters = make(map[string]bool, len(out.Clusters))
		for _, name := range out.Clusters {
			g.clusters[name] = false
		}
		for _, name := range out.Frozen {
			g.clusters[name] = true
		}
	}
	return g
}

// Failures lists what cannot be written at present, ascending by Ref. A cluster
// that does not answer is one failure, of its KubernetesCluster.
func (s *Sink) Failures() []snapshot.Failure {
	var out []snapshot.Failure
	for _, c := range s.all() {
		out = c.appendFailures(out)
	}
	slices.SortFunc(out, func(a, b snapshot.Failure) int { return a.Ref.Compare(b.Ref) })
	return out
}

// FailuresChanged yields a value after Failures has changed; several changes
// may be one value. It is for one reader.
func (s *Sink) FailuresChanged() <-chan struct{} { return s.shared.failuresChanged }

// Recent lists the latest changes in all clusters, newest first, at most MaxRecent.
func (s *Sink) Recent() []Change { return s.shared.recent.latest() }

// Settled waits until all that was handed over is written, or has failed, or
// lies in a cluster that is frozen or does not answer. It returns ctx's error
// if that comes first.
func (s *Sink) Settled(ctx context.Context) error { return s.wait(ctx, s.busy) }

// wait returns when there is no work of a kind any more, or ctx's error.
func (s *Sink) wait(ctx context.Context, busy func() bool) error {
	for {
		stirred := s.shared.nextStir()
		if !busy() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stirred:
		}
	}
}

func (s *Sink) busy() bool {
	s.mu.Lock()
	pending := !s.orders.empty()
	s.mu.Unlock()
	return pending || slices.ContainsFunc(s.all(), (*cluster).busy) || s.shared.telling.Load() > 0
}

// all lists the clusters, ascending by name.
func (s *Sink) all() []*cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*cluster, 0, len(s.clusters))
	for _, c := range s.clusters {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *cluster) int { return cmp.Compare(a.name, b.name) })
	return out
}

func sorted(m map[string]*rest.Config) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

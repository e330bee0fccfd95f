package apply

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Sink writes Outputs to clusters. Make one with New, add clusters with Set, and
// call Run; all methods may be called at any time, from any goroutine.
type Sink struct {
	shared *shared

	mu sync.Mutex
	// requests are the calls of Set, Remove and Apply since the last turn.
	requests requests
	wake     chan struct{}
	// clusters, contents, last and edits are used by turn, which holds mu to change the map.
	clusters map[string]*cluster
	contents contents
	last     *snapshot.Output
	edits    Edits
}

// requests are the calls of Set, Remove and Apply between two turns.
type requests struct {
	// links are the clusters to write to or, if nil, not any more.
	links  map[string]*mirror.Link
	output *snapshot.Output
	edits  Edits
	// identified: the identities of clusters changed.
	identified bool
	// renewed are the clusters with another credential.
	renewed []string
	// running: a turn has taken requests and is not done.
	running bool
}

func (r *requests) empty() bool {
	return len(r.links) == 0 && r.output == nil && !r.identified && len(r.renewed) == 0 && !r.running
}

// New prepares a Sink. It does nothing until Run.
func New(o Options) *Sink {
	o = o.withDefaults()
	return &Sink{
		shared: &shared{
			Options: o, metrics: newMetrics(o.Registerer), ledger: newLedger(o.Pace),
			failuresChanged: make(chan struct{}, 1),
		},
		wake:     make(chan struct{}, 1),
		clusters: map[string]*cluster{},
		contents: contents{},
	}
}

// Run works until ctx is done, and returns when all workers have stopped. Writes
// in progress are cancelled. Run may be called once.
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

// Set adds a cluster ("" is the management cluster), or replaces the way there.
func (s *Sink) Set(cluster string, link *mirror.Link) {
	s.request(func(r *requests) { r.links[cluster] = link })
}

// Renewed says that the configuration of a cluster has another credential: what was held
// back because the API server refused the last one is tried at once.
func (s *Sink) Renewed(cluster string) {
	s.request(func(r *requests) { r.renewed = append(r.renewed, cluster) })
}

// Remove writes no more to a cluster. Nothing is deleted there.
func (s *Sink) Remove(cluster string) {
	s.request(func(r *requests) { r.links[cluster] = nil })
}

// Apply replaces the Output to write, as it was asked for: what it does not have is
// deleted at once. It does not wait; of several Outputs in quick succession, only the last
// one is written.
func (s *Sink) Apply(out *snapshot.Output) { s.ApplyEdited(out, Edits{All: true}) }

// ApplyEdited is Apply for an Output that follows from what clusters are like: what the
// edits do not explain is deleted later, or not at all.
func (s *Sink) ApplyEdited(out *snapshot.Output, edits Edits) {
	s.request(func(r *requests) {
		r.output = out
		r.edits.merge(edits)
	})
}

func (s *Sink) request(change func(*requests)) {
	s.mu.Lock()
	if s.requests.links == nil {
		s.requests.links = map[string]*mirror.Link{}
	}
	change(&s.requests)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// turn handles the requests since the last turn.
func (s *Sink) turn(ctx context.Context, group *sync.WaitGroup) {
	s.mu.Lock()
	todo := s.requests
	s.requests = requests{running: true}
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(todo.links)) {
		if link := todo.links[name]; link != nil {
			c := s.cluster(ctx, group, name)
			if s.last != nil {
				c.edited(s.edits, s.last.Withdrawals)
				c.update(nil, nil, gateOf(s.last, name))
			}
			c.attach(link)
		} else if c := s.clusters[name]; c != nil {
			c.disconnect()
			s.shared.notifyFailures()
		}
	}
	for _, name := range todo.renewed {
		if c := s.clusters[name]; c != nil {
			c.retryNow()
		}
	}
	if todo.identified {
		for _, c := range s.clusters {
			c.checkStrays()
		}
	}
	if todo.output != nil {
		s.apply(ctx, group, todo.output, todo.edits)
	}
	s.mu.Lock()
	for name, c := range s.clusters {
		if c.abandoned() {
			c.stop()
			delete(s.clusters, name)
			s.shared.metrics.forget(name)
		}
	}
	s.requests.running = false
	s.mu.Unlock()
	s.shared.notifyProgress()
}

// apply updates what is wanted in each cluster.
func (s *Sink) apply(ctx context.Context, group *sync.WaitGroup, out *snapshot.Output, edits Edits) {
	changes := diff(s.last, out)
	first := s.last == nil
	gatesChanged := first || !slices.Equal(s.last.Clusters, out.Clusters) || !slices.Equal(s.last.Frozen, out.Frozen)
	s.last, s.edits = out, edits
	s.shared.ledger.follow(out.Debounces)
	for name := range changes {
		s.cluster(ctx, group, name)
	}
	for _, c := range s.clusters {
		c.edited(edits, out.Withdrawals)
	}
	calm := !s.meshesBusy()
	// Before the first of them is written.
	made := make(map[string]map[*snapshot.Object]*content, len(changes))
	for name, d := range changes {
		made[name] = s.resolve(d)
		s.clusters[name].announce(d)
	}
	update := func(name string, c *cluster) {
		if d := changes[name]; d != nil || gatesChanged || c.due() {
			c.update(d, made[name], gateOf(out, name))
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
		if d := changes[""]; d != nil && !first {
			management.crowded(len(d.putStatus))
		}
		update("", management)
	}
}

// putStatusesLast makes statuses wait until the objects of the same change are
// written in the clusters, so that a status is true when it is read, and the requests
// of both do not compete. It is not used while clusters still write earlier changes,
// or statuses might never be written.
func (s *Sink) putStatusesLast(ctx context.Context, group *sync.WaitGroup, management *cluster) {
	if !s.meshesBusy() {
		return
	}
	management.holdStatuses(1)
	group.Go(func() {
		defer management.holdStatuses(-1)
		ctx, cancel := context.WithTimeout(ctx, s.shared.StatusPatience)
		defer cancel()
		_ = s.wait(ctx, s.meshesBusy) // they are written then in any case
		// Routes that wait for what they need are not in force.
		patient, cancel := context.WithTimeout(management.ctx, s.shared.ledger.usual())
		defer cancel()
		_ = s.wait(patient, s.routesBlocked)
	})
}

// meshesBusy reports whether there is work in a cluster other than the management cluster.
func (s *Sink) meshesBusy() bool {
	return slices.ContainsFunc(s.all(), func(c *cluster) bool { return c.name != "" && c.busy() })
}

// routesBlocked reports whether a route waits for what it needs.
func (s *Sink) routesBlocked() bool {
	return slices.ContainsFunc(s.all(), func(c *cluster) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.remote.writable() && c.phases[NeedsProxies]+c.phases[NeedsCluster] > 0
	})
}

// resolve acquires the contents of what a delta puts, and releases those of what it drops.
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

// cluster returns a cluster, and makes it if there is none.
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

// Failures lists the objects that cannot be written at present, ascending by Ref. A cluster
// that does not answer is one failure, of its KubernetesCluster.
func (s *Sink) Failures() []snapshot.Failure {
	var out []snapshot.Failure
	for _, c := range s.all() {
		c.mu.Lock()
		out = c.reports.appendTo(out)
		c.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b snapshot.Failure) int { return a.Ref.Compare(b.Ref) })
	return out
}

// FailuresChanged receives a value after Failures has changed; several changes may
// be one value. It is for one reader.
func (s *Sink) FailuresChanged() <-chan struct{} { return s.shared.failuresChanged }

// Settled waits until everything in the last Output is written, or has failed, or
// is in a cluster that is frozen or does not answer, or stays for a route that waits
// for one. It returns the error of ctx if
// ctx ends first.
func (s *Sink) Settled(ctx context.Context) error { return s.wait(ctx, s.busy) }

// wait waits until busy is false. It returns the error of ctx if ctx ends first.
func (s *Sink) wait(ctx context.Context, busy func() bool) error {
	for {
		progress := s.shared.nextProgress()
		if !busy() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-progress:
		}
	}
}

func (s *Sink) busy() bool {
	s.mu.Lock()
	pending := !s.requests.empty()
	s.mu.Unlock()
	return pending || slices.ContainsFunc(s.all(), (*cluster).busy) || s.shared.publishing.Load() > 0
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

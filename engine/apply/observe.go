package apply

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselectors "k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// maxReadings bounds the objects of which it is read how they differ; of the others it
	// is known that they do.
	maxReadings = 64
	// readTimeout bounds the reading of all of them.
	readTimeout = 3 * time.Second
)

// Observer watches what a Sink has written, and says how it differs from an Output. It
// writes nothing. All methods may be called from any goroutine.
type Observer struct {
	plane snapshot.Plane
	kinds []snapshot.Kind
	ctx   context.Context
	group sync.WaitGroup
	// signal receives a value when something that exists has changed.
	signal chan struct{}

	mu       sync.Mutex
	clusters map[string]*observedCluster
	// contents are those of the last Output that was compared.
	contents map[*snapshot.Content]*content
}

// NewObserver prepares an Observer of the objects of a management plane; its watches end
// with ctx.
func NewObserver(ctx context.Context, plane snapshot.Plane) *Observer {
	return &Observer{
		plane: plane, kinds: snapshot.Kinds(snapshot.ManagedSide, snapshot.Write), ctx: ctx,
		signal: make(chan struct{}, 1), clusters: map[string]*observedCluster{}, contents: map[*snapshot.Content]*content{},
	}
}

// observedCluster is what an Observer knows of a cluster. The lock of the Observer guards
// its fields.
type observedCluster struct {
	*Observer
	name string
	// conn is in use; next replaces it as soon as it has listed everything.
	conn, next *connection
	// problem is why nothing can be read; empty if something can.
	problem string
	// readings are the objects that were read, because they differ.
	readings map[id]reading
}

// reading is how an object differs from what was wanted.
type reading struct {
	version uint64
	wanted  digest
	drift   snapshot.Drift
	// same: there is no difference but in form.
	same bool
}

// Set begins to watch a cluster, or replaces its connection.
func (o *Observer) Set(cluster string, config *rest.Config) {
	client, err := dial(config, o.kinds, rest.NoWarnings{}, kube.NewBudget(kube.Bounds{}))
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.notify()
	c := o.clusters[cluster]
	if c == nil {
		c = &observedCluster{Observer: o, name: cluster, readings: map[id]reading{}}
		o.clusters[cluster] = c
	}
	o.drop(c.next)
	if c.next = nil; err != nil {
		c.problem = err.Error()
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	c.next = &connection{Client: client, mirror: newMirror(o.kinds, client.Hold), ctx: ctx, cancel: cancel}
	conn := c.next
	for _, kind := range o.kinds {
		conn.group.Go(func() {
			conn.watch(ctx, kind, &store{connection: conn, kind: kind, cluster: cluster, plane: o.plane, to: c})
		})
	}
}

// Remove ends the watch of a cluster.
func (o *Observer) Remove(cluster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.clusters[cluster]; c != nil {
		o.drop(c.conn)
		o.drop(c.next)
		delete(o.clusters, cluster)
		o.notify()
	}
}

// Close ends all watches and waits for them.
func (o *Observer) Close() {
	o.mu.Lock()
	for _, c := range o.clusters {
		o.drop(c.conn)
		o.drop(c.next)
		c.conn, c.next = nil, nil
	}
	o.mu.Unlock()
	o.group.Wait()
}

// Changed receives a value after something that exists has changed; several changes may be
// one value. It is for one reader.
func (o *Observer) Changed() <-chan struct{} { return o.signal }

func (o *Observer) notify() {
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

// drop closes a connection, if there is one, without waiting.
func (o *Observer) drop(conn *connection) {
	if conn != nil {
		conn.cancel()
		o.group.Go(conn.close)
	}
}

// changed implements listener.
func (c *observedCluster) changed(conn *connection, of id, l live, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.event(of, l, deleted) && conn == c.conn {
		c.notify()
	}
}

// replaced implements listener.
func (c *observedCluster) replaced(conn *connection, kind snapshot.Kind, list map[id]live, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.replace(kind, list, version)
	c.promote()
	c.notify()
}

// reported implements listener.
func (c *observedCluster) reported(conn *connection, kind snapshot.Kind, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := conn.kinds[kind]
	switch {
	case err == nil:
		state.refused = ""
		if conn == c.conn && c.problem != "" {
			c.problem = ""
			c.notify()
		}
	case apierrors.IsNotFound(err):
		conn.forget(kind)
	case classify(err) == refused:
		state.refused = kube.Message(err)
	case conn == c.conn || c.conn == nil && conn == c.next:
		if problem := kube.Message(err); problem != c.problem {
			c.problem = problem
			c.notify()
		}
	}
	c.promote()
}

// incomparable implements listener: the object differs from everything.
func (c *observedCluster) incomparable(id, error) {}

// promote puts the next connection into use if it is ready.
func (c *observedCluster) promote() {
	if c.next != nil && c.next.ready() {
		c.drop(c.conn)
		c.conn, c.next, c.problem = c.next, nil, ""
		clear(c.readings)
		c.notify()
	}
}

// unread says why nothing is known of the cluster; empty if something is.
func (c *observedCluster) unread() string {
	switch {
	case c.problem != "":
		return c.problem
	case c.conn == nil:
		return "its objects have not been listed yet"
	}
	for _, kind := range c.kinds {
		if reason := c.conn.kinds[kind].refused; reason != "" {
			return kind.String() + " cannot be listed: " + reason
		}
	}
	return ""
}

// Await waits until something is known of each of the clusters, or ctx ends.
func (o *Observer) Await(ctx context.Context, clusters []string) {
	for {
		o.mu.Lock()
		waits := slices.ContainsFunc(clusters, func(name string) bool {
			c := o.clusters[name]
			return c != nil && c.conn == nil && c.problem == ""
		})
		o.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-o.signal:
		}
	}
}

// Observe compares what exists with an Output.
func (o *Observer) Observe(ctx context.Context, out *snapshot.Output) *snapshot.Observed {
	observed, todo := o.compare(out)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	group := errgroup.Group{}
	group.SetLimit(defaultWorkers)
	for i := range todo {
		group.Go(func() error { return todo[i].read(ctx) })
	}
	_ = group.Wait() // what cannot be read is known to differ, and no more
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range todo {
		t := &todo[i]
		if t.done && o.clusters[t.cluster] == t.of {
			t.of.readings[t.id] = t.reading
		}
	}
	kept := observed.Drifts[:0]
	for _, d := range observed.Drifts {
		if c := o.clusters[d.Ref.Cluster]; c != nil && d.State == snapshot.DriftChanged {
			if r, known := c.readings[idOf(d.Ref)]; known && r.same {
				continue
			} else if known {
				d = r.drift
			}
		}
		kept = append(kept, d)
	}
	observed.Drifts = kept
	return observed
}

// compare lists what differs by digest, and what is to be read of it.
func (o *Observer) compare(out *snapshot.Output) (*snapshot.Observed, []task) {
	wanted := map[string]map[id]*snapshot.Object{}
	for object := range out.Objects {
		cluster := object.Ref.Cluster
		if wanted[cluster] == nil {
			wanted[cluster] = map[id]*snapshot.Object{}
		}
		wanted[cluster][idOf(object.Ref)] = object
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	observed, contents := &snapshot.Observed{Drifts: []snapshot.Drift{}, Unread: map[string]string{}, Created: map[snapshot.Ref]time.Time{}}, map[*snapshot.Content]*content{}
	digestOf := func(of *snapshot.Content) (digest, bool) {
		c := contents[of]
		if c == nil {
			if c = o.contents[of]; c == nil {
				c = &content{Content: of}
			}
			contents[of] = c
		}
		d, err := c.get()
		return d, err == nil
	}
	var todo []task
	for _, name := range out.Clusters {
		c := o.clusters[name]
		if c == nil {
			observed.Unread[name] = "it cannot be reached with what is stored of it"
			continue
		}
		why := c.unread()
		if why != "" {
			observed.Unread[name] = why
		}
		if c.conn == nil {
			continue
		}
		// Of a cluster that does not answer, what was seen before is reported; it is not asked.
		if tasks := c.compare(wanted[name], digestOf, observed); why == "" {
			todo = append(todo, tasks...)
		}
	}
	o.contents = contents
	slices.SortFunc(observed.Drifts, func(a, b snapshot.Drift) int { return a.Ref.Compare(b.Ref) })
	return observed, todo[:min(len(todo), maxReadings)]
}

// compare adds what differs in one cluster.
func (c *observedCluster) compare(wanted map[id]*snapshot.Object, digestOf func(*snapshot.Content) (digest, bool), to *snapshot.Observed) (todo []task) {
	add := func(of id, state snapshot.DriftState) {
		to.Drifts = append(to.Drifts, snapshot.Drift{Ref: of.ref(c.name), State: state})
	}
	differs := map[id]bool{}
	for of, object := range wanted {
		if !c.conn.kinds[of.kind].current() {
			continue // that is a failure of serve, and an issue of the policies
		}
		l, exists := c.conn.objects[of]
		if exists && l.ours && (of.kind == snapshot.ServiceEntry || of.kind == snapshot.Sidecar) {
			to.Created[of.ref(c.name)] = time.Unix(l.created, 0)
		}
		digest, valid := digestOf(object.Content)
		switch {
		case !valid || exists && l.ours && l.here && l.marked && l.spec == digest:
			continue
		case !exists:
			add(of, snapshot.DriftMissing)
			continue
		case !l.ours:
			add(of, snapshot.DriftForeign)
			continue
		}
		differs[of] = true
		add(of, snapshot.DriftChanged)
		if r, known := c.readings[of]; !known || r.version != l.version || r.wanted != digest {
			delete(c.readings, of)
			todo = append(todo, task{of: c, client: c.conn.Client, cluster: c.name, id: of, object: object, reading: reading{version: l.version, wanted: digest}})
		}
	}
	for of := range c.readings {
		if !differs[of] {
			delete(c.readings, of)
		}
	}
	for of, l := range c.conn.objects {
		if wanted[of] == nil && l.ours && l.here && !l.going && of.kind.Info().Access&snapshot.Write != 0 && c.conn.kinds[of.kind].current() {
			add(of, snapshot.DriftLeftover)
		}
	}
	slices.SortFunc(todo, func(a, b task) int { return a.object.Ref.Compare(b.object.Ref) })
	return todo
}

// task is an object to be read.
type task struct {
	of      *observedCluster
	client  *kube.Client
	cluster string
	id      id
	object  *snapshot.Object
	reading reading
	done    bool
}

// read reads the object, and says how it differs. It lists one object: serve's accounts in
// clusters need not get any, and may not.
func (t *task) read(ctx context.Context) error {
	raw, err := t.client.Get().AbsPath(kube.Path(t.id.kind, t.id.namespace, "", "")...).
		Param("fieldSelector", fieldselectors.OneTermEqualSelector(metav1.ObjectNameField, t.id.name).String()).MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return nil // it has gone since, and the watch will say so
	}
	if t.reading.drift, err = differenceOf(list.Items[0], t.object, t.of.plane); err != nil {
		return err
	}
	t.reading.same = len(t.reading.drift.Fields) == 0
	t.done = true
	return nil
}

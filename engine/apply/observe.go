package apply

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselectors "k8s.io/apimachinery/pkg/fields"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// maxReadings bounds the objects of which it is read how they differ; of the others it
	// is known that they do.
	maxReadings = 64
	// readTimeout bounds the reading of all of them.
	readTimeout = 3 * time.Second
)

// Observer sees what a Sink has written, and says how it differs from an Output. It
// writes nothing. All methods may be called from any goroutine.
type Observer struct {
	plane snapshot.Plane
	kinds []snapshot.Kind
	// signal receives a value when something that exists has changed.
	signal chan struct{}

	mu       sync.Mutex
	clusters map[string]*observedCluster
	// contents are those of the last Output that was compared.
	contents map[*snapshot.Content]*content
}

// NewObserver prepares an Observer of the objects of a management plane.
func NewObserver(plane snapshot.Plane) *Observer {
	return &Observer{
		plane: plane, kinds: snapshot.Kinds(snapshot.ManagedSide, snapshot.Write),
		signal: make(chan struct{}, 1), clusters: map[string]*observedCluster{}, contents: map[*snapshot.Content]*content{},
	}
}

// observedCluster is what an Observer knows of a cluster. The lock of the Observer guards
// its fields.
type observedCluster struct {
	*Observer
	name string
	link *mirror.Link
	now  mirror.LinkState
	// readings are the objects that were read, because they differ.
	readings map[mirror.ID]reading
}

// reading is how an object differs from what was wanted.
type reading struct {
	version uint64
	wanted  mirror.Digest
	drift   snapshot.Drift
	// same: there is no difference but in form.
	same bool
}

// Set begins to look at a cluster.
func (o *Observer) Set(cluster string, link *mirror.Link) {
	o.Remove(cluster)
	c := &observedCluster{Observer: o, name: cluster, link: link, readings: map[mirror.ID]reading{}}
	o.mu.Lock()
	o.clusters[cluster] = c
	o.mu.Unlock()
	link.Listen(c)
}

// Remove ends that.
func (o *Observer) Remove(cluster string) {
	o.mu.Lock()
	c := o.clusters[cluster]
	delete(o.clusters, cluster)
	o.mu.Unlock()
	if c != nil {
		c.link.Leave(c)
		o.notify()
	}
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

// Turned implements mirror.Listener.
func (c *observedCluster) Turned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.now
	if c.now = c.link.State(); c.now.Conn != was.Conn {
		clear(c.readings)
	}
	c.notify()
}

// Changed implements mirror.Listener.
func (c *observedCluster) Changed(conn *mirror.Connection, _ []mirror.ID) { c.notifyOf(conn) }

// Relisted implements mirror.Listener.
func (c *observedCluster) Relisted(conn *mirror.Connection, _ snapshot.Kind) { c.notifyOf(conn) }

// notifyOf signals a change that a connection saw, if it is in use.
func (c *observedCluster) notifyOf(conn *mirror.Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn == c.now.Conn {
		c.notify()
	}
}

// Incomparable implements mirror.Listener: the object differs from everything.
func (c *observedCluster) Incomparable(mirror.ID, error) {}

// unread says why nothing is known of the cluster; empty if something is.
func (c *observedCluster) unread() string {
	switch {
	case c.now.Err != nil:
		return kube.Message(c.now.Err)
	case c.now.Conn == nil:
		return "its objects have not been listed yet"
	}
	for _, kind := range c.kinds {
		if reason := c.now.Conn.State(kind).Refused; reason != "" {
			return kind.String() + " cannot be listed: " + reason
		}
	}
	return ""
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
			if r, known := c.readings[mirror.IDOf(d.Ref)]; known && r.same {
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
	wanted := map[string]map[mirror.ID]*snapshot.Object{}
	for object := range out.Objects {
		cluster := object.Ref.Cluster
		if wanted[cluster] == nil {
			wanted[cluster] = map[mirror.ID]*snapshot.Object{}
		}
		wanted[cluster][mirror.IDOf(object.Ref)] = object
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	observed, contents := &snapshot.Observed{Drifts: []snapshot.Drift{}, Unread: map[string]string{}, Created: map[snapshot.Ref]time.Time{}}, map[*snapshot.Content]*content{}
	digestOf := func(of *snapshot.Content) (mirror.Digest, bool) {
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
		if c.now.Conn == nil {
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
func (c *observedCluster) compare(wanted map[mirror.ID]*snapshot.Object, digestOf func(*snapshot.Content) (mirror.Digest, bool), to *snapshot.Observed) (todo []task) {
	add := func(of mirror.ID, state snapshot.DriftState) {
		to.Drifts = append(to.Drifts, snapshot.Drift{Ref: of.Ref(c.name), State: state})
	}
	differs := map[mirror.ID]bool{}
	for of, object := range wanted {
		if !c.now.Conn.State(of.Kind).Complete() {
			continue // that is a failure of serve, and an issue of the policies
		}
		l, exists := c.now.Conn.Find(of)
		if exists && l.Ours() && of.Kind.Info().Effect&snapshot.Aged != 0 {
			to.Created[of.Ref(c.name)] = time.Unix(l.Created, 0)
		}
		digest, valid := digestOf(object.Content)
		switch {
		case !valid || exists && l.Here && l.Owner == mirror.Marked && l.Spec == digest:
			continue
		case !exists:
			add(of, snapshot.DriftMissing)
			continue
		case !l.Ours():
			add(of, snapshot.DriftForeign)
			continue
		}
		differs[of] = true
		add(of, snapshot.DriftChanged)
		if r, known := c.readings[of]; !known || r.version != l.Version || r.wanted != digest {
			delete(c.readings, of)
			todo = append(todo, task{of: c, client: c.now.Conn.Client, cluster: c.name, id: of, object: object, reading: reading{version: l.Version, wanted: digest}})
		}
	}
	for of := range c.readings {
		if !differs[of] {
			delete(c.readings, of)
		}
	}
	for of, l := range c.now.Conn.All() {
		if wanted[of] == nil && l.Ours() && l.Here && !l.Going && of.Kind.Info().Access&snapshot.Write != 0 && c.now.Conn.State(of.Kind).Complete() {
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
	id      mirror.ID
	object  *snapshot.Object
	reading reading
	done    bool
}

// read reads the object, and says how it differs. It lists one object: serve's accounts in
// clusters need not get any, and may not.
func (t *task) read(ctx context.Context) error {
	raw, err := t.client.Get().AbsPath(kube.Path(t.id.Kind, t.id.Namespace, "", "")...).
		Param("fieldSelector", fieldselectors.OneTermEqualSelector(metav1.ObjectNameField, t.id.Name).String()).MaxRetries(0).DoRaw(ctx)
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

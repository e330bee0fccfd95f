package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// enforcer keeps what stands in a cluster while the hub is away. While it is there, the hub decides, and the enforcer only follows what
// stands. It writes nothing that the hub has not written before, and deletes nothing.
type enforcer struct {
	cluster string
	log     *slog.Logger
	sink    *apply.Sink
	disk    Disk
	// signal is that of the stream, and save that what stands is to be stored.
	signal, save chan struct{}

	mu       sync.Mutex
	receiver *relay.Receiver
	objects  map[snapshot.Ref]*snapshot.Object
	// known: objects are all that is to stand, as of a time. generation is that of the hub's word for it.
	known      bool
	generation uint64
	// here: there is a stream of the hub. away: there was none for a time. ceased: nothing is kept any more.
	here, away, ceased bool
}

func newEnforcer(o *Options, local *watch.Local) *enforcer {
	e := &enforcer{
		cluster: o.Cluster, log: o.Log, disk: o.Disk, signal: make(chan struct{}, 1), save: make(chan struct{}, 1), objects: map[snapshot.Ref]*snapshot.Object{},
		sink: apply.New(apply.Options{Namespace: o.Plane.Namespace, PlaneID: o.Plane.ID, Log: o.Log, Keep: true}),
	}
	var kinds []string
	for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		kinds = append(kinds, relay.KindName(kind))
	}
	e.receiver = relay.NewReceiver(standing{e}, kinds...)
	e.sink.Set(o.Cluster, local.Link())
	return e
}

// document is what matters of the document of an apply.
type document struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// standing takes over what the receiver of an enforcer received, under its lock.
type standing struct{ *enforcer }

// Take implements relay.Store.
func (s standing) Take(kind string, puts []relay.Object, removals []relay.Key) map[relay.Key]error {
	k, _ := relay.KindNamed(kind)
	rejected := map[relay.Key]error{}
	for _, put := range puts {
		if err := s.put(k, put.Key, put.Bytes); err != nil {
			rejected[put.Key] = err
		}
	}
	for _, of := range removals {
		delete(s.objects, s.ref(k, of))
	}
	return rejected
}

func (e *enforcer) ref(k snapshot.Kind, of relay.Key) snapshot.Ref {
	return snapshot.Ref{Kind: k, Cluster: e.cluster, Namespace: of.Namespace, Name: of.Name}
}

func (e *enforcer) put(k snapshot.Kind, of relay.Key, raw []byte) error {
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	ref := e.ref(k, of)
	e.objects[ref] = &snapshot.Object{Ref: ref, Content: &snapshot.Content{Labels: d.Metadata.Labels, Annotations: d.Metadata.Annotations, Spec: d.Spec}}
	return nil
}

// Complete implements relay.Store.
func (standing) Complete(string, uint64, func(relay.Key) bool) {}

// begin starts with a new stream, on which both speak a version of the protocol: the hub is there.
func (e *enforcer) begin(protocol uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receiver.Begin(protocol)
	e.here, e.away = true, false
	e.follow()
}

// end says that the stream ended.
func (e *enforcer) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.here = false
}

// cease says that nothing is kept any more, because the cluster is deregistered, until the hub says again what stands.
func (e *enforcer) cease() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ceased {
		e.ceased = true
		e.follow()
	}
}

func (e *enforcer) hasCeased() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ceased
}

// leave says that there was no hub for a time.
func (e *enforcer) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.here && !e.away {
		e.away = true
		e.log.Warn("the hub is away; what stands in the cluster is kept as it is", "known", e.known, "objects", len(e.objects), "generation", e.generation)
		e.follow()
	}
}

// receive takes a frame of the hub.
func (e *enforcer) receive(d *relayv1.Data) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer pump.Signal(e.signal)
	if settled := d.GetSettled(); settled != nil {
		e.ceased = false
		if _, complete := e.receiver.Complete(func(string) bool { return false }); complete {
			e.known, e.generation = true, settled.GetGeneration()
			pump.Signal(e.save)
		}
		return nil
	}
	return e.receiver.Receive(d)
}

func (e *enforcer) next() (*relayv1.Feedback, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	frame := e.receiver.Next()
	return frame, frame != nil
}

// follow tells the Sink what to keep, under the lock: nothing while the hub is there, or as long as it is not known what stands.
func (e *enforcer) follow() {
	out := &snapshot.Output{Clusters: []string{e.cluster}}
	if !e.away || !e.known || e.ceased {
		out.Frozen = out.Clusters
	}
	refs := slices.SortedFunc(maps.Keys(e.objects), snapshot.Ref.Compare)
	parts := make([]*snapshot.Part, 0, len(refs))
	for _, ref := range refs {
		parts = append(parts, &snapshot.Part{Key: ref.String(), Objects: []*snapshot.Object{e.objects[ref]}})
	}
	slices.SortFunc(parts, func(a, b *snapshot.Part) int { return cmp.Compare(a.Key, b.Key) })
	out.Parts = snapshot.ListOf(parts)
	e.sink.Apply(out)
}

// savePause is how long what stands is at least not stored again.
const savePause = time.Minute

// run stores what stands, and keeps it while the hub is away, until ctx ends.
func (e *enforcer) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { e.sink.Run(ctx) })
	defer group.Wait()
	e.load(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.save:
		}
		if e.disk == nil || e.hasCeased() {
			continue
		}
		generation, documents := e.documents()
		if err := e.disk.Save(ctx, generation, documents); err != nil && ctx.Err() == nil {
			e.log.Warn("what stands was not stored; an agent that starts without a hub does not know the last changes", "error", err)
			pump.Signal(e.save)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(savePause):
		}
	}
}

// stored is an object as it is stored.
type stored struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Body      json.RawMessage `json:"body"`
}

// documents are the objects as they are stored.
func (e *enforcer) documents() (generation uint64, out [][]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range slices.SortedFunc(maps.Keys(e.objects), snapshot.Ref.Compare) {
		content := e.objects[ref].Content
		var d document
		d.Metadata.Labels, d.Metadata.Annotations = content.Labels, content.Annotations
		d.Spec, _ = content.Spec.(map[string]any)
		body, err := json.Marshal(d)
		if err != nil {
			continue // it came from JSON
		}
		raw, err := json.Marshal(stored{Kind: relay.KindName(ref.Kind), Namespace: ref.Namespace, Name: ref.Name, Body: body})
		if err != nil {
			continue
		}
		out = append(out, raw)
	}
	return e.generation, out
}

// load takes over what was stored, unless the hub was first.
func (e *enforcer) load(ctx context.Context) {
	if e.disk == nil {
		return
	}
	documents, err := e.disk.Load(ctx)
	if err != nil {
		e.log.Warn("what stood before cannot be read; nothing is kept until the hub has said what is to stand", "error", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known || len(documents) == 0 {
		return
	}
	for _, raw := range documents {
		var s stored
		err := json.Unmarshal(raw, &s)
		kind, known := relay.KindNamed(s.Kind)
		if err != nil || !known {
			continue // of another version
		}
		if err := e.put(kind, relay.Key{Namespace: s.Namespace, Name: s.Name}, s.Body); err != nil {
			continue
		}
	}
	e.known = true
	e.follow()
}

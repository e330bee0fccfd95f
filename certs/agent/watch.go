package agent

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// watches say that something changed, and keep nothing of it.
type watches struct {
	ctx    context.Context
	client *kube.Client
	// changed receives when something changed since it was last received from.
	changed chan struct{}
	group   sync.WaitGroup

	mu        sync.Mutex
	following map[snapshot.Ref]bool
}

func newWatches(ctx context.Context, client *kube.Client) *watches {
	return &watches{ctx: ctx, client: client, changed: make(chan struct{}, 1), following: map[snapshot.Ref]bool{}}
}

// follow watches the objects of a kind in a namespace, or only the one with a name, until the context ends.
func (w *watches) follow(k snapshot.Kind, namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := snapshot.Ref{Kind: k, Namespace: namespace, Name: name}
	if w.following[ref] {
		return
	}
	w.following[ref] = true
	lister := &kube.Lister{Client: w.client, Kind: k, Namespace: namespace}
	if name != "" { // a role with resourceNames permits such a watch, and no other
		lister.Fields = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	w.group.Go(func() { lister.Run(w.ctx, bell{w.changed}) })
}

// followMesh watches the Secrets of a mesh. They are few, and stay watched: a mesh that left may come back.
func (w *watches) followMesh(namespace, name string, at record) {
	w.follow(snapshot.Secret, namespace, name)
	w.follow(snapshot.Secret, at.Namespace, at.Name)
	if at.forGateways() {
		return
	}
	for _, secret := range []string{BackupName, SelfSignedName} {
		w.follow(snapshot.Secret, at.Namespace, secret)
	}
}

func (w *watches) wait() { w.group.Wait() }

// bell is a cache.ReflectorStore without contents.
type bell struct{ changed chan<- struct{} }

func (b bell) ring() error {
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return nil
}

func (b bell) Add(any) error               { return b.ring() }
func (b bell) Update(any) error            { return b.ring() }
func (b bell) Delete(any) error            { return b.ring() }
func (b bell) Replace([]any, string) error { return b.ring() }
func (b bell) Resync() error               { return nil }

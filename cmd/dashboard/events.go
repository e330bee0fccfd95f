package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// eventSelector selects the Events that `meshctl serve` writes.
var eventSelector = fields.OneTermEqualSelector("reportingController", "meshctl")

// maxChanges bounds how many changes are shown.
const maxChanges = 500

// noEvents is shown if there are none.
const noEvents = "meshctl serve has recorded no change since the API server last removed old events, which it keeps for an hour by default. Edit a policy, and the changes to its objects show here."

// events follows the Events in which the server records what it wrote.
type events struct {
	informer cache.SharedIndexInformer
	changed  chan struct{}

	mu sync.Mutex
	// refused says why they cannot be read; empty if they can.
	refused string
}

func newEvents(config *rest.Config) (*events, error) {
	clientset, err := kube.NewClientset(config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", config.Host, err)
	}
	e := &events{changed: make(chan struct{}, 1)}
	// A factory of informers would have the linker keep those of all kinds.
	e.informer = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(clientset.EventsV1().RESTClient(), "events", metav1.NamespaceAll,
		eventSelector), &eventsv1.Event{}, 0, cache.Indexers{})
	wake := func() {
		select {
		case e.changed <- struct{}{}:
		default:
		}
	}
	if _, err := e.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	}); err != nil {
		return nil, fmt.Errorf("watching events: %w", err)
	}
	if err := e.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if !apierrors.IsForbidden(err) {
			return // a cluster that does not answer is reported by the watch
		}
		e.mu.Lock()
		e.refused = "Changes cannot be shown: you may not list and watch events in the management cluster. A ClusterRole with list and watch on events of events.k8s.io allows it."
		e.mu.Unlock()
		wake()
	}); err != nil {
		return nil, fmt.Errorf("watching events: %w", err)
	}
	return e, nil
}

// run follows them until ctx ends.
func (e *events) run(ctx context.Context) error {
	e.informer.RunWithContext(ctx)
	return nil
}

// list is what was written, newest first, and why there is nothing.
func (e *events) list() ([]explain.Change, string) {
	var out []explain.Change
	for _, o := range e.informer.GetStore().List() {
		if event, ok := o.(*eventsv1.Event); ok {
			out = append(out, changeOf(event))
		}
	}
	slices.SortFunc(out, func(a, b explain.Change) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Key, b.Key)
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused != "" {
		return out, e.refused
	}
	return out[:min(len(out), maxChanges)], noEvents
}

func changeOf(e *eventsv1.Event) explain.Change {
	c := explain.Change{
		Key: e.Namespace + "/" + e.Name, Time: moment(e), Action: e.Action, Cause: refOf(e), Note: e.Note, Count: 1,
	}
	if e.Related != nil {
		c.Cluster = e.Related.Name
		c.Note = strings.TrimPrefix(c.Note, c.Cluster+": ")
	}
	if e.Series != nil {
		c.Count = int(e.Series.Count)
	}
	return c
}

func moment(e *eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}

// refOf is what an Event is about; zero if it is nothing that users write.
func refOf(e *eventsv1.Event) snapshot.Ref {
	gv, err := schema.ParseGroupVersion(e.Regarding.APIVersion)
	if err != nil {
		return snapshot.Ref{}
	}
	for _, kind := range snapshot.Kinds(snapshot.ManagementSide, snapshot.WriteStatus) {
		if info := kind.Info(); info.Group == gv.Group && kind.String() == e.Regarding.Kind {
			return snapshot.Ref{Kind: kind, Namespace: e.Regarding.Namespace, Name: e.Regarding.Name}
		}
	}
	return snapshot.Ref{}
}

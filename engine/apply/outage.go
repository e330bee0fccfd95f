package apply

import (
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file holds back writes that would fail for a reason that is not theirs: an admission
// webhook that is down refuses all objects of a kind, in some namespaces.

// area is what fails together.
type area struct {
	kind      snapshot.Kind
	namespace string
}

// outage is what is known of an area in which writes fail because of the server. When
// several failed in a row, one is tried after a pause, and the others wait for what becomes
// of it: 0.5 s, doubled each time, at most 10 s.
type outage struct {
	failures int
	// message is that of the last failure. All that wait have it.
	message string
	// waiting are the items that wait, in the order of their turns.
	waiting []*item
	// trial is the item that is being tried; nil if there is none.
	trial *item
	area  area
}

const (
	// outageAfter is the number of failures in a row after which items wait.
	outageAfter = 4
	outageFirst = 500 * time.Millisecond
	outageMost  = 10 * time.Second
)

func (b *outage) closed() bool { return b.failures >= outageAfter }

// pause is how long to wait until the next trial.
func (b *outage) pause() time.Duration {
	return kube.Jitter(kube.Backoff(outageFirst, outageMost, b.failures-outageAfter+1))
}

// ofServer reports that a write was refused because of the server, and not of the object.
func ofServer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

func areaOf(i *item) area { return area{i.id.Kind, i.id.Namespace} }

// outages are those of one cluster, by area; also those of areas in which few writes failed yet. The cluster's lock guards them.
type outages map[area]*outage

// failed enters a failure that is the server's. It returns the outage if that begins now.
func (o outages) failed(i *item, message string) *outage {
	b := o[areaOf(i)]
	if b == nil {
		b = &outage{area: areaOf(i)}
		o[b.area] = b
	}
	b.message = message
	if b.closed() && b.trial != i {
		return nil // it was on its way
	}
	b.trial = nil
	if b.failures++; b.failures == outageAfter {
		return b
	}
	return nil
}

// end forgets what is known of an area. It returns the items that waited, and whether there was an outage.
func (o outages) end(at area) (waited []*item, closed bool) {
	b := o[at]
	if b == nil {
		return nil, false
	}
	delete(o, at)
	for _, i := range b.waiting {
		i.history.refusal = nil
	}
	return b.waiting, b.closed()
}

// endAll is end for all areas.
func (o outages) endAll() []*item {
	var all []*item
	for at := range o {
		waited, _ := o.end(at)
		all = append(all, waited...)
	}
	return all
}

// of is why the server takes no objects like an item at present; empty if it does, or if the item is the trial.
func (o outages) of(i *item) string {
	b := o[areaOf(i)]
	if b == nil || !b.closed() || b.trial == i {
		return ""
	}
	return b.message
}

// park makes an item wait for the end of an outage, or for its turn as the trial.
func (o outages) park(i *item) {
	if b := o[areaOf(i)]; !i.history.failing().parked {
		i.history.refusal.parked = true
		b.waiting = append(b.waiting, i)
	}
}

// next takes the item to try next; nil if none waits. What was not tried goes first, the
// newest of it before others: it may be taken where others are not, and a user may wait
// for it. The others take turns.
func (b *outage) next(waits func(*item) bool) *item {
	b.waiting = slices.DeleteFunc(b.waiting, func(i *item) bool { return !waits(i) })
	if len(b.waiting) == 0 {
		return nil
	}
	at := len(b.waiting) - 1
	for at > 0 && b.waiting[at].history.refusal.tried {
		at--
	}
	i := b.waiting[at]
	b.waiting = slices.Delete(b.waiting, at, at+1)
	i.history.refusal.parked = false
	return i
}

// resetRefusals forgets all failures, because the connection is another one.
func (c *cluster) resetRefusals() {
	c.requeue(c.outages.endAll())
	for _, i := range c.items {
		i.history.refusal = nil
	}
}

// requeue queues items that waited for others.
func (c *cluster) requeue(items []*item) {
	for _, i := range items {
		if c.items[i.id] == i {
			c.enqueue(i, false)
		}
	}
}

// fire implements timer: it tries the next item of the area, or ends the outage if there is none.
func (b *outage) fire(c *cluster, now time.Time) {
	if c.outages[b.area] != b || !b.closed() {
		return
	}
	if b.trial == nil || !b.trial.place.working && !b.trial.place.queued {
		b.trial = b.next(func(i *item) bool { return c.items[i.id] == i && i.history.parked() })
		if b.trial == nil {
			waited, _ := c.outages.end(b.area)
			c.requeue(waited)
			return
		}
		b.trial.history.refusal.due = time.Time{}
		c.enqueue(b.trial, false)
	}
	c.timers.set(b, now.Add(b.pause()))
}

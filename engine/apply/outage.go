package apply

import (
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
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

// failed enters a failure that is the server's.
func (c *cluster) failed(i *item, message string) {
	b := c.outages[areaOf(i)]
	if b == nil {
		b = &outage{area: areaOf(i)}
		c.outages[areaOf(i)] = b
	}
	b.message = message
	if b.closed() && b.trial != i {
		return // it was on its way
	}
	b.trial = nil
	b.failures++
	if b.failures == outageAfter {
		c.wakeAt(b, time.Now().Add(b.pause()))
		c.Log.Warn("the API server takes no objects of a kind in a namespace; trying one at a time",
			"cluster", c.name, "kind", i.id.Kind.String(), "namespace", i.id.Namespace, "error", message)
	}
}

// answered enters a write that the server took, or refused because of the object.
func (c *cluster) answered(conn *mirror.Connection, i *item) {
	if conn == c.now.Conn && c.faults.inRow > 0 && !c.now.Suspended {
		c.faults.inRow = 0
		c.clearProblem()
	}
	b := c.outages[areaOf(i)]
	if b == nil {
		return
	}
	c.endOutage(areaOf(i), b)
	if b.closed() {
		c.Log.Info("the API server takes objects of the kind again", "cluster", c.name, "kind", i.id.Kind.String(), "namespace", i.id.Namespace)
	}
}

// endOutage ends an outage.
func (c *cluster) endOutage(at area, b *outage) {
	delete(c.outages, at)
	for _, i := range b.waiting {
		i.history.refusal = nil
		if c.items[i.id] == i {
			c.enqueue(i, false)
		}
	}
}

// resetRefusals forgets all failures, because the connection is another one.
func (c *cluster) resetRefusals() {
	for at, b := range c.outages {
		c.endOutage(at, b)
	}
	for _, i := range c.items {
		i.history.refusal = nil
	}
}

// outageOf is why the server takes no objects like an item at present; empty if it does, or if the item is the trial.
func (c *cluster) outageOf(i *item) string {
	b := c.outages[areaOf(i)]
	if b == nil || !b.closed() || b.trial == i {
		return ""
	}
	return b.message
}

// park makes an item wait for the end of an outage, or for its turn as the trial.
func (c *cluster) park(i *item) {
	if b := c.outages[areaOf(i)]; !i.history.failing().parked {
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

// ring implements sleeper: it tries the next item of the area, or ends the outage if there is none.
func (b *outage) ring(c *cluster, now time.Time) {
	if c.outages[b.area] != b || !b.closed() {
		return
	}
	if b.trial == nil || !b.trial.place.working && !b.trial.place.queued {
		b.trial = b.next(func(i *item) bool { return c.items[i.id] == i && i.history.parked() })
		if b.trial == nil {
			c.endOutage(b.area, b)
			return
		}
		b.trial.history.refusal.due = time.Time{}
		c.enqueue(b.trial, false)
	}
	c.wakeAt(b, now.Add(b.pause()))
}

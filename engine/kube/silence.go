package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// DefaultSilence is how long a watch may deliver nothing. API servers send a bookmark
// every minute, and the first one after two.
const DefaultSilence = 150 * time.Second

// errSilent makes the reflector list instead of streaming a list over a watch.
var errSilent = errors.New("the last watch delivered nothing")

// Heard is when the server last sent something: an event, a bookmark or a list. It is
// zero before the first, and until then nothing is known.
func (l *Lister) Heard() time.Time {
	if at := l.heard.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

func (l *Lister) hear() {
	now := time.Now()
	l.heard.Store(&now)
}

// audible is a watch that ends when it delivers nothing for a time. The connection may
// look healthy all that while: what is between may answer pings and swallow events.
type audible struct {
	source watch.Interface
	lister *Lister
	events chan watch.Event
	// stopped is closed by the first Stop.
	stopped context.Context
	stop    context.CancelFunc
}

// newAudible takes the place of a watch, which whoever gets it must stop.
func newAudible(ctx context.Context, l *Lister, source watch.Interface) *audible {
	a := &audible{source: source, lister: l, events: make(chan watch.Event)}
	a.stopped, a.stop = context.WithCancel(ctx)
	go a.run(cmp.Or(l.Silence, DefaultSilence))
	return a
}

// ResultChan implements watch.Interface.
func (a *audible) ResultChan() <-chan watch.Event { return a.events }

// Stop implements watch.Interface.
func (a *audible) Stop() {
	a.stop()
	a.source.Stop()
}

// run passes events on. Only the server's silence counts: while the reader is busy, no
// time passes.
func (a *audible) run(silence time.Duration) {
	defer close(a.events)
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case event, open := <-a.source.ResultChan():
			if !open {
				return
			}
			a.lister.hear()
			if event.Type == watch.Bookmark {
				a.lister.event() // the others are counted where they are stored
			}
			a.lister.silent.Store(false)
			if !a.send(event) {
				return
			}
			timer.Reset(silence)
		case <-timer.C:
			a.lister.onSilence()
			a.send(watch.Event{Type: watch.Error, Object: listAgain(silence)})
			return
		case <-a.stopped.Done():
			return
		}
	}
}

// send passes an event on, unless the reader stops.
func (a *audible) send(event watch.Event) bool {
	select {
	case a.events <- event:
		return true
	case <-a.stopped.Done():
		return false
	}
}

func (l *Lister) onSilence() {
	l.silent.Store(true)
	if l.Silent != nil {
		l.Silent()
	}
}

// listAgain is what a server answers if a watch cannot go on from where it was: the
// reflector lists the objects, instead of watching from there through what swallows events.
func listAgain(silence time.Duration) *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: fmt.Sprintf("the watch delivered nothing for %s", silence),
	}
}

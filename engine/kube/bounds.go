package kube

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// Bounds are what one API server may send, and make its reader hold. They are there for servers that
// send without end, or what takes far more memory than bytes.
type Bounds struct {
	// Answers bounds what is being read and decoded at the same time, in bytes of memory (see weigh).
	// Lists come in pages, so that it does not grow with the cluster.
	Answers int64
	// Kept bounds what is kept of the objects, and what waits until a list is complete, each in bytes of memory: a list takes the place of
	// what is kept, and both are there until it is complete.
	Kept int64
	// Events bounds the events of watches in EventsPeriod, without those that begin a watch as a list.
	Events int
	// Pause is the first pause after a bound was exceeded, in which the server is asked nothing. It
	// is doubled each time, at most to PauseMost.
	Pause, PauseMost time.Duration
}

const (
	// EventsPeriod is the time in which Bounds.Events are counted.
	EventsPeriod = time.Minute
	// maxEvent bounds one event of a watch, in bytes: etcd takes objects of 1.5 MiB, and JSON is up to
	// three times as long as what is stored.
	maxEvent = 8 << 20
	// usualMemory is what Bounds are shares of where the process has no limit.
	usualMemory = 4 << 30
)

// DefaultBounds follow from the memory limit of the process (GOMEMLIMIT; 4 GiB if there is none): one
// cluster may have an eighth of it for what it is sending, and a quarter for what is kept. 5,000 events
// a second for a minute are chosen, not measured.
func DefaultBounds() Bounds {
	memory := debug.SetMemoryLimit(-1)
	if memory == math.MaxInt64 {
		memory = usualMemory
	}
	return Bounds{Answers: memory / 8, Kept: memory / 4, Events: 300_000, Pause: 10 * time.Second, PauseMost: 10 * time.Minute}
}

// or takes for each zero value that of other bounds.
func (b Bounds) or(other Bounds) Bounds {
	return Bounds{
		Answers: cmp.Or(b.Answers, other.Answers), Kept: cmp.Or(b.Kept, other.Kept), Events: cmp.Or(b.Events, other.Events),
		Pause: cmp.Or(b.Pause, other.Pause), PauseMost: cmp.Or(b.PauseMost, other.PauseMost),
	}
}

// TooMuchError says that an API server sent more than its Bounds allow. It is asked again after a pause.
type TooMuchError struct {
	// Server is its URL.
	Server string
	// What it sent, and what to do about it.
	What string
}

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("%s sends too much: %s; it is asked again after a pause", e.Server, e.What)
}

// NotUsed is that of NotUsed.
func (e *TooMuchError) NotUsed() {}

package pump

import (
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Standstill ends a stream on which the other side takes nothing, though it is heard.
type Standstill struct {
	// Head is the kind and the name of the object that waits first; empty if none does, or nobody knows.
	Head string
	// What says what is not taken, and for how long.
	What string
}

// Error implements error.
func (s *Standstill) Error() string { return s.What }

// GRPCStatus is what the other side is told.
func (s *Standstill) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, s.What) }

// A connection is stuck once StuckAfter of its streams have ended by a Standstill within StuckWithin: it is made again and again, and
// nothing passes.
const (
	StuckAfter  = 3
	StuckWithin = 10 * time.Minute
)

// Standstills counts streams that ended by a Standstill. Its methods may be called from any goroutine. The zero Standstills counts.
type Standstills struct {
	mu   sync.Mutex
	at   []time.Time
	head string
}

// Note takes down why a stream ended.
func (s *Standstills) Note(why error, now time.Time) {
	var stands *Standstill
	if !errors.As(why, &stands) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	s.at, s.head = append(s.at, now), stands.Head
}

// forget drops what is too long ago, under the lock.
func (s *Standstills) forget(now time.Time) {
	s.at = slices.DeleteFunc(s.at, func(at time.Time) bool { return now.Sub(at) >= StuckWithin })
	s.at = s.at[max(0, len(s.at)-maxStandstills):]
}

// maxStandstills bounds how many are counted.
const maxStandstills = 100

// Count is how many there were within StuckWithin, since when, and the object that waited first the last time.
func (s *Standstills) Count(now time.Time) (times int, since time.Time, head string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forget(now); len(s.at) == 0 {
		return 0, time.Time{}, ""
	}
	return len(s.at), s.at[0], s.head
}

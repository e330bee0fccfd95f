package hub

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Standing is what stands in a cluster because the hub wrote it, and what its agent is to keep so while the hub is away. Its methods may be
// called from any goroutine.
type Standing struct {
	mu      sync.Mutex
	objects map[string]map[relay.Key]func() ([]byte, error)
	sender  *relay.Sender
	// settled is how often everything stood, and told that the agent knows of the last time.
	settled uint64
	told    bool
	// generation is what the agent was told last.
	generation uint64
	// signal is that of the stream that there is, which end ends.
	signal chan struct{}
	end    context.CancelCauseFunc
}

func newStanding() *Standing {
	s := &Standing{objects: map[string]map[relay.Key]func() ([]byte, error){}, signal: make(chan struct{}, 1)}
	var names []string
	for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		name := relay.KindName(kind)
		names = append(names, name)
		s.objects[name] = map[relay.Key]func() ([]byte, error){}
	}
	s.sender = relay.NewSender(standingContents{s}, names...)
	return s
}

// Stands implements apply.Witness.
func (s *Standing) Stands(of mirror.ID, document func() ([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, wire := relay.Key{Namespace: of.Namespace, Name: of.Name}, relay.KindName(of.Kind)
	if document == nil {
		delete(s.objects[wire], key)
	} else {
		s.objects[wire][key] = document
	}
	s.sender.Changed(wire, key)
	pump.Signal(s.signal)
}

// Settled implements apply.Witness. Before the first time after a start, it is not known what else there is.
func (s *Standing) Settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wire := range s.objects {
		s.sender.SetComplete(wire, true)
	}
	s.settled, s.told = s.settled+1, false
	pump.Signal(s.signal)
}

// standingContents are the objects for the sender, under the lock.
type standingContents struct{ *Standing }

// Object implements relay.Contents.
func (s standingContents) Object(kind string, of relay.Key) ([]byte, bool) {
	document, exists := s.objects[kind][of]
	if !exists {
		return nil, false
	}
	raw, err := document()
	return raw, err == nil // it was written like that before
}

// Version implements relay.Contents.
func (standingContents) Version(string) uint64 { return 0 }

// begin makes a stream the one that there is.
func (s *Standing) begin(end context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end(errReplaced)
	}
	s.end, s.told = end, false
	s.sender.Begin()
	pump.Signal(s.signal)
}

func (s *Standing) next() (*relayv1.Data, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if frame := s.sender.Next(); frame != nil {
		return frame, true
	}
	if !s.told && s.settled > 0 && s.sender.Unacked() == 0 {
		s.told, s.generation = true, s.settled
		return &relayv1.Data{Frame: &relayv1.Data_Settled{Settled: &relayv1.Settled{Generation: s.settled}}}, true
	}
	return nil, false
}

func (s *Standing) progress() (uint64, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sender.Progress()
}

func (s *Standing) receive(f *relayv1.Feedback) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pump.Signal(s.signal)
	return s.sender.Receive(f)
}

// wake has the stream that there is look again for what to send.
func (s *Standing) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	pump.Signal(s.signal)
}

// Standing is what the agent of a cluster is to keep.
func (h *Hub) Standing(cluster string) *Standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.standing[cluster]
	if s == nil {
		s = newStanding()
		h.standing[cluster] = s
	}
	return s
}

// Desire implements relayv1.RelayServer.
func (h *Hub) Desire(in grpc.BidiStreamingServer[relayv1.Feedback, relayv1.Data]) error {
	first, err := pump.First(h.options.Times, in.Recv)
	if err != nil {
		return err
	}
	who, err := h.enter(in.Context(), first.GetHello())
	if err != nil {
		return err
	}
	defer who.leave()
	if err := in.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: h.hello()}}); err != nil {
		return err
	}
	if who.cluster.owes {
		return h.collectDebt(in, who)
	}
	standing, leaving := h.Standing(who.cluster.name), &parts{farewell: &who.cluster.farewell}
	standing.begin(who.end)
	meter := &h.book(who.cluster.name).desire
	counted := meter.Begin()
	go pump.Receive(h.options.Times, pump.Receiving(counted, in.Recv), func(f *relayv1.Feedback) error {
		return leaving.take(f, who.end, standing.receive)
	}, who.end)
	err = pump.Run(who.ctx, pump.Out[*relayv1.Data]{
		Times: h.options.Times, Signal: standing.signal, Send: pump.Sending(counted, in.Send), Progress: standing.progress,
		Next: func() (*relayv1.Data, bool) { return leaving.next(standing.next) },
		Beat: func() *relayv1.Data { return &relayv1.Data{Frame: &relayv1.Data_Beat{Beat: meter.Beat()}} },
	})
	err = who.cause(err)
	counted.End(err)
	h.book(who.cluster.name).standsDown.Note(err, time.Now())
	return err
}

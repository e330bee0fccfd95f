package hub

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// This file says goodbye to agents: of clusters that leave, when nothing of ours is left there, and of those that were deregistered while
// they were away, which may do nothing but hear that.

// Debtors is implemented by Agents who know of clusters that were deregistered while their agents were away.
type Debtors interface {
	// Owes reports whether what is ours was left in such a cluster. Its agent is admitted as before.
	Owes(cluster string) bool
	// Paid says that nothing is left there.
	Paid(ctx context.Context, cluster string) error
}

// Parting is what the agent of a cluster says that is to remove itself.
type Parting struct {
	// Gone: nothing of it is left. Stays is why it cannot remove itself; empty if it has not said that.
	Gone  bool
	Stays string
}

// farewell is what is said between the hub and an agent that is to remove itself.
type farewell struct {
	mu sync.Mutex
	// asked: the agent is to be told.
	asked   bool
	parting Parting
}

// Part has the agent of a cluster remove what is the management plane's, and then itself. It may be called again, and returns Parting.
func (h *Hub) Part(cluster string) Parting {
	h.mu.Lock()
	c := h.clusters[cluster]
	h.mu.Unlock()
	if c == nil {
		return Parting{}
	}
	f := &c.farewell
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asked {
		f.asked = true
		h.options.Log.Warn("the agent of a cluster is told to remove itself, because the cluster is deregistered", "cluster", cluster)
		h.Standing(cluster).wake()
	}
	return f.parting
}

// Parting is what the agent of a cluster has said so far.
func (h *Hub) Parting(cluster string) Parting {
	h.mu.Lock()
	c := h.clusters[cluster]
	h.mu.Unlock()
	if c == nil {
		return Parting{}
	}
	c.farewell.mu.Lock()
	defer c.farewell.mu.Unlock()
	return c.farewell.parting
}

// answered takes what an agent says. It counts only if the agent was told.
func (f *farewell) answered(g *relayv1.Goodbye) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked {
		f.parting = Parting{Gone: g.GetCollect()}
		if !f.parting.Gone {
			f.parting.Stays = relay.Text(g.GetReason())
		}
	}
}

func (f *farewell) isAsked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// errParted ends the streams of an agent that has removed itself.
var errParted = status.Error(codes.Canceled, "the cluster is deregistered, and its agent has removed itself")

// goodbye is what an agent is told.
func goodbye() *relayv1.Data {
	return &relayv1.Data{Frame: &relayv1.Data_Goodbye{Goodbye: &relayv1.Goodbye{Reason: "the cluster is deregistered", Collect: true}}}
}

// parts are the frames of one stream of Desire with which an agent is told to remove itself.
type parts struct {
	*farewell
	told bool
}

// next is the next frame of a stream: that of next, and after each word that everything stands, the goodbye.
func (p *parts) next(next func() (*relayv1.Data, bool)) (*relayv1.Data, bool) {
	if frame, more := next(); more {
		p.told = p.told && frame.GetSettled() == nil
		return frame, true
	}
	if p.told || !p.isAsked() {
		return nil, false
	}
	p.told = true
	return goodbye(), true
}

// take takes a goodbye, or passes on another frame.
func (p *parts) take(f *relayv1.Feedback, end context.CancelCauseFunc, pass func(*relayv1.Feedback) error) error {
	g := f.GetGoodbye()
	if g == nil {
		return pass(f)
	}
	p.answered(g)
	if g.GetCollect() && p.isAsked() {
		end(errParted)
	}
	return nil
}

// debt is the cluster of an agent that has come back after its cluster was deregistered; nil if nothing is left there.
func (h *Hub) debt(name string) *cluster {
	debtors, ok := h.options.Agents.(Debtors)
	if !ok || !debtors.Owes(name) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.clusters[name]; c != nil {
		return c
	}
	c := h.debts[name]
	if c == nil {
		c = &cluster{name: name, exchange: newExchange(name), callers: map[*caller]bool{}, owes: true}
		c.farewell.asked = true
		h.debts[name] = c
		h.options.Log.Warn("the agent of a cluster has come back that was deregistered; it is told to remove what is left there", "cluster", name)
	}
	return c
}

// forgive drops the debt of a cluster, and ends the streams of its agent, under the lock: it is registered again, or has paid.
func (h *Hub) forgive(name string, cause error) {
	c := h.debts[name]
	if c == nil {
		return
	}
	delete(h.debts, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUp(cause)
}

// collectDebt tells the agent of a cluster that was deregistered to remove what is left there, and nothing else.
func (h *Hub) collectDebt(in grpc.BidiStreamingServer[relayv1.Feedback, relayv1.Data], who *caller) error {
	p := &parts{farewell: &who.cluster.farewell}
	nothing := func() (*relayv1.Data, bool) { return nil, false }
	return hold(h, who, in.Recv, func(f *relayv1.Feedback) error {
		g := f.GetGoodbye()
		switch {
		case g == nil:
			return nil
		case !g.GetCollect():
			h.options.Log.Warn("the agent of a deregistered cluster cannot remove itself", "cluster", who.cluster.name, "reason", relay.Text(g.GetReason()))
			return nil
		}
		return h.paid(who)
	}, pump.Out[*relayv1.Data]{
		Send: in.Send, Next: func() (*relayv1.Data, bool) { return p.next(nothing) },
		Beat: func() *relayv1.Data { return &relayv1.Data{Frame: &relayv1.Data_Beat{Beat: &relayv1.Beat{}}} },
	})
}

// paid notes that nothing is left in a cluster, and ends the streams of its agent.
func (h *Hub) paid(who *caller) error {
	name := who.cluster.name
	debtors, ok := h.options.Agents.(Debtors)
	if !ok {
		return nil
	}
	if err := debtors.Paid(who.ctx, name); err != nil {
		h.options.Log.Error("nothing is left in a deregistered cluster, and that could not be noted", "cluster", name, "error", err)
		return err
	}
	h.options.Log.Info("nothing is left in a deregistered cluster: its agent has removed itself", "cluster", name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgive(name, errParted)
	return nil
}

// hold keeps a stream open on which nothing is passed on but what out and take say.
func hold[In, Out any](h *Hub, who *caller, receive func() (In, error), take func(In) error, out pump.Out[Out]) error {
	out.Times, out.Signal = h.options.Times, make(chan struct{})
	if out.Next == nil {
		out.Next = func() (none Out, more bool) { return none, false }
	}
	go pump.Receive(h.options.Times, receive, take, who.end)
	return who.cause(pump.Run(who.ctx, out))
}

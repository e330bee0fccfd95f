package agent

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Pauses before readings of proxies are sent again: while the hub is away, and to one that takes none.
const (
	tellAgain = 2 * time.Second
	tellLater = 5 * time.Minute
)

// tell sends readings of proxies to the hub until ctx ends, by a connection of its own: what reports the cluster does not wait for it, and
// does not end with it.
func (a *Agent) tell(ctx context.Context) {
	last, failures := "", 0
	for ctx.Err() == nil {
		pause := tellAgain
		if reason, since := a.contact.get(); reason.Code == "" && !since.IsZero() {
			began := time.Now()
			err := a.telling(ctx)
			a.readings.Want(traffic.Off)
			if ctx.Err() != nil {
				return
			}
			if time.Since(began) > held {
				failures = 0
			}
			failures++
			pause = max(tellAgain, kube.Jitter(kube.Backoff(a.options.Redial, a.options.RedialMost, failures)))
			if status.Code(err) == codes.Unimplemented {
				pause = tellLater
			}
			if text := status.Convert(err).Message(); text != last {
				last = text
				a.options.Log.Info("readings of proxies are not sent to the hub; trying again, everything else goes on", "hub", a.options.Hub, "reason", relay.Text(text), "pause", pause)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// telling sends readings until the stream ends.
func (a *Agent) telling(ctx context.Context) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, end := context.WithCancel(ctx)
	defer end()
	in, err := relayv1.NewRelayClient(conn).Telemetry(ctx)
	if err != nil {
		return err
	}
	first, err := greet(in, &relayv1.Telling{Hello: a.hello()})
	if err != nil {
		return err
	}
	if err := a.obey(first.GetHello()); err != nil {
		return err
	}
	want := func(w *relayv1.Wanted) {
		a.readings.Want(doorOf(w))
		if w.GetRecorded() {
			a.readings.Logs.Want(relay.WantedLogsOf(w.GetRecords()))
		}
	}
	want(first)
	telling := func(t *relayv1.Telling) *relayv1.Telling {
		lost := a.readings.Lost()
		t.Dropped, t.Refused, t.Refusal = lost.Dropped, lost.Refused, lost.Refusal
		return t
	}
	a.readings.Logs.Begin()
	counted := a.meters.telemetry.Begin()
	return stream[relayv1.Telling, relayv1.Wanted]{
		receive: pump.Receiving(counted, in.Recv), take: func(w *relayv1.Wanted) error { want(w); return nil },
		out: pump.Out[*relayv1.Telling]{
			Send: pump.Sending(counted, in.Send), Signal: a.readings.Signal(),
			Next: func() (*relayv1.Telling, bool) {
				s, more := a.readings.Next()
				if !more {
					logs, more := a.readings.Logs.Next()
					if !more {
						return nil, false
					}
					return telling(&relayv1.Telling{Logged: relay.LoggedOf(logs)}), true
				}
				return telling(&relayv1.Telling{Reading: relay.ReadingOf(s)}), true
			},
			Beat: func() *relayv1.Telling { return telling(&relayv1.Telling{Beat: &relayv1.Beat{}}) },
		},
	}.run(ctx, a.options.Times, counted)
}

// doorOf is how readings are wanted.
func doorOf(w *relayv1.Wanted) traffic.Door {
	switch {
	case w.GetPushed():
		return traffic.Push
	case w.GetWanted():
		return traffic.Agent
	}
	return traffic.Off
}

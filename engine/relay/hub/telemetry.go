package hub

import (
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Readings takes what agents read of the proxies of their clusters. It decides about numbers, and about nothing else. Its methods do not wait.
type Readings interface {
	// Wanted is how the agent of a cluster is to get what its proxies count: traffic.Agent, traffic.Push, or traffic.Off.
	Wanted(cluster string) traffic.Door
	// Take takes what an agent says of one proxy of its cluster.
	Take(cluster string, s *telemetry.Sent)
	// Dropped notes how many readings a process of an agent has dropped.
	Lost(cluster, incarnation string, lost telemetry.Lost)
	// Records are the AccessLogRecords of which the agent of a cluster has to know.
	Records(cluster string) []telemetry.LogRecord
	// TakeLogs takes what a process of an agent says of the log of one proxy of its cluster.
	TakeLogs(cluster, incarnation string, s *telemetry.SentLogs)
}

// telling is the stream of Telemetry of a cluster.
type telling struct {
	mu  sync.Mutex
	now *caller
}

// begin makes the stream of a caller the one whose readings are taken.
func (t *telling) begin(who *caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now != nil {
		t.now.end(errReplaced)
	}
	t.now = who
}

// take calls a function if the stream of a caller is the one whose readings are taken: those of one agent have to be in their order.
func (t *telling) take(who *caller, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == who {
		f()
	}
}

// Telemetry implements relayv1.RelayServer. Readings are of the cluster whose agent the caller is, whatever they say.
func (h *Hub) Telemetry(in grpc.BidiStreamingServer[relayv1.Telling, relayv1.Wanted]) error {
	first, err := pump.First(h.options.Times, in.Recv)
	if err != nil {
		return err
	}
	who, err := h.enter(in.Context(), first.GetHello())
	if err != nil {
		return err
	}
	defer who.leave()
	readings, name := h.options.Readings, who.cluster.name
	if readings == nil {
		return status.Error(codes.Unimplemented, "this hub takes no readings of proxies")
	}
	var told []telemetry.LogRecord
	wanted := func(w *relayv1.Wanted) *relayv1.Wanted {
		door := readings.Wanted(name)
		w.Wanted, w.Pushed = door == traffic.Agent, door == traffic.Push
		if records := readings.Records(name); w.GetHello() != nil || !reflect.DeepEqual(told, records) {
			told, w.Recorded, w.Records = records, true, relay.LogRecordsOf(records)
		}
		return w
	}
	if err := in.Send(wanted(&relayv1.Wanted{Hello: h.hello()})); err != nil {
		return err
	}
	who.cluster.telling.begin(who)
	counted := h.book(name).telemetry.Begin()
	go pump.Receive(h.options.Times, pump.Receiving(counted, in.Recv), func(frame *relayv1.Telling) error {
		who.cluster.telling.take(who, func() {
			readings.Lost(name, who.incarnation, telemetry.Lost{Dropped: frame.GetDropped(), Refused: frame.GetRefused(), Refusal: frame.GetRefusal()})
			if r := frame.GetReading(); r != nil {
				readings.Take(name, relay.SentOf(r))
			}
			if logged := frame.GetLogged(); logged != nil {
				readings.TakeLogs(name, who.incarnation, relay.SentLogsOf(logged))
			}
		})
		return nil
	}, who.end)
	err = pump.Run(who.ctx, pump.Out[*relayv1.Wanted]{
		Times: h.options.Times, Send: pump.Sending(counted, in.Send),
		Next: func() (*relayv1.Wanted, bool) { return nil, false },
		Beat: func() *relayv1.Wanted { return wanted(&relayv1.Wanted{Beat: &relayv1.Beat{}}) },
	})
	err = who.cause(err)
	counted.End(err)
	return err
}

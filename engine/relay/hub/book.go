package hub

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Status is what a Hub knows of the connection of a cluster's agent.
type Status struct {
	Cluster string
	// Relay is what statuses tell.
	Relay *snapshot.Relay
	// Incarnation tells processes of the agent apart, and Address is where it dialled from; empty if it was never here.
	Incarnation, Address string
	// Objects is how many there are of the cluster. Complete: these are all.
	Objects  int
	Complete bool
	// Report, Desire, Exchange and Telemetry are the numbers of its streams. The last one says nothing of how far the others are.
	Report, Desire, Exchange, Telemetry pump.Numbers
	// Generation is how often everything stood, and Told that of which the agent knows.
	Generation, Told uint64
	// Refused is the last caller that was refused as its agent, and Refusals is how many were.
	Refused  *Refusal
	Refusals uint64
	// Mismatches is how often what was here differed from what the agent said that it is.
	Mismatches uint64
}

// Heard is when something arrived from the agent last; zero if nothing ever did.
func (s *Status) Heard() time.Time {
	return slices.MaxFunc([]time.Time{s.Report.Heard, s.Desire.Heard, s.Exchange.Heard}, time.Time.Compare)
}

// LagUp is for how long the agent has something that the hub is not known to have.
func (s *Status) LagUp(now time.Time) time.Duration {
	if s.Report.Open && !s.Complete {
		return max(now.Sub(s.Report.Since), 0)
	}
	return s.Report.ToldLag(now)
}

// LagDown is for how long the hub has something that the agent is not known to have.
func (s *Status) LagDown(now time.Time) time.Duration {
	return max(s.Desire.Lag(now), s.Exchange.Lag(now))
}

// Refusal is a caller that was refused.
type Refusal struct {
	snapshot.RelayRefusal
	// At is when it was refused last.
	At time.Time
}

// book is what a Hub notes of a cluster. It outlives streams.
type book struct {
	// plane is the UID of the management plane.
	plane                               string
	report, desire, exchange, telemetry pump.Meter

	mu sync.Mutex
	// began is since when there is something to note.
	began time.Time
	// connected is since when there is a stream of Report, reconnections left out; zero if there is none. lost is when the last one ended,
	// and why; zero if there was none.
	connected, lost               time.Time
	why                           string
	version, incarnation, address string
	ends                          time.Time
	refused                       *Refusal
	refusals                      uint64
	// standsDown counts streams that ended because the agent took nothing. stuckUp is how many the agent says that ended because the hub
	// took nothing, stuckAt is what waited, and stuckTold when it said so.
	standsDown pump.Standstills
	stuckUp    uint32
	stuckAt    string
	stuckTold  time.Time
	// verified is the last comparison; nil if there was none.
	verified *snapshot.RelayVerified
	// told is what statuses tell now.
	told *snapshot.Relay
	// before is how many clusters are compared before this one; negative if it does not wait. atOnce is how many are at once.
	before func() int
	atOnce int
	// telling is held by who passes that on. It comes before mu.
	telling sync.Mutex
}

// whole is a time as statuses have it.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func (h *Hub) book(cluster string) *book {
	h.booksMu.Lock()
	defer h.booksMu.Unlock()
	b := h.books[cluster]
	if b == nil {
		b = &book{plane: h.options.Plane, began: time.Now()}
		h.books[cluster] = b
	}
	return b
}

// forget drops what is noted of a cluster.
func (h *Hub) forget(cluster string) {
	h.booksMu.Lock()
	defer h.booksMu.Unlock()
	delete(h.books, cluster)
}

// admitted notes who an agent is.
func (b *book) admitted(c *caller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version, b.incarnation, b.address = c.version, c.incarnation, c.address
	b.stuckUp, b.stuckAt, b.stuckTold = c.stuck, c.stuckAt, time.Now()
	b.ends = time.Time{}
	if len(c.shown) > 0 {
		b.ends = whole(c.shown[0].NotAfter)
	}
}

// Claimant is implemented by Agents who know whose agent a caller says that it is, whether or not that is true.
type Claimant interface {
	// Claimed is the cluster that is named by a certificate or by a token; empty if none is.
	Claimed(shown []*x509.Certificate, token string) string
}

// claimed is the cluster whose agent a caller says that it is; name if that is known.
func (h *Hub) claimed(ctx context.Context, name, token string) string {
	if claimant, ok := h.options.Agents.(Claimant); ok && name == "" {
		shown, _ := callerOf(ctx)
		return claimant.Claimed(shown, token)
	}
	return name
}

// coded is implemented by errors that say more than the stage at which a caller was refused.
type coded interface{ Code() snapshot.Code }

// refuse notes that a caller was refused as the agent of a cluster, which the caller may only claim to be: of one that is not registered
// nothing is kept.
func (h *Hub) refuse(ctx context.Context, cluster string, code snapshot.Code, err error) {
	h.mu.Lock()
	c := h.clusters[cluster]
	h.mu.Unlock()
	if c == nil {
		return
	}
	var more coded
	if errors.As(err, &more) {
		code = more.Code()
	}
	r := &Refusal{At: time.Now()}
	r.Reason = snapshot.ReasonOf(code, err)
	_, address := callerOf(ctx)
	r.Address, r.Since = hostOf(address), whole(r.At)
	b := h.book(cluster)
	if b.refuse(r) {
		h.tell(c)
	}
}

// refusalEvery is how often another caller that was refused is told: whoever reaches the port can be refused, as often as they like.
const refusalEvery = 10 * time.Second

// refuse notes a refusal, and reports whether it is to be told.
func (b *book) refuse(r *Refusal) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusals++
	was := b.refused
	switch {
	case was == nil:
	case was.Code == r.Code && was.What == r.What && was.Address == r.Address:
		r.Since = was.Since
	case r.At.Sub(was.At) < refusalEvery:
		return false
	}
	b.refused = r
	return true
}

// hostOf leaves out the port of a caller, which is another one each time.
func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		return strings.Trim(address[:i], "[]")
	}
	return address
}

// begins notes that a stream of Report began.
func (b *book) begins() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.connected.IsZero() {
		b.connected = whole(time.Now())
	}
	b.lost, b.why = time.Time{}, ""
}

// await notes where it is seen how many clusters are compared before.
func (b *book) await(before func() int, atOnce int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.atOnce = before, atOnce
}

// losing notes that there was no stream of Report for a time; false if there is one.
func (b *book) losing(why string) bool {
	n := b.report.Numbers()
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.Open {
		return false
	}
	b.connected, b.lost, b.why = time.Time{}, whole(n.Since), why
	return true
}

// refusalShown is how long a refusal is told while the agent of the cluster is connected.
const refusalShown = time.Hour

// relay is what statuses tell.
func (b *book) relay(now time.Time, remote *watch.Remote) *snapshot.Relay {
	report, desire, exchange := b.report.Numbers(), b.desire.Numbers(), b.exchange.Numbers()
	s := Status{Report: report, Desire: desire, Exchange: exchange}
	out := &snapshot.Relay{}
	if remote != nil {
		out.Objects, s.Complete = remote.Reported()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out.Version, out.CertificateEnds, out.Verified = b.version, b.ends, b.verified
	if r := b.refused; r != nil && (b.connected.IsZero() || r.At.After(b.connected) && now.Sub(r.At) < refusalShown) {
		told := r.RelayRefusal
		out.Refused = &told
	}
	if up := s.LagUp(now); up >= snapshot.RelayLag {
		out.UpSince = whole(now.Add(-up))
	}
	if down := s.LagDown(now); down >= snapshot.RelayLag {
		out.DownSince = whole(now.Add(-down))
	}
	b.phase(out, &report, s.Complete)
	b.standstill(out, now)
	if was := b.told; was != nil && was.Phase == out.Phase { // measured anew, they differ by a second
		if near(was.UpSince, out.UpSince) {
			out.UpSince = was.UpSince
		}
		if near(was.DownSince, out.DownSince) {
			out.DownSince = was.DownSince
		}
		if out.Phase == snapshot.RelayStuck {
			out.Since = was.Since
		}
	}
	return out
}

// waits is how many clusters are compared before, under the lock; negative if it does not wait.
func (b *book) waits() int {
	if b.before == nil {
		return -1
	}
	return b.before()
}

// standstill says that the connection is stuck if streams end again and again because nothing is taken, under the lock. Between two of them,
// it looks as if all were well.
func (b *book) standstill(out *snapshot.Relay, now time.Time) {
	if b.connected.IsZero() {
		return
	}
	within := pump.StuckWithin
	if times, since, at := b.standsDown.Count(now); times >= pump.StuckAfter {
		out.Phase, out.Since = snapshot.RelayStuck, whole(since)
		out.Reason = snapshot.RelayStandstill("the agent takes nothing of what the hub sends", times, within, at)
	} else if b.stuckUp >= pump.StuckAfter && now.Sub(b.stuckTold) < within {
		out.Phase, out.Since = snapshot.RelayStuck, whole(b.stuckTold)
		out.Reason = snapshot.RelayStandstill("the hub takes nothing of what the agent reports", int(b.stuckUp), within, b.stuckAt)
	}
}

// near reports whether two times are the same but for how they were measured.
func near(a, b time.Time) bool {
	const measured = 3 * time.Second
	return !a.IsZero() && !b.IsZero() && b.Sub(a).Abs() <= measured
}

// phase says how far the connection is, under the lock.
func (b *book) phase(out *snapshot.Relay, report *pump.Numbers, complete bool) {
	switch {
	case !b.connected.IsZero() && complete && (!out.UpSince.IsZero() || !out.DownSince.IsZero()):
		out.Phase, out.Since = snapshot.RelayStuck, latest(out.UpSince, out.DownSince)
		out.Reason = snapshot.Reason{Code: snapshot.RelayBlocked, What: "what is sent to the hub is not acknowledged", Hint: snapshot.RelayStuckHint}
		if !out.DownSince.IsZero() {
			out.Reason.What = "what the hub sends to the agent is not acknowledged"
		}
	case !b.connected.IsZero() && complete:
		out.Phase, out.Since = snapshot.RelayConnected, b.connected
	case !b.connected.IsZero():
		out.Phase, out.Since = snapshot.RelayResync, whole(report.Since)
		out.Reason = snapshot.Reason{Code: snapshot.RelayComparing, What: "what the hub has of the cluster is compared with what the agent reports"}
		if n := b.waits(); n >= 0 {
			out.Reason.What = fmt.Sprintf("its agent is connected, and what it reports waits to be compared: %d wait before it, at most %d are compared at once", n, b.atOnce)
			out.Reason.Hint = "this takes seconds for each hundred of clusters; until then the cluster stays as it is"
		}
	case out.Refused != nil && !out.Refused.Since.Before(b.lost):
		out.Phase, out.Since, out.Reason = snapshot.RelayRefused, out.Refused.Since, out.Refused.Reason
	case !b.lost.IsZero():
		out.Phase, out.Since = snapshot.RelayLost, b.lost
		out.Reason = snapshot.Reason{Code: snapshot.RelayAbsent, What: "its agent has no connection: " + b.why, Hint: b.absentHint()}
	default:
		out.Phase, out.Since = snapshot.RelayAwaited, whole(b.began)
		out.Reason = snapshot.Reason{Code: snapshot.RelayAbsent, What: "its agent has not connected yet", Hint: b.absentHint()}
	}
}

// absentHint is the next step where the agent does not connect.
func (b *book) absentHint() string {
	return "its own /readyz and its log say why: in the cluster, run kubectl logs deploy/" + snapshot.AgentNamePrefix + b.plane + " in the namespace of the agent"
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tell passes on what statuses tell of a cluster, if that is something new.
func (h *Hub) tell(c *cluster) {
	c.mu.Lock()
	remote := c.remote
	c.mu.Unlock()
	if remote == nil {
		return
	}
	b := h.book(c.name)
	b.telling.Lock()
	defer b.telling.Unlock()
	now := b.relay(time.Now(), remote)
	b.mu.Lock()
	if b.told.Equal(now) {
		now = b.told
	}
	b.told = now
	b.mu.Unlock()
	remote.SetRelay(now)
}

// tellEvery is how often it is looked whether there is something new to tell while there is a stream.
const tellEvery = 5 * time.Second

// keepTelling tells until ctx ends.
func (h *Hub) keepTelling(ctx context.Context, c *cluster) {
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.tell(c)
		}
	}
}

// Statuses are those of the clusters that are registered here, ascending by name.
func (h *Hub) Statuses() []Status {
	h.mu.Lock()
	clusters := make([]*cluster, 0, len(h.clusters))
	for _, c := range h.clusters {
		clusters = append(clusters, c)
	}
	h.mu.Unlock()
	out := make([]Status, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, h.status(c))
	}
	slices.SortFunc(out, func(a, b Status) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

func (h *Hub) status(c *cluster) Status {
	c.mu.Lock()
	remote := c.remote
	c.mu.Unlock()
	b := h.book(c.name)
	s := Status{
		Cluster: c.name, Relay: b.relay(time.Now(), remote), Report: b.report.Numbers(), Desire: b.desire.Numbers(), Exchange: b.exchange.Numbers(),
		Telemetry: b.telemetry.Numbers(),
	}
	if remote != nil {
		s.Objects, s.Complete = remote.Reported()
		s.Mismatches = remote.Mismatches()
	}
	s.Generation, s.Told = h.Standing(c.name).generations()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Incarnation, s.Address, s.Refusals = b.incarnation, b.address, b.refusals
	if b.refused != nil {
		r := *b.refused
		s.Refused = &r
	}
	return s
}

// generations are how often everything stood, and what of it the agent was told.
func (s *Standing) generations() (settled, told uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled, s.generation
}

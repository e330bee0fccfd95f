package serve

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// source is what the loop needs of a watch.Source.
type source interface {
	Changed() <-chan struct{}
	Input() *snapshot.Input
}

// sink is what the loop needs of an apply.Sink.
type sink interface {
	Apply(*snapshot.Output)
	Settled(context.Context) error
}

// translator is what the loop needs of an engine.Translator.
type translator interface {
	Translate(*snapshot.Input) *snapshot.State
}

// loop translates each new Input and passes the Output to the sink.
type loop struct {
	source  source
	sink    sink
	metrics *metrics
	log     *slog.Logger
	cause   *cause
	// newTranslator makes a translator with an empty memo.
	newTranslator func() translator

	// state is the latest translation; nil before the first.
	state atomic.Pointer[snapshot.State]
	// started is when the current translation started, in nanoseconds; 0 if there
	// is none.
	started atomic.Int64
}

func newLoop(from source, to sink, m *metrics, c *cause, log *slog.Logger) *loop {
	return &loop{
		source: from, sink: to, metrics: m, cause: c, log: log,
		newTranslator: func() translator { return engine.New(engine.Options{}) },
	}
}

// run translates until ctx ends.
func (l *loop) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	edits := make(chan time.Time, 1)
	group.Go(func() { l.measureEdits(ctx, edits) })

	var pace pacer
	memo := l.newTranslator()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.source.Changed():
		}
		seen := time.Now()
		if !sleep(ctx, pace.wait(seen)) {
			return
		}
		// The Input that is read below contains what was signalled in the meantime.
		select {
		case <-l.source.Changed():
		default:
		}
		input := l.source.Input()
		if was := l.state.Load(); input == nil || was != nil && was.Input == input {
			continue
		}
		began := time.Now()
		changed, err := l.translate(memo, input)
		if err != nil {
			l.log.Error("translation failed; what was written before stays in effect. This is a bug in meshctl, please report it", "error", err)
			l.metrics.panics.Inc()
			memo = l.newTranslator()
		}
		pace.record(began, time.Now(), changed)
		if changed {
			select {
			case edits <- seen:
			default: // the previous edit is still being written; both count as one
			}
		}
	}
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// translate translates one Input and passes the Output to the sink. It reports
// whether the Output differs from the previous one.
func (l *loop) translate(memo translator, input *snapshot.Input) (changed bool, err error) {
	defer func() {
		l.started.Store(0)
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%v\n%s", broken, debug.Stack())
		}
	}()
	began := time.Now()
	l.started.Store(began.UnixNano())
	before := l.state.Load()
	why := describe(before, input)
	state := memo.Translate(input)
	took := time.Since(began)

	counts := compare(before, state)
	l.metrics.observe(took, counts)
	if counts.changed() {
		l.cause.add(why)
	}
	l.state.Store(state)
	l.sink.Apply(state.Output)
	level := slog.LevelDebug
	if before == nil {
		level = slog.LevelInfo
	}
	l.log.Log(context.Background(), level, "translated", "cause", why, "took", took,
		"parts", counts.parts, "computed", counts.computed, "statuses", counts.statuses, "issues", len(state.Output.Issues))
	return counts.changed(), nil
}

// measureEdits measures the time until edits are written everywhere.
func (l *loop) measureEdits(ctx context.Context, edits <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case seen := <-edits:
			if l.sink.Settled(ctx) != nil {
				return
			}
			l.metrics.edits.Observe(time.Since(seen).Seconds())
			if len(edits) == 0 {
				l.cause.clear()
			}
		}
	}
}

// stuck reports whether a translation has been running for too long.
func (l *loop) stuck(now time.Time) bool {
	started := l.started.Load()
	return started != 0 && now.Sub(time.Unix(0, started)) > stuckAfter
}

// stuckAfter is much longer than the largest translation takes.
const stuckAfter = 2 * time.Minute

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

// loop turns each new Input into an Output and hands it over.
type loop struct {
	source  source
	sink    sink
	metrics *metrics
	log     *slog.Logger
	cause   *cause
	// newTranslator makes a translator that remembers nothing.
	newTranslator func() translator

	// state is the latest translation; nil before the first.
	state atomic.Pointer[snapshot.State]
	// working is when the translation under way began, in nanoseconds; 0 if none is.
	working atomic.Int64
}

func newLoop(from source, to sink, m *metrics, c *cause, log *slog.Logger) *loop {
	return &loop{
		source: from, sink: to, metrics: m, cause: c, log: log,
		newTranslator: func() translator { return engine.New(engine.Options{}) },
	}
}

// run works until ctx ends.
func (l *loop) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	edits := make(chan time.Time, 1)
	group.Go(func() { l.time(ctx, edits) })

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
		// What was signalled meanwhile is in the Input that is read now.
		select {
		case <-l.source.Changed():
		default:
		}
		input := l.source.Input()
		if was := l.state.Load(); input == nil || was != nil && was.Input == input {
			continue
		}
		began := time.Now()
		changed, err := l.round(memo, input)
		if err != nil {
			l.log.Error("translation failed; what was written before stays in force. This is a defect of meshctl, please report it", "error", err)
			l.metrics.panics.Inc()
			memo = l.newTranslator()
		}
		pace.round(began, time.Now(), changed)
		if changed {
			select {
			case edits <- seen:
			default: // those before are still being written; they are one edit
			}
		}
	}
}

// sleep waits and reports whether ctx lasted.
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

// round translates one Input and hands the Output over. It reports whether the
// Output asks for anything else than the one before.
func (l *loop) round(memo translator, input *snapshot.Input) (changed bool, err error) {
	defer func() {
		l.working.Store(0)
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%v\n%s", broken, debug.Stack())
		}
	}()
	began := time.Now()
	l.working.Store(began.UnixNano())
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

// time measures how long edits take until they are written everywhere.
func (l *loop) time(ctx context.Context, edits <-chan time.Time) {
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

// stuck reports whether a translation has been under way for too long.
func (l *loop) stuck(now time.Time) bool {
	began := l.working.Load()
	return began != 0 && now.Sub(time.Unix(0, began)) > stuckAfter
}

// stuckAfter is far beyond what the largest translation takes.
const stuckAfter = 2 * time.Minute

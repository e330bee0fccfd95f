package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// source is what the loop needs of a watch.Source.
type source interface {
	Changed() <-chan struct{}
	Input() *snapshot.Input
}

// sink is what the loop needs of an apply.Sink.
type sink interface {
	ApplyEdited(*snapshot.Output, apply.Edits)
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
	// home says whether what vanished from the management cluster was deleted by users;
	// nil if that is not asked.
	home home

	// translated, if set, is called after each translation; it does not block.
	translated func()

	// state is the latest translation; nil before the first.
	state atomic.Pointer[snapshot.State]
	// broken names the objects with which the translation panics; nil for none, and empty
	// if the cause is not known.
	broken atomic.Pointer[string]
	// frozen is why nothing is translated; nil if it is.
	frozen atomic.Pointer[string]
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
	var read *snapshot.Input
	var again <-chan time.Time // to look once more whether to translate
	memo := l.newTranslator()
	absences := newAbsences()
	excluded := &quarantine{objects: map[snapshot.Ref]quarantined{}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.source.Changed():
		case <-again:
		}
		seen, retried := time.Now(), again != nil
		if !sleep(ctx, pace.wait(seen)) {
			return
		}
		// The Input that is read below contains what was signalled in the meantime.
		select {
		case <-l.source.Changed():
		default:
		}
		input := l.source.Input()
		if input == nil || input == read && !retried {
			continue
		}
		read = input
		if again = l.freeze(ctx, input); again != nil {
			continue
		}
		began := time.Now()
		input = absences.mark(input)
		changed, err := l.translate(memo, excluded.clean(input))
		if err != nil {
			memo = l.newTranslator()
			changed = l.isolate(memo, excluded, input, err)
		} else {
			l.report(excluded)
		}
		if state := l.state.Load(); state != nil {
			again = absences.update(state, time.Now())
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

// isolate finds the objects with which the translation panics, keeps them out of it, and
// translates the rest.
func (l *loop) isolate(memo translator, excluded *quarantine, input *snapshot.Input, cause error) (changed bool) {
	l.metrics.panics.Inc()
	if changed, err := l.translate(memo, excluded.clean(input)); err == nil {
		l.report(excluded)
		l.log.Error("translation failed, and succeeded when nothing was reused. This is a bug in meshctl, please report it", "error", cause)
		return changed
	}
	s := &search{input: input, translates: func(in *snapshot.Input) bool {
		_, err := l.attempt(l.newTranslator(), in)
		return err == nil
	}}
	if was := l.state.Load(); was != nil {
		s.last = was.Input
	}
	reason, stack := cause.Error(), ""
	var panicked *kube.PanicError
	if errors.As(cause, &panicked) {
		reason, stack = fmt.Sprint(panicked.Value), string(panicked.Stack)
	}
	for _, ref := range s.find() {
		excluded.objects[ref] = quarantined{object: input.Find(ref), instead: s.previous(ref), reason: reason}
	}
	var err error
	if len(excluded.objects) > 0 {
		changed, err = l.translate(memo, excluded.clean(input))
	}
	if len(excluded.objects) == 0 || err != nil {
		unknown := ""
		l.broken.Store(&unknown)
		l.log.Error("translation failed; what was written before stays in effect. This is a bug in meshctl, please report it", "error", reason, "stack", stack)
		return false
	}
	l.report(excluded)
	l.log.Error("translation fails because of objects, which are kept out; everything else goes on. This is a bug in meshctl, please report it", "objects", excluded.String(), "error", reason, "stack", stack)
	return changed
}

// report sets what readiness says.
func (l *loop) report(excluded *quarantine) {
	if names := excluded.String(); names != "" {
		l.broken.Store(&names)
	} else {
		l.broken.Store(nil)
	}
}

// attempt translates one Input, and returns an error if that panics.
func (l *loop) attempt(memo translator, input *snapshot.Input) (state *snapshot.State, err error) {
	defer l.guard(&err)
	l.started.Store(time.Now().UnixNano())
	return memo.Translate(input), nil
}

// guard ends a translation, and makes an error of a panic.
func (l *loop) guard(err *error) {
	l.started.Store(0)
	if broken := recover(); broken != nil {
		*err = &kube.PanicError{Value: broken, Stack: debug.Stack()}
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
	defer l.guard(&err)
	began := time.Now()
	before := l.state.Load()
	why := describe(before, input)
	state, err := l.attempt(memo, input)
	if err != nil {
		return false, err
	}
	took := time.Since(began)

	counts := compare(before, state)
	l.metrics.observe(took, counts)
	if counts.changed() {
		l.cause.add(why)
	}
	l.state.Store(state)
	l.sink.ApplyEdited(state.Output, editsBetween(before, input))
	if l.translated != nil {
		l.translated()
	}
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

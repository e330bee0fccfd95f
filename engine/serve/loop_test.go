package serve

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// inputs is a source that a test feeds.
type inputs struct {
	changed chan struct{}
	mu      sync.Mutex
	input   *snapshot.Input
}

func (i *inputs) Changed() <-chan struct{} { return i.changed }

func (i *inputs) Input() *snapshot.Input {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.input
}

// change makes a new Input.
func (i *inputs) change() { i.set(&snapshot.Input{Management: &snapshot.Management{}}) }

// set sets the Input.
func (i *inputs) set(input *snapshot.Input) {
	i.mu.Lock()
	i.input = input
	i.mu.Unlock()
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// outputs is a sink that notes when it was handed something.
type outputs struct {
	mu sync.Mutex
	at []time.Time
}

func (o *outputs) Apply(*snapshot.Output) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = append(o.at, time.Now())
}

func (o *outputs) Settled(context.Context) error { return nil }

func (o *outputs) times() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

// slow is a translator that takes a while and breaks on demand.
type slow struct {
	takes time.Duration
	broke *bool
}

func (s slow) Translate(in *snapshot.Input) *snapshot.State {
	time.Sleep(s.takes)
	if *s.broke {
		*s.broke = false
		panic("no such case")
	}
	return &snapshot.State{Input: in, Output: &snapshot.Output{Parts: snapshot.ListOf([]*snapshot.Part{{Key: "a"}})}}
}

// inBubble runs a loop in a bubble of time.
func inBubble(t *testing.T, takes time.Duration, test func(*loop, *inputs, *outputs, *bool, *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		in, out, broke := &inputs{changed: make(chan struct{}, 1)}, &outputs{}, false
		l := newLoop(in, out, newMetrics(prometheus.NewRegistry(), "test"), &cause{}, slog.New(slog.NewTextHandler(&log, nil)))
		l.newTranslator = func() translator { return slow{takes, &broke} }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.run(ctx) }()
		test(l, in, out, &broke, &log)
		cancel()
		<-ended
	})
}

func TestLoopAnswersAtOnceWhenIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, time.Millisecond, func(_ *loop, in *inputs, out *outputs, _ *bool, _ *bytes.Buffer) {
		for i := range 5 {
			time.Sleep(time.Second)
			changed := time.Now()
			in.change()
			time.Sleep(time.Second)
			require.Len(t, out.times(), i+1)
			assert.Equal(t, time.Millisecond, out.times()[i].Sub(changed), "no more than the translation takes")
		}
	})
}

func TestLoopCoalescesAStorm(t *testing.T) {
	t.Parallel()
	inBubble(t, 20*time.Millisecond, func(l *loop, in *inputs, out *outputs, _ *bool, _ *bytes.Buffer) {
		began := time.Now()
		for range 1000 {
			in.change()
			time.Sleep(time.Millisecond)
		}
		last := in.Input()
		time.Sleep(time.Second)
		assert.Equal(t, 20*time.Millisecond, out.times()[0].Sub(began), "the first change is answered at once")
		assert.LessOrEqual(t, len(out.times()), 7, "1,000 changes in a second")
		assert.GreaterOrEqual(t, len(out.times()), 4, "they are not put off until the storm is over")
		assert.Same(t, last, l.state.Load().Input, "the last change counts")
	})
}

func TestLoopTranslatesNothingTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, 0, func(_ *loop, in *inputs, out *outputs, _ *bool, _ *bytes.Buffer) {
		in.changed <- struct{}{}
		synctest.Wait()
		assert.Empty(t, out.times(), "there is no input yet")
		in.change()
		time.Sleep(time.Second)
		in.changed <- struct{}{}
		time.Sleep(time.Second)
		assert.Len(t, out.times(), 1)
	})
}

func TestLoopSurvivesADefect(t *testing.T) {
	t.Parallel()
	inBubble(t, 0, func(l *loop, in *inputs, out *outputs, broke *bool, log *bytes.Buffer) {
		in.change()
		time.Sleep(time.Second)
		synctest.Wait()
		*broke = true
		in.change()
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Len(t, out.times(), 2, "it succeeds when nothing is reused")
		assert.InDelta(t, 1, value(t, l.metrics.panics), 0)
		assert.Contains(t, log.String(), "no such case")
		assert.False(t, l.stuck(time.Now().Add(time.Hour)))
		assert.Nil(t, l.broken.Load())
	})
}

func TestLoopKnowsWhenItIsStuck(t *testing.T) {
	t.Parallel()
	inBubble(t, time.Hour, func(l *loop, in *inputs, _ *outputs, _ *bool, _ *bytes.Buffer) {
		in.change()
		time.Sleep(time.Minute)
		assert.False(t, l.stuck(time.Now()))
		time.Sleep(2 * time.Minute)
		assert.True(t, l.stuck(time.Now()))
	})
}

// value reads a counter.
func value(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

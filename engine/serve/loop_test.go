package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/apply"
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
	// edits are the last ones.
	edits map[snapshot.Ref]bool
}

func (o *outputs) ApplyEdited(_ *snapshot.Output, edits apply.Edits) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.edits = edits.Objects
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

// mortal is a home that is being deleted on demand.
type mortal struct {
	mu    sync.Mutex
	err   error
	asked int
	begun int
}

func (m *mortal) begin(context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun++
}

func (m *mortal) ending(_ context.Context, gone map[snapshot.Kind]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if len(gone) == 0 {
		panic("asked for nothing")
	}
	return m.err
}

func (m *mortal) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// withPolicies is an Input with TrafficPolicies.
func withPolicies(names ...string) *snapshot.Input {
	m := &snapshot.Management{Namespace: "gloo-mesh"}
	for _, name := range names {
		m.TrafficPolicies = append(m.TrafficPolicies, &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	return &snapshot.Input{Management: m}
}

func TestLoopFreezesWhileItsHomeIsDeleted(t *testing.T) {
	t.Parallel()
	inBubble(t, 0, func(l *loop, in *inputs, out *outputs, _ *bool, log *bytes.Buffer) {
		home := &mortal{}
		l.home = home
		pass := func(input *snapshot.Input) {
			in.set(input)
			time.Sleep(3 * freezeRetry)
			synctest.Wait()
		}
		pass(withPolicies("a", "b", "c"))
		assert.Zero(t, home.asked, "nothing is gone")

		// A user deletes one.
		pass(withPolicies("a", "b"))
		assert.Equal(t, 1, home.asked)
		assert.Len(t, out.times(), 2)
		assert.Contains(t, out.edits, snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "shop", Name: "c"})

		// The others go with their CustomResourceDefinition.
		home.set(errors.New("CustomResourceDefinition is being deleted"))
		pass(withPolicies("a"))
		pass(withPolicies())
		assert.Len(t, out.times(), 2, "nothing is written")
		require.NotNil(t, l.frozen.Load())
		assert.Contains(t, *l.frozen.Load(), "is being deleted")
		assert.Equal(t, 1, strings.Count(log.String(), "nothing is changed in any cluster"))

		// They come back.
		pass(withPolicies("a", "b"))
		assert.Len(t, out.times(), 3)
		assert.Nil(t, l.frozen.Load())
		assert.Equal(t, 1, home.begun, "the next deletion is compared with what there is now")

		// Or it was no such thing.
		pass(withPolicies("a"))
		assert.Len(t, out.times(), 3)
		home.set(nil)
		time.Sleep(2 * freezeRetry)
		synctest.Wait()
		assert.Len(t, out.times(), 4)
	})
}

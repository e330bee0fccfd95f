package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// drill is a pacer on a clock of its own.
type drill struct {
	pacer
	now time.Time
}

// change makes a change after a time, and a translation that takes as long as cost
// once the pacer lets it; it returns how long the pacer waited.
func (d *drill) change(after, cost time.Duration, wrote bool) time.Duration {
	d.now = d.now.Add(after)
	waited := d.wait(d.now)
	d.now = d.now.Add(waited)
	began := d.now
	d.now = d.now.Add(cost)
	d.record(began, d.now, wrote)
	return waited
}

func TestPacer(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	type change struct {
		after, cost time.Duration
		wrote       bool
		waits       time.Duration
	}
	for name, changes := range map[string][]change{
		"idle: at once, each time": {
			{0, ms, true, 0}, {time.Second, ms, true, 0}, {10 * ms, ms, true, 0}, {9 * ms, ms, true, 0},
		},
		"a storm: a tenth of the time is work": {
			{0, ms, true, 0}, {0, ms, true, 9 * ms}, {0, 20 * ms, true, 9 * ms}, {0, ms, true, 180 * ms}, {0, ms, true, 9 * ms},
		},
		"echoes delay nobody for longer than they took": {
			{0, ms, false, 0}, {0, 2 * ms, false, ms}, {0, ms, true, 2 * ms}, {9 * ms, ms, false, 0},
		},
		"time that has passed counts": {
			{0, ms, true, 0}, {2 * ms, ms, true, 7 * ms}, {time.Millisecond / 2, ms, true, 17 * ms / 2},
		},
		"a large world is still followed": {
			{0, 2 * time.Second, true, 0}, {0, 2 * time.Second, false, 500 * ms}, {499 * ms, ms, true, ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &drill{now: time.Unix(1e9, 0)}
			for i, c := range changes {
				assert.Equal(t, c.waits, d.change(c.after, c.cost, c.wrote), "change %d", i)
			}
		})
	}
}

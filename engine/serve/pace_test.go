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

// change makes a change after a time, and a round that takes as long as cost
// once the pacer lets it; it returns how long the pacer waited.
func (d *drill) change(after, cost time.Duration) time.Duration {
	d.now = d.now.Add(after)
	waited := d.wait(d.now)
	d.now = d.now.Add(waited)
	began := d.now
	d.now = d.now.Add(cost)
	d.round(began, d.now)
	return waited
}

func TestPacer(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	type change struct{ after, cost, waits time.Duration }
	for name, changes := range map[string][]change{
		"idle: at once, each time": {
			{0, ms, 0}, {time.Second, ms, 0}, {10 * ms, ms, 0}, {3 * ms, ms, 0},
		},
		"a storm: a quarter of the time is work": {
			{0, ms, 0}, {0, ms, 3 * ms}, {0, ms, 3 * ms}, {0, 20 * ms, 3 * ms}, {0, 20 * ms, 60 * ms}, {0, ms, 60 * ms},
		},
		"time that has passed counts": {
			{0, ms, 0}, {2 * ms, ms, ms}, {time.Millisecond / 2, ms, 5 * ms / 2},
		},
		"after the storm: at once again": {
			{0, ms, 0}, {0, ms, 3 * ms}, {0, ms, 3 * ms}, {4 * ms, ms, 0}, {20 * ms, ms, 0},
		},
		"a large world is still followed": {
			{0, 2 * time.Second, 0}, {0, 2 * time.Second, 500 * ms}, {499 * ms, ms, ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &drill{now: time.Unix(1e9, 0)}
			for i, c := range changes {
				assert.Equal(t, c.waits, d.change(c.after, c.cost), "change %d", i)
			}
		})
	}
}

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

func requests(n uint64) *traffic.Values {
	return &traffic.Values{snapshot.Answered2xx: n}
}

func edge(from, to int) traffic.Key {
	return traffic.Key{
		From: snapshot.Ref{Kind: snapshot.Workload, Name: fmt.Sprint("from-", from)}, To: snapshot.Ref{Kind: snapshot.Destination, Name: fmt.Sprint("to-", to)},
	}
}

func sum(of map[traffic.Key]*traffic.Values) (n uint64) {
	for _, v := range of {
		n += v.Requests()
	}
	return n
}

// TestWindows: a window has what came in it, and says since when.
func TestWindows(t *testing.T) {
	t.Parallel()
	ring := traffic.NewRing(start, 10)
	for minute := range 20 {
		ring.Add(start.Add(time.Duration(minute)*time.Minute), edge(1, 1), requests(1))
	}
	now := start.Add(19*time.Minute + 14*time.Second)
	for _, tt := range []struct {
		length, covered time.Duration
		want            uint64
	}{
		{time.Minute, 59 * time.Second, 1}, {5 * time.Minute, 4*time.Minute + 59*time.Second, 5}, {traffic.Kept, 14*time.Minute + 59*time.Second, 15}, {time.Hour, 14*time.Minute + 59*time.Second, 15},
	} {
		sums, from := ring.Window(now, tt.length)
		assert.Equal(t, tt.want, sum(sums), "%s", tt.length)
		assert.Equal(t, tt.covered, now.Sub(from), "%s", tt.length)
	}
	total := uint64(0)
	ring.Totals(func(_ traffic.Key, v *traffic.Values) { total += v.Requests() })
	assert.Equal(t, uint64(20), total)
	early := traffic.NewRing(start, 10)
	early.Add(start.Add(20*time.Second), edge(1, 1), requests(1))
	_, from := early.Window(start.Add(30*time.Second), traffic.Kept)
	assert.Equal(t, start, from)
}

// TestEdgesThatEnd are forgotten, with their ids, and come back as new ones.
func TestEdgesThatEnd(t *testing.T) {
	t.Parallel()
	ring := traffic.NewRing(start, 10)
	ring.Add(start, edge(1, 1), requests(5))
	ring.Add(start, edge(2, 2), requests(7))
	ring.Add(start.Add(10*time.Minute), edge(2, 2), requests(1))
	assert.Equal(t, 2, ring.Edges())
	ring.Add(start.Add(16*time.Minute), edge(3, 3), requests(1))
	assert.Equal(t, 2, ring.Edges())
	sums, _ := ring.Window(start.Add(16*time.Minute), traffic.Kept)
	assert.Equal(t, map[traffic.Key]*traffic.Values{edge(2, 2): requests(1), edge(3, 3): requests(1)}, sums)
	ring.Add(start.Add(17*time.Minute), edge(1, 1), requests(2))
	ring.Totals(func(k traffic.Key, v *traffic.Values) {
		if k == edge(1, 1) {
			assert.Equal(t, uint64(2), v.Requests())
		}
	})
}

// TestFolding: however many edges there are, and whichever become one, the sums by destination are those of a ring that has room for all.
func TestFolding(t *testing.T) {
	t.Parallel()
	byTo := func(of map[traffic.Key]*traffic.Values) map[snapshot.Ref]uint64 {
		out := map[snapshot.Ref]uint64{}
		for k, v := range of {
			out[k.To] += v.Requests()
		}
		return out
	}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		small, large := traffic.NewRing(start, 20), traffic.NewRing(start, 100_000)
		now := start
		for range 600 {
			now = now.Add(time.Duration(r.IntN(8)) * time.Second)
			key, n := edge(r.IntN(40), r.IntN(5)), requests(uint64(1+r.IntN(50)))
			small.Add(now, key, n)
			large.Add(now, key, n)
			require.LessOrEqual(t, small.Edges(), 20+5)
		}
		require.Positive(t, small.Folded())
		require.Zero(t, large.Folded())
		for _, length := range []time.Duration{time.Minute, 5 * time.Minute, traffic.Kept} {
			a, _ := small.Window(now, length)
			b, _ := large.Window(now, length)
			require.Equal(t, byTo(b), byTo(a), "seed %d, %s", seed, length)
			require.NotEmpty(t, a)
		}
	}
	ring := traffic.NewRing(start, 10)
	ring.Add(start, edge(0, 0), requests(1000))
	for i := range 40 {
		ring.Add(start, edge(1+i, 0), requests(1))
	}
	sums, _ := ring.Window(start, traffic.Kept)
	assert.Equal(t, uint64(1000), sums[edge(0, 0)].Requests(), "the largest stays by itself")
	assert.Positive(t, sums[traffic.Key{To: edge(0, 0).To}].Requests())
}

// TestQuantile gives the upper end of a bucket.
func TestQuantile(t *testing.T) {
	t.Parallel()
	v := &traffic.Values{}
	_, ok := v.Quantile(0.5)
	assert.False(t, ok)
	copy(v.Latency(), []uint64{0, 90, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	for q, want := range map[float64]float64{0.5: 5, 0.9: 5, 0.95: 25, 0.99: 25, 1: traffic.MostLatency} {
		got, ok := v.Quantile(q)
		assert.True(t, ok)
		assert.InDelta(t, want, got, 0, "%v", q)
	}
}

// BenchmarkRing is the memory and the time of as many edges as there may be.
func BenchmarkRing(b *testing.B) {
	ring := traffic.NewRing(start, traffic.MaxEdges)
	v := &traffic.Values{snapshot.Answered2xx: 1234, snapshot.SentBytes: 1 << 20, snapshot.ReceivedBytes: 1 << 22, snapshot.Connected: 2}
	v.Latency()[2], v.Latency()[3], v.Latency()[4] = 1000, 200, 34
	now := start
	for range traffic.Kept / traffic.Point {
		now = now.Add(traffic.Point)
		for e := range traffic.MaxEdges {
			ring.Add(now, edge(e%200, e/200), v)
		}
	}
	for _, length := range []time.Duration{traffic.Kept, 7 * time.Minute, time.Minute} {
		b.Run(length.String(), func(b *testing.B) {
			for b.Loop() {
				ring.Window(now, length)
			}
		})
	}
	state := translated()
	context := &traffic.Context{State: state, Survey: traffic.Look(state)}
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			ring.Report(now, context, traffic.Query{By: traffic.ByAll, Window: traffic.Kept})
		}
	})
}

// TestWindowIsItsPoints: however points are read, a window has what was added in it, and nothing that was not.
func TestWindowIsItsPoints(t *testing.T) {
	t.Parallel()
	type added struct {
		at   time.Time
		to   snapshot.Ref
		came traffic.Values
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 4))
		ring, now, all := traffic.NewRing(start, 10), start, []added{}
		for range 400 {
			now = now.Add(time.Duration(r.IntN(30)) * time.Second)
			key, came := edge(r.IntN(12), r.IntN(3)), traffic.Values{}
			came[r.IntN(len(came))], came[snapshot.Answered2xx] = 1+r.Uint64N(1<<40), r.Uint64N(300)
			ring.Add(now, key, &came)
			all = append(all, added{now, key.To, came})
			at, length := now.Add(time.Duration(r.IntN(400))*time.Second), time.Duration(1+r.IntN(60))*traffic.Point
			sums, _ := ring.Window(at, length)
			want, got := map[snapshot.Ref]traffic.Values{}, map[snapshot.Ref]traffic.Values{}
			for _, a := range all {
				if a.at.Unix()/15 > at.Add(-length).Unix()/15 {
					v := want[a.to]
					v.Add(&a.came)
					want[a.to] = v
				}
			}
			for k, sum := range sums {
				v := got[k.To]
				v.Add(sum)
				got[k.To] = v
			}
			require.Equal(t, want, got, "seed %d, %s", seed, length)
		}
		require.Positive(t, ring.Folded())
	}
}

// TestTrend: the requests of each minute are those of the window, wherever its edges were folded.
func TestTrend(t *testing.T) {
	t.Parallel()
	state := translated()
	context, services := &traffic.Context{State: state, Survey: traffic.Look(state)}, state.Plan.Destinations.Slice()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 9))
		ring, now := traffic.NewRing(start, 5), start
		for range 200 {
			now = now.Add(time.Duration(r.IntN(20)) * time.Second)
			from, to := state.Plan.Workloads[r.IntN(len(state.Plan.Workloads))], services[r.IntN(len(services))]
			came := traffic.Values{}
			came[snapshot.Answered2xx], came[snapshot.Retried] = r.Uint64N(10), r.Uint64N(10)
			ring.Add(now, traffic.Key{From: snapshot.RefOf(snapshot.Workload, from), To: to.Ref, Port: 80}, &came)
		}
		for _, window := range []time.Duration{time.Minute, 5 * time.Minute, traffic.Kept} {
			report := ring.Report(now, context, traffic.Query{By: traffic.ByAll, Window: window})
			ofEdges, ofServices := uint64(0), uint64(0)
			for _, row := range report.Rows {
				sum := uint64(0)
				for _, n := range row.Trend {
					sum += n
				}
				require.Equal(t, row.Requests, sum, "seed %d, %s: %+v", seed, window, row)
				if row.Requests > 0 {
					require.Len(t, row.Trend, int(window/time.Minute))
				}
				if row.From != nil {
					ofEdges += sum
				} else if row.To.Ref.Kind == snapshot.Destination {
					ofServices += sum
				}
			}
			require.Equal(t, ofEdges, ofServices)
		}
		short := ring.Report(now, context, traffic.Query{By: traffic.ByEdge, Window: 30 * time.Second})
		for _, row := range short.Rows {
			require.Empty(t, row.Trend)
		}
	}
}

// TestFailedTrend: a trend says of each minute how many requests failed; without failures there is none of these.
func TestFailedTrend(t *testing.T) {
	t.Parallel()
	ring := traffic.NewRing(start, 10)
	for minute := range 3 {
		at := start.Add(time.Duration(minute) * time.Minute)
		ring.Add(at, edge(1, 1), &traffic.Values{snapshot.Answered2xx: 7, snapshot.Answered4xx: 1, snapshot.Answered5xx: uint64(minute), snapshot.Unanswered: 1, snapshot.Retried: 5})
		ring.Add(at, edge(2, 1), &traffic.Values{snapshot.Answered5xx: 2})
		ring.Add(at, edge(1, 2), requests(3))
	}
	report := ring.Report(start.Add(2*time.Minute+45*time.Second), &traffic.Context{State: &snapshot.State{Plan: &snapshot.Plan{}}, Survey: &traffic.Survey{}}, traffic.Query{By: traffic.ByAll, Window: 3 * time.Minute})
	got := map[string][2][]uint64{}
	for _, row := range report.Rows {
		name := row.To.Ref.Name
		if row.From != nil {
			name = row.From.Ref.Name + " " + name
		}
		got[name] = [2][]uint64{row.Trend, row.FailedTrend}
	}
	assert.Equal(t, map[string][2][]uint64{
		"to-1": {{11, 12, 13}, {3, 4, 5}}, "from-1 to-1": {{9, 10, 11}, {1, 2, 3}}, "from-2 to-1": {{2, 2, 2}, {2, 2, 2}},
		"to-2": {{3, 3, 3}, nil}, "from-1 to-2": {{3, 3, 3}, nil},
	}, got)
}

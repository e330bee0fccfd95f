package traffic

import (
	"math"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Bounds are the upper ends of the buckets of latencies, in milliseconds; the last bucket has no end. They are some of those of Envoy's
// histograms (envoyproxy.io: HistogramBucketSettings), so that nothing is guessed.
var Bounds = [...]float64{1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000}

const (
	counters = int(snapshot.Latency)
	buckets  = len(Bounds) + 1
)

// Values are the numbers of one edge: one for each counter, then the buckets of latencies, each without those below it.
type Values [counters + buckets]uint64

// Of is the number of a counter.
func (v *Values) Of(m snapshot.Measure) uint64 { return v[m] }

// Latency are the buckets of latencies.
func (v *Values) Latency() []uint64 { return v[counters:] }

// Add adds others to the numbers.
func (v *Values) Add(other *Values) {
	for i, n := range other {
		v[i] += n
	}
}

// since is what came after an earlier reading of the same proxy. A number that is smaller than before began again.
func (v *Values) since(before *Values) (delta Values) {
	for i, n := range v {
		if n >= before[i] {
			n -= before[i]
		}
		delta[i] = n
	}
	return delta
}

// Requests are all of them, whatever became of them.
func (v *Values) Requests() (sum uint64) {
	for m := snapshot.Answered1xx; m.Requests(); m++ {
		sum += v[m]
	}
	return sum
}

// Failed are requests that were answered with 5xx, or not at all.
func (v *Values) Failed() uint64 { return v[snapshot.Answered5xx] + v[snapshot.Unanswered] }

// Served are requests that neither failed nor were refused.
func (v *Values) Served() uint64 {
	all := v.Requests()
	return all - min(all, v.Failed()+v[snapshot.Forbidden])
}

// Success is the share of requests that were served, in percent; false if there were none.
func (v *Values) Success() (percent float64, ok bool) {
	all := v.Requests()
	if all == 0 {
		return 0, false
	}
	return 100 * float64(v.Served()) / float64(all), true
}

// MostLatency is the upper end of the last bucket, in milliseconds: the largest that Envoy has.
const MostLatency = 3_600_000

// Quantile is the upper end of the bucket in which a share of the latencies lies, 0 to 1, in milliseconds: no more is known. It is
// MostLatency beyond the last bound; false if there are none.
func (v *Values) Quantile(q float64) (ms float64, ok bool) {
	all := uint64(0)
	for _, n := range v.Latency() {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	rank := uint64(math.Ceil(q * float64(all)))
	for i, n := range v.Latency() {
		if n >= rank {
			if i == len(Bounds) {
				break
			}
			return Bounds[i], true
		}
		rank -= n
	}
	return MostLatency, true
}

// quantile is a Quantile, or nil.
func (v *Values) quantile(q float64) *float64 {
	if ms, ok := v.Quantile(q); ok {
		return &ms
	}
	return nil
}

// bucket is that of a latency with an upper end, in milliseconds.
func bucket(le float64) int {
	for i, bound := range Bounds {
		if le <= bound {
			return i
		}
	}
	return len(Bounds)
}

package traffic

import (
	"errors"
	"fmt"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Parts are a Reading as it passes from one process to another.
type Parts struct {
	// Started is when the proxy did, by the clock of who read it; zero if the proxy does not say. Uptime is for how long it had been running.
	Started time.Time
	Uptime  time.Duration
	// Counts, Own, Refused and Overflow are as in Reading.
	Counts, Own, Overflow bool
	Refused               uint64
	Clusters, Owned       []Part
	Both                  Part
}

// Part are the numbers of one target.
type Part struct {
	Target
	// Measures are those of Values, one by one. Numbers of measures pass between versions, and so do not change.
	Measures []uint32
	Values   []uint64
	// Latency are the buckets of latencies; none if there are no latencies.
	Latency []uint64
}

// Parts takes a Reading apart, which was made at a time.
func (r *Reading) Parts(at time.Time) *Parts {
	out := &Parts{Counts: r.counts, Own: r.own, Overflow: r.Overflow, Refused: uint64(r.Refused), Both: partOf(Target{}, &r.both)}
	if r.Uptime >= 0 {
		out.Started, out.Uptime = at.Add(-r.Uptime), r.Uptime
	}
	for target, v := range r.clusters {
		out.Clusters = append(out.Clusters, partOf(target, v))
	}
	for target, v := range r.owned {
		out.Owned = append(out.Owned, partOf(target, v))
	}
	return out
}

// Size is of how many targets a Reading has numbers.
func (r *Reading) Size() int { return len(r.clusters) + len(r.owned) }

func partOf(target Target, v *Values) Part {
	p := Part{Target: target}
	for m := range snapshot.Latency {
		if n := v.Of(m); n > 0 {
			p.Measures, p.Values = append(p.Measures, uint32(m)), append(p.Values, n)
		}
	}
	for _, n := range v.Latency() {
		if n > 0 {
			p.Latency = v.Latency()
			break
		}
	}
	return p
}

// maxUptime is for how long a proxy may say that it has been running, in seconds.
const maxUptime = 1 << 32

// Reading puts a Reading together again. The parts may come from anybody: an error says that they are none.
func (p *Parts) Reading() (*Reading, error) {
	r := &Reading{
		Uptime: -1, Refused: int(min(p.Refused, 1<<31)), Overflow: p.Overflow, counts: p.Counts, own: p.Own,
		clusters: map[Target]*Values{}, owned: map[Target]*Values{},
	}
	if !p.Started.IsZero() {
		r.Started, r.Uptime = p.Started, min(max(p.Uptime, 0), maxUptime*time.Second)
	}
	for of, parts := range map[*map[Target]*Values][]Part{&r.clusters: p.Clusters, &r.owned: p.Owned} {
		if len(parts) > MaxTargets+1 { // and those beyond as one
			return nil, fmt.Errorf("it has %d targets; more than %d are not taken", len(parts), MaxTargets)
		}
		for i := range parts {
			part := &parts[i]
			if part.Serves && part.ProxyTarget != (snapshot.ProxyTarget{}) {
				return nil, errors.New("what a pod gets has a target")
			}
			if !printed(part.Host) || !printed(part.Subset) {
				return nil, errors.New("a target has a name that is too long, or not printed")
			}
			v, err := part.values()
			if err != nil {
				return nil, err
			}
			(*of)[part.Target] = v
		}
	}
	both, err := p.Both.values()
	if err != nil {
		return nil, err
	}
	r.both = *both
	return r, nil
}

func (p *Part) values() (*Values, error) {
	v := &Values{}
	if len(p.Measures) != len(p.Values) || len(p.Latency) != 0 && len(p.Latency) != buckets {
		return nil, errors.New("its numbers are not complete; the agent and meshctl serve have to be of the same version")
	}
	for i, m := range p.Measures {
		if m >= uint32(counters) {
			continue // of a later version
		}
		v[m] = p.Values[i]
	}
	copy(v[counters:], p.Latency)
	for _, n := range v {
		if n > maxCount {
			return nil, errors.New("it has a number that is too large")
		}
	}
	return v, nil
}

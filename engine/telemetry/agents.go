package telemetry

import (
	"fmt"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Bounds of what an agent sends, as it is believed of its own cluster only.
const (
	// oldest is how long ago a proxy may have been read, and soonest how soon after another reading of it one is taken.
	oldest  = 5 * time.Minute
	soonest = time.Second
)

// Reasons why a reading of an agent is not taken, in metrics. The next one has what it had.
const (
	lostOnTheWay = "dropped"
	lostUnknown  = "unknown_pod"
	lostInvalid  = "invalid"
	lostLate     = "late"
	lostTooOften = "too_often"
	lostTooMany  = "too_many"
)

// fromAgent is what is known of the readings of one agent.
type fromAgent struct {
	// heard is when it said something of a proxy last.
	heard map[traffic.Proxy]time.Time
	// incarnation is that of the agent which said how much was lost.
	incarnation string
	said        Lost
	// lost and rejected are how many readings were since this process leads, and refused how many connections and streams.
	lost, rejected, refused uint64
}

// Lost is what an agent did not take or send since it started.
type Lost struct {
	// Dropped is how many readings were not sent, as others were read before they could be.
	Dropped uint64
	// Refused is how many connections and streams of proxies were refused, and Refusal why the last one was, for people.
	Refused uint64
	Refusal string
}

// Wanted is how the agent of a cluster is to get what its proxies count: traffic.Agent, traffic.Push, or traffic.Off.
func (t *Telemetry) Wanted(cluster string) traffic.Door {
	now := t.current.Load()
	if now == nil {
		return traffic.Off
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	at := now.entrances[cluster]
	if at.Closed != "" || !ofAgent(at.Door) {
		return traffic.Off
	}
	return at.Door
}

// ofAgent: what comes in through a door, the agent of the cluster sends.
func ofAgent(door traffic.Door) bool { return door == traffic.Agent || door == traffic.Push }

// Take takes what the agent of a cluster says of one proxy. Readings of one agent have to come in their order. Whatever the agent says, it is
// about a pod of its own cluster.
func (t *Telemetry) Take(cluster string, s *Sent) {
	if now := t.current.Load(); now != nil {
		s.Proxy.Cluster = cluster
		now.take(time.Now(), s)
	}
}

// Lost notes what an agent did not take or send since it started.
func (t *Telemetry) Lost(cluster, incarnation string, lost Lost) {
	now := t.current.Load()
	if now == nil {
		return
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	a := now.agent(cluster)
	before := a.said
	if a.incarnation != incarnation || lost.Dropped < before.Dropped || lost.Refused < before.Refused {
		before = Lost{}
	}
	lost.Refusal = clip(snapshot.Clean(lost.Refusal))
	a.incarnation, a.said = incarnation, lost
	a.lost += lost.Dropped - before.Dropped
	a.refused += lost.Refused - before.Refused
	now.lost.WithLabelValues(cluster, lostOnTheWay).Add(float64(lost.Dropped - before.Dropped))
	now.refused.WithLabelValues(cluster).Add(float64(lost.Refused - before.Refused))
}

// agent is what is known of an agent, under the lock.
func (t *term) agent(cluster string) *fromAgent {
	a := t.agents[cluster]
	if a == nil {
		a = &fromAgent{heard: map[traffic.Proxy]time.Time{}}
		t.agents[cluster] = a
	}
	return a
}

func (t *term) take(now time.Time, s *Sent) {
	var reading *traffic.Reading
	var err error
	if s.Parts != nil {
		reading, err = s.Parts.Reading()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	pod, agent := t.pods[s.Proxy], t.agent(s.Proxy.Cluster)
	last, heard := agent.heard[s.Proxy]
	reject := func(why string) {
		agent.rejected++
		t.lost.WithLabelValues(s.Proxy.Cluster, why).Inc()
	}
	switch {
	case pod == nil || !ofAgent(pod.Door):
		reject(lostUnknown)
	case s.Age < 0 || s.Age > oldest:
		reject(lostLate)
	case now.Sub(last) < soonest:
		reject(lostTooOften)
	case !heard && len(agent.heard) >= maxProxies:
		reject(lostTooMany)
		t.noteFailed(pod, traffic.TooMany, fmt.Sprintf("%d are read", maxProxies))
	case err != nil:
		reject(lostInvalid)
		t.noteFailed(pod, traffic.Failed, clip(fmt.Sprintf("pod %s/%s: the reading of its agent is not taken: %s", s.Proxy.Namespace, s.Proxy.Pod, err)))
	case reading == nil:
		reason := traffic.Failed
		if s.Reason == traffic.TooMany || s.Reason == traffic.Altered {
			reason = s.Reason
		}
		agent.heard[s.Proxy] = now
		t.noteFailed(pod, reason, clip(s.Detail))
	default:
		agent.heard[s.Proxy] = now
		t.note(pod, now.Add(-s.Age), now, reading)
	}
}

// awaited notes which proxies of a cluster its agent says nothing of.
func (t *term) awaited(now time.Time, pods []*traffic.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pod := range pods {
		late, begins := 3*t.every, 2*t.every
		if pod.Door == traffic.Push { // the agent says itself of which it hears nothing
			late, begins = late+silent, begins+silent
		}
		if now.Sub(t.agent(pod.Proxy.Cluster).heard[pod.Proxy]) > late && now.Sub(t.changed[pod.Proxy.Cluster]) > begins {
			t.noteFailed(pod, traffic.Relayed, "it is away, cannot read its own cluster, or is of an earlier version; see: meshctl cluster list")
		}
	}
}

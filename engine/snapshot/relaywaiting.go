package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// RelayWaiting is an agent that has shown the token that all agents share, and gets no certificate before an administrator approves it. The
// cluster's name and UID are what the agent says; the hub has checked neither.
type RelayWaiting struct {
	Cluster string `json:"cluster"`
	// UID is that of the namespace kube-system of the agent's cluster.
	UID string `json:"uid"`
	// Key is the SHA-256 of the agent's public key (PKIX), in hexadecimal. The agent proved that it has the private key.
	Key string `json:"key"`
	// Address is the caller's, as the hub sees it.
	Address string `json:"address,omitempty"`
	// Since is when the agent asked first, and Last when that was noted last.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// RelayWaitings are the agents that wait, the one that has waited longest first, and how many were dropped because there were too many.
type RelayWaitings struct {
	Agents  []RelayWaiting `json:"agents"`
	Dropped uint64         `json:"dropped,omitempty"`
}

const (
	// RelayWaitingMost is how many agents may wait; of more, those that have waited longest are dropped. They ask again.
	RelayWaitingMost = 32
	// RelayWaitingLasts is how long an agent is kept that does not ask any more. Agents ask once a minute at least.
	RelayWaitingLasts = 15 * time.Minute
	// RelayWaitingNoted is how often it is noted that an agent still asks.
	RelayWaitingNoted = 5 * time.Minute
)

// ParseRelayWaitings reads what JSON made, and leaves out agents that ask no more. Nothing is an empty list.
func ParseRelayWaitings(text []byte, now time.Time) (RelayWaitings, error) {
	var w RelayWaitings
	if len(text) == 0 {
		return w, nil
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return w, fmt.Errorf("agents that wait: %w", err)
	}
	w.Agents = slices.DeleteFunc(w.Agents, func(a RelayWaiting) bool { return now.Sub(a.Last) > RelayWaitingLasts })
	return w, nil
}

// JSON is the form that ParseRelayWaitings reads.
func (w RelayWaitings) JSON() ([]byte, error) { return json.Marshal(w) }

// same reports whether two are one agent: another key or UID is another one, whatever name it has.
func (a *RelayWaiting) same(o *RelayWaiting) bool {
	return a.Cluster == o.Cluster && a.UID == o.UID && a.Key == o.Key
}

// With adds an agent that asks, and reports whether that is to be stored.
func (w RelayWaitings) With(a RelayWaiting) (out RelayWaitings, changed bool) {
	out = RelayWaitings{Agents: slices.Clone(w.Agents), Dropped: w.Dropped}
	if i := slices.IndexFunc(out.Agents, func(o RelayWaiting) bool { return o.same(&a) }); i >= 0 {
		known := &out.Agents[i]
		if known.Address == a.Address && a.Last.Sub(known.Last) < RelayWaitingNoted {
			return w, false
		}
		known.Address, known.Last = a.Address, a.Last
		return out, true
	}
	out.Agents = append(out.Agents, a)
	slices.SortStableFunc(out.Agents, func(x, y RelayWaiting) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Cluster, y.Cluster))
	})
	if more := len(out.Agents) - RelayWaitingMost; more > 0 {
		out.Agents, out.Dropped = out.Agents[more:], out.Dropped+uint64(more)
	}
	return out, true
}

// Without leaves out the agents of a cluster, and reports whether there was one.
func (w RelayWaitings) Without(cluster string) (out RelayWaitings, changed bool) {
	out = RelayWaitings{Agents: slices.Clone(w.Agents), Dropped: w.Dropped}
	out.Agents = slices.DeleteFunc(out.Agents, func(a RelayWaiting) bool { return a.Cluster == cluster })
	return out, len(out.Agents) != len(w.Agents)
}

// Of are the agents that wait for a name.
func (w RelayWaitings) Of(cluster string) []RelayWaiting {
	return slices.DeleteFunc(slices.Clone(w.Agents), func(a RelayWaiting) bool { return a.Cluster != cluster })
}

// String says who waits.
func (a RelayWaiting) String() string {
	text := fmt.Sprintf("cluster UID %s, key SHA-256 %s", a.UID, a.Key)
	if a.Address != "" {
		text += ", from " + a.Address
	}
	return text
}

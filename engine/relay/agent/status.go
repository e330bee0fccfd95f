package agent

import (
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// meters are those of the streams of an agent.
type meters struct{ report, desire, exchange, telemetry pump.Meter }

// contact is what an agent knows of its connection to the hub.
type contact struct {
	mu sync.Mutex
	// reason is why the last attempt failed; zero while there is a connection.
	reason snapshot.Reason
	since  time.Time
}

func (c *contact) set(r snapshot.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason.Code != r.Code || c.since.IsZero() {
		c.since = time.Now()
	}
	c.reason = r
}

func (c *contact) get() (snapshot.Reason, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason, c.since
}

// Unready is why the agent does not have what is to stand in its cluster; empty if it has, also while the hub is away.
func (a *Agent) Unready() string {
	if a.enforcer.isKnown() {
		return ""
	}
	reason, since := a.contact.get()
	switch {
	case reason.Code != "":
		return "the hub " + a.options.Hub + " is not connected: " + reason.String()
	case since.IsZero():
		return "the hub " + a.options.Hub + " is not connected yet"
	}
	if c, _ := a.local.Cluster(); c.Sync != snapshot.Synced {
		return snapshot.Sentences("the objects of the cluster are not all read", c.Reason)
	}
	return "the hub is connected, and has not said yet that everything stands; it says so once it has written all: see `meshctl cluster list`"
}

// Disconnected is why there is no connection to the hub; zero if there is one, or none was tried yet.
func (a *Agent) Disconnected() snapshot.Reason {
	reason, _ := a.contact.get()
	return reason
}

// Series are the numbers of the agent for metrics.
func (a *Agent) Series() pump.Series {
	report, desire, exchange := a.meters.report.Numbers(), a.meters.desire.Numbers(), a.meters.exchange.Numbers()
	now := time.Now()
	return pump.Series{
		Cluster: a.options.Cluster, LagUp: report.Lag(now), LagDown: max(desire.ToldLag(now), exchange.Lag(now)),
		Streams: map[string]pump.Numbers{pump.Report: report, pump.Desire: desire, pump.Exchange: exchange, pump.Telemetry: a.meters.telemetry.Numbers()},
	}
}

// isKnown reports whether it is known what is to stand.
func (e *enforcer) isKnown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known
}

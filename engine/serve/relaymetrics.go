package serve

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Reasons why the connection of an agent was closed instead of passed on.
const (
	noLeader  = "no_leader"  // nobody leads now, or this process has just ceased to
	noAddress = "no_address" // the leader does not say where it takes connections
	noAnswer  = "no_answer"  // the leader does not take the connection
)

// passedOn counts the connections of agents that a process passes on to the leader. The zero value counts nothing.
type passedOn struct {
	open   prometheus.Gauge
	closed *prometheus.CounterVec
}

// register makes the metrics of a door; there are none if that is nil.
func (d *door) register(r prometheus.Registerer) {
	if d == nil {
		return
	}
	p := passedOn{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "meshctl", Name: "relay_forwarded_connections", Help: "Connections of agents that this process passes on to the leader.",
		}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "meshctl", Name: "relay_forward_failures_total",
			Help: "Connections of agents that were closed instead of passed on: nobody leads (no_leader), or the leader names no address (no_address) or does not answer there (no_answer).",
		}, []string{"reason"}),
	}
	r.MustRegister(p.open, p.closed)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed = p
}

// counters are those of the door.
func (d *door) counters() passedOn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func (p passedOn) dropped(reason string) {
	if p.closed != nil {
		p.closed.WithLabelValues(reason).Inc()
	}
}

// begin counts a connection until its result is called.
func (p passedOn) begin() (end func()) {
	if p.open == nil {
		return func() {}
	}
	p.open.Inc()
	return p.open.Dec
}

package agent

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/meshctl/meshctl/certs/enroll"
	relay "github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/relay/pump"
)

// relayed is what the health endpoints tell of the relay of an agent. The zero value is that of an agent without one.
type relayed struct {
	mu sync.Mutex
	// why there is no agent yet; empty if there is one, or none is asked for.
	why    string
	agent  *relay.Agent
	keeper *enroll.Keeper
}

// starts says that the agent has no certificate yet, and why; nil if it has one.
func (r *relayed) starts(hub string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = "the agent of the relay starts"
	if err != nil {
		r.why = "the agent has no certificate for the hub " + hub + ": " + err.Error()
	}
}

// runs says that the agent runs.
func (r *relayed) runs(a *relay.Agent, k *enroll.Keeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why, r.agent, r.keeper = "", a, k
}

// unready is why the relay is not ready; empty if it is.
func (r *relayed) unready() string {
	r.mu.Lock()
	why, a := r.why, r.agent
	r.mu.Unlock()
	if a == nil {
		return why
	}
	return a.Unready()
}

// collector has the metrics of the relay.
func (r *relayed) collector() prometheus.Collector {
	return pump.NewCollector(func() []pump.Series {
		r.mu.Lock()
		a, k := r.agent, r.keeper
		r.mu.Unlock()
		if a == nil {
			return nil
		}
		series := a.Series()
		if own, err := k.Own(); err == nil {
			series.CertificateEnds = own.Chain[0].NotAfter
		}
		return []pump.Series{series}
	})
}

package serve

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// answers are metrics of what package explain says of the latest state: what is in force, and until when roots are valid.
type answers struct {
	state           func() *snapshot.State
	policies, roots *prometheus.Desc

	mu      sync.Mutex
	of      *snapshot.State
	metrics []prometheus.Metric
}

func newAnswers(state func() *snapshot.State) *answers {
	return &answers{
		state:    state,
		policies: prometheus.NewDesc("meshctl_policies", "Policies by their kind and state: ACCEPTED ones are in force everywhere.", []string{"kind", "state"}, nil),
		roots:    prometheus.NewDesc("meshctl_root_expiry_timestamp_seconds", "When a root of a VirtualMesh expires, by its fingerprint.", []string{"virtual_mesh", "root"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (a *answers) Describe(out chan<- *prometheus.Desc) {
	out <- a.policies
	out <- a.roots
}

// Collect implements prometheus.Collector. The answers to the same state are the same.
func (a *answers) Collect(out chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state := a.state(); state != a.of {
		a.of, a.metrics = state, a.ask(state)
	}
	for _, m := range a.metrics {
		out <- m
	}
}

func (a *answers) ask(state *snapshot.State) (out []prometheus.Metric) {
	if state == nil {
		return nil
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	}
	x := explain.New(state)
	type group struct{ kind, state string }
	counts := map[group]int{}
	table := x.Tables(nil).Policies()
	for i := range table.Rows {
		if item, ok := table.Rows[i].Item.(*explain.PolicyItem); ok {
			counts[group{item.Ref.Kind.String(), string(item.State)}]++
		}
	}
	for g, n := range counts {
		gauge(a.policies, float64(n), g.kind, g.state)
	}
	for _, ref := range x.Refs(snapshot.VirtualMesh) {
		said := map[string]bool{}
		for _, root := range x.Trust(ref, time.Time{}).Roots {
			if !root.NotAfter.IsZero() && !said[root.Fingerprint] {
				said[root.Fingerprint] = true
				gauge(a.roots, float64(root.NotAfter.Unix()), ref.Namespace+"/"+ref.Name, root.Fingerprint)
			}
		}
	}
	return out
}

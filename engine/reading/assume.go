package reading

import "github.com/meshctl/meshctl/engine/explain"

// Assume is an Index of the reading after an outage. How the clusters differ from what should be is not looked at.
func (r *Reading) Assume(index *explain.Index, losses []explain.Loss) *explain.Index {
	return explain.NewOutage(index, losses).Index(r.index)
}

// Simulate says who answers after an outage.
func (r *Reading) Simulate(index *explain.Index, losses []explain.Loss) *explain.Simulation {
	return explain.Simulate(index, losses, r.index)
}

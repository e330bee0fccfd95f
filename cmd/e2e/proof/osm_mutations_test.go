package proof

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// osmMutations has one for every kind of value that is compared.
func osmMutations() map[string]mutation {
	return map[string]mutation{
		"weight": {fact: "routes to ", action: target(func(t *snapshot.Target) { t.Weight++ })},
		"host":   {fact: "routes to ", action: target(func(t *snapshot.Target) { t.Host = "x" + t.Host })},
		"callers": {fact: "who may call ", destination: grant(func(g *snapshot.Grant) bool {
			g.From = g.From[1:]
			return true
		})},
		"callers' routes": {fact: "routes to ", destination: grant(func(g *snapshot.Grant) bool {
			g.From = nil
			return true
		})},
		"callers' endpoints": {fact: "endpoints of ", destination: grant(func(g *snapshot.Grant) bool {
			g.From = nil
			return true
		})},
		"callers' connections": {fact: "who may connect to ", destination: grant(func(g *snapshot.Grant) bool {
			g.From = append(g.From[:0:0], snapshot.Account{Namespace: "front", Name: "other"})
			return true
		})},
		"ports": {fact: "who may connect to ", destination: grant(func(g *snapshot.Grant) bool {
			was := g.Ports
			g.Ports = nil
			return was != nil
		})},
		"paths":   {fact: "who may call ", destination: granted(func(r *snapshot.AccessRule) bool { was := r.Paths; r.Paths = nil; return was != nil })},
		"methods": {fact: "who may call ", destination: granted(func(r *snapshot.AccessRule) bool { was := r.Methods; r.Methods = nil; return was != nil })},
		"one endpoint less": {fact: "endpoints of ", destination: func(d *snapshot.DestinationPlan) bool {
			if len(d.Destination.Spec.KubeService.EndpointSubsets) == 0 {
				return false
			}
			changed := d.Destination.DeepCopy()
			part := &changed.Spec.KubeService.EndpointSubsets[0]
			part.Endpoints = part.Endpoints[1:]
			d.Destination = changed
			return true
		}},
		"open": {fact: "routes to ", mesh: func(m *snapshot.MeshPlan) bool {
			was := m.Open
			m.Open = true
			return !was
		}},
	}
}

// grant changes a copy of the first grant that has the value.
func grant(change func(*snapshot.Grant) bool) func(*snapshot.DestinationPlan) bool {
	return func(d *snapshot.DestinationPlan) bool { return changeFirst(&d.Grants, change) }
}

// granted changes a copy of the rule of a grant.
func granted(change func(*snapshot.AccessRule) bool) func(*snapshot.DestinationPlan) bool {
	return grant(func(g *snapshot.Grant) bool {
		rule := *g.Rule
		g.Rule = &rule
		return change(&rule)
	})
}

// removeDetected deletes the mutations that the facts detect: the facts of the
// changed Plan differ from the configuration of a proxy.
func (w *environment) removeDetected(t *testing.T, plan *snapshot.Plan, configs map[string]*envoy.Config, undetected map[string]mutation) {
	t.Helper()
	for name, mutation := range undetected {
		changed := mutation.mutate(plan)
		if changed == nil {
			continue
		}
		for _, p := range w.proxies {
			assert.Empty(t, differences(osmFacts(plan, p), configs[p.pod]), "the Plan itself must not change")
			for _, d := range differences(osmFacts(changed, p), configs[p.pod]) {
				if strings.HasPrefix(d, mutation.fact) {
					delete(undetected, name)
				}
			}
		}
	}
}

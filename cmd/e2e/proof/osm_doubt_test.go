package proof

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/demo/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// osmLies has one for every sort of value that is compared.
func osmLies() map[string]lie {
	return map[string]lie{
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

// grant changes a copy of the first grant that has what is to be changed.
func grant(change func(*snapshot.Grant) bool) func(*snapshot.DestinationPlan) bool {
	return func(d *snapshot.DestinationPlan) bool {
		for i, g := range d.Grants {
			changed := *g
			if change(&changed) {
				d.Grants = append([]*snapshot.Grant(nil), d.Grants...)
				d.Grants[i] = &changed
				return true
			}
		}
		return false
	}
}

// granted changes a copy of a grant's rule.
func granted(change func(*snapshot.AccessRule) bool) func(*snapshot.DestinationPlan) bool {
	return grant(func(g *snapshot.Grant) bool {
		rule := *g.Rule
		g.Rule = &rule
		return change(&rule)
	})
}

// doubtOSM takes out of unnoticed the lies that show: proxies that do what the
// Plan says do not do what a Plan with the lie in it says.
func (w *world) doubtOSM(t *testing.T, plan *snapshot.Plan, told map[string]*envoy.Config, unnoticed map[string]lie) {
	t.Helper()
	for name, lie := range unnoticed {
		changed := lie.tell(plan)
		if changed == nil {
			continue
		}
		for _, p := range w.proxies {
			assert.Empty(t, differences(osmFacts(plan, p), told[p.pod]), "the lies must not reach the Plan itself")
			for _, d := range differences(osmFacts(changed, p), told[p.pod]) {
				if strings.HasPrefix(d, lie.fact) {
					delete(unnoticed, name)
				}
			}
		}
	}
}

package proof

import (
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// virtualMutations are about VirtualDestinations.
func virtualMutations() map[string]mutation {
	const endpoints, connections, behind, passing = "virtual endpoints of ", "virtual connections to ", "virtual endpoints behind ", "names that the gateway accepts"
	return map[string]mutation{
		"failover order": {fact: endpoints, plan: virtualView(func(v *snapshot.VirtualView) bool {
			slices.Reverse(v.Priorities)
			return len(v.Priorities) > 1
		})},
		"failover at once": {fact: endpoints, plan: virtualView(func(v *snapshot.VirtualView) bool {
			var all snapshot.Priority
			for _, p := range v.Priorities {
				all.Targets = append(all.Targets, p.Targets...)
			}
			was := len(v.Priorities)
			v.Priorities = []snapshot.Priority{all}
			return was > 1
		})},
		"failover around gateways": {fact: endpoints, plan: virtualView(func(v *snapshot.VirtualView) bool {
			config := false
			for i, p := range v.Priorities {
				v.Priorities[i].Targets = slices.Clone(p.Targets)
				for j := range p.Targets {
					config = config || len(p.Targets[j].Through) > 0
					v.Priorities[i].Targets[j].Through = nil
				}
			}
			return config
		})},
		"virtual mesh": {fact: "services that it knows", plan: virtualView(func(v *snapshot.VirtualView) bool {
			v.Priorities = nil
			return true
		})},
		"virtual SNI": {fact: connections, plan: virtualView(func(v *snapshot.VirtualView) bool {
			was := v.PassedAs
			v.PassedAs = "x" + was
			return was != ""
		})},
		"virtual host":                   {fact: "services that it knows", plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool { v.Hostname = "x" + v.Hostname; return true })},
		"virtual address":                {fact: "virtual address of ", plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool { v.Address = "192.0.2.1"; return true })},
		"virtual address of connections": {fact: "virtual connections pass to ", plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool { v.Address = "192.0.2.1"; return true })},
		"virtual protocol": {fact: "virtual connections pass to ", plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool {
			was := v.Protocol
			v.Protocol = "TCP"
			return was == "HTTP"
		})},
		"virtual outlier": {fact: connections, plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool {
			return owned(func(v *snapshot.VirtualDestinationPlan) **snapshot.WithOrigin[networkingv1.OutlierDetection] {
				return &v.Outlier
			},
				func(o *networkingv1.OutlierDetection) { o.ConsecutiveErrors++ })(v)
		})},
		"virtual subset": {fact: endpoints, plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool {
			v.Subsets = slices.Clone(v.Subsets)
			for i := range v.Subsets {
				v.Subsets[i].Labels = map[string]string{"version": "v9"}
			}
			return len(v.Subsets) > 0
		})},
		"virtual name at gateways": {fact: passing, plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool { v.Ref.Name += "x"; return true })},
		"virtual order at gateways": {fact: behind, plan: virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool {
			v.Backing = slices.Clone(v.Backing)
			slices.Reverse(v.Backing)
			return len(v.Backing) > 2
		})},
	}
}

// virtualPlan changes copies of all VirtualDestinations.
func virtualPlan(change func(*snapshot.VirtualDestinationPlan) bool) func(*snapshot.Plan) bool {
	return func(p *snapshot.Plan) bool {
		config := false
		var changed []*snapshot.VirtualDestinationPlan
		for _, v := range p.VirtualDestinations {
			own := *v
			config = change(&own) || config
			changed = append(changed, &own)
		}
		p.VirtualDestinations = changed
		return config
	}
}

// virtualView changes copies of what all meshes see.
func virtualView(change func(*snapshot.VirtualView) bool) func(*snapshot.Plan) bool {
	return virtualPlan(func(v *snapshot.VirtualDestinationPlan) bool {
		config := false
		var changed []*snapshot.VirtualView
		for _, view := range v.Views {
			own := *view
			own.Priorities = slices.Clone(view.Priorities)
			config = change(&own) || config
			changed = append(changed, &own)
		}
		v.Views = changed
		return config
	})
}

package explain

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// DestinationItem is a service in a list.
type DestinationItem struct {
	Ref snapshot.Ref `json:"ref"`
	// Service is where it comes from; external services have none.
	Service *snapshot.Ref `json:"service,omitempty"`
	Ports   []uint32      `json:"ports"`
	// Traffic counts the TrafficPolicies that select it.
	Traffic AcceptedCount `json:"trafficPolicies"`
	// Access is open, closed or, where AccessPolicies decide, policies, of which
	// AccessPolicies is the number.
	Access         AccessMode `json:"access"`
	AccessPolicies int        `json:"accessPolicies,omitempty"`
	// FederatedAs is its host name in other meshes.
	FederatedAs string `json:"federatedAs,omitempty"`
	// Endpoints are the pods behind it that are ready.
	Endpoints int `json:"endpoints"`
	// Mode is how its pods take part in the mesh; empty for sidecars, and for other gateways.
	Mode   string           `json:"mode,omitempty"`
	Issues []snapshot.Issue `json:"issues"`

	plan *snapshot.DestinationPlan
}

// AcceptedCount counts targets of a policy, or policies on a target.
type AcceptedCount struct {
	Total int `json:"total"`
	// Accepted are those of them for which the policy is in force.
	Accepted int `json:"accepted"`
}

// add counts one.
func (c *AcceptedCount) add(accepted bool) {
	c.Total++
	if accepted {
		c.Accepted++
	}
}

// text is "3", or "2 of 3" where one was refused.
func (c AcceptedCount) text() string { return partly(c.Accepted, c.Total) }

// trafficCounts counts the TrafficPolicies on each Destination.
func (x Tables) trafficCounts() map[snapshot.Ref]*AcceptedCount {
	out := map[snapshot.Ref]*AcceptedCount{}
	for _, p := range x.state.Plan.Policies {
		if p.Ref.Kind != snapshot.TrafficPolicy {
			continue
		}
		for i := range p.Verdicts {
			v := &p.Verdicts[i]
			if out[v.Destination] == nil {
				out[v.Destination] = &AcceptedCount{}
			}
			out[v.Destination].add(v.Accepted)
		}
	}
	return out
}

func (x Tables) destinationItems() []DestinationItem {
	counts := x.trafficCounts()
	items := make([]DestinationItem, 0, x.state.Plan.Destinations.Len())
	for d := range x.state.Plan.Destinations.All() {
		item := DestinationItem{Ref: d.Ref, Ports: []uint32{}, Access: x.outside.accessMode(d), AccessPolicies: len(d.AccessInForce()), Issues: x.issues.of(d.Ref), plan: d}
		if c := counts[d.Ref]; c != nil {
			item.Traffic = *c
		}
		if k := d.Destination.Spec.KubeService; k != nil {
			item.Service = &snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name}
			if k.Ambient != nil {
				item.Mode = modeWord(k.Ambient.Mode)
			}
			for _, p := range k.Ports {
				item.Ports = append(item.Ports, p.Port)
			}
			for i := range k.EndpointSubsets {
				item.Endpoints += len(k.EndpointSubsets[i].Endpoints)
			}
		}
		if d.Federation != nil {
			item.FederatedAs = d.Federation.Hostname
		}
		items = append(items, item)
	}
	return items
}

// Destinations lists all services.
func (x Tables) Destinations() Table {
	service := func(d *DestinationItem) snapshot.Ref {
		if d.Service == nil {
			return snapshot.Ref{}
		}
		return *d.Service
	}
	columns := []column[DestinationItem]{
		text("SERVICE", 0, func(d *DestinationItem) string { return cmp.Or(service(d).Name, d.Ref.Name) }),
		text("NAMESPACE", 0, func(d *DestinationItem) string { return service(d).Namespace }),
		text("CLUSTER", 0, func(d *DestinationItem) string { return service(d).Cluster }),
		text("PORTS", 3, func(d *DestinationItem) string { return numbers(d.Ports) }),
		number("TRAFFIC", 0, func(d *DestinationItem) string {
			if d.Traffic.Total == 0 {
				return ""
			}
			return d.Traffic.text()
		}),
		text("ACCESS", 0, (*DestinationItem).access),
		number("ENDPOINTS", 2, func(d *DestinationItem) string {
			if d.Service == nil {
				return ""
			}
			return strconv.Itoa(d.Endpoints)
		}),
		text("FEDERATED AS", 4, func(d *DestinationItem) string { return d.FederatedAs }),
		text("NAME", 5, func(d *DestinationItem) string { return d.Ref.Name }),
		text("ISSUES", 0, func(d *DestinationItem) string { return worst(d.Issues) }),
	}
	items := x.destinationItems()
	if slices.ContainsFunc(items, func(d DestinationItem) bool { return d.Mode != "" }) {
		columns = slices.Insert(columns, 6, text("MODE", 2, func(d *DestinationItem) string { return d.Mode }))
	}
	columns = beforeIssues(columns, seenColumns(x.Index, calledRows(x.Index), func(d *DestinationItem) snapshot.Ref { return d.Ref }))
	const empty = "No service of a mesh was discovered. A service is discovered when its pods have a sidecar, or are in ambient mode."
	return newTable(empty, columns, items, func(d *DestinationItem) Row {
		row := Row{Key: d.Ref.Name, Ref: d.Ref}
		if k := d.plan.Destination.Spec.KubeService; k != nil {
			row.Clusters, row.Labels = []string{k.Ref.ClusterName}, k.Labels
		}
		row.setIssue(d.Issues)
		x.markUnreachable(&row)
		return row
	})
}

// access says in a word or two who may call it.
func (d *DestinationItem) access() string {
	if d.Access == AccessByPolicies && d.AccessPolicies > 0 {
		return snapshot.Count(d.AccessPolicies, "policy")
	}
	return string(d.Access)
}

package explain

import (
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// ServiceDependency describes a ServiceDependency.
type ServiceDependency struct {
	Ref snapshot.Ref `json:"ref"`
	// State is that of its status.
	State string `json:"state"`
	InForce
	// Workloads are those that it selects.
	Workloads []DependentWorkload `json:"workloads"`
	// Everything: it names no destinations, so that their proxies have every host.
	Everything bool `json:"everything,omitempty"`
	// Hosts are what their proxies have because of it, ascending.
	Hosts  []string         `json:"hosts"`
	Issues []snapshot.Issue `json:"issues"`
}

// DependentWorkload is a workload that a ServiceDependency selects.
type DependentWorkload struct {
	Ref snapshot.Ref `json:"ref"`
	// Sidecar is the object that configures its proxies; nil if there is none.
	Sidecar *snapshot.Ref `json:"sidecar,omitempty"`
}

// Egress lists the hosts that the proxies of a workload are configured with.
type Egress struct {
	// Sidecar is the object that configures the proxies.
	Sidecar snapshot.Ref `json:"sidecar"`
	// Dependencies are the ServiceDependencies that it follows from.
	Dependencies []snapshot.Ref `json:"dependencies"`
	// Everything: one of them names no destinations, so that all hosts are configured.
	Everything bool         `json:"everything,omitempty"`
	Hosts      []EgressHost `json:"hosts"`
}

// EgressHost is one host, or a pattern of hosts.
type EgressHost struct {
	Host string `json:"host"`
	// Destination is the one with that host name; nil for a pattern.
	Destination *snapshot.Ref `json:"destination,omitempty"`
	// Origins are the ServiceDependencies that need it; none if every proxy needs it.
	Origins []snapshot.Origin `json:"by,omitempty"`
}

// egress is the limit on the hosts of a workload's proxies; nil if there is none.
func (x describer) egress(workload snapshot.Ref) *Egress {
	s := x.sidecars[workload]
	if s == nil {
		return nil
	}
	out := &Egress{Sidecar: s.Ref, Dependencies: s.Egress.Dependencies, Everything: s.Egress.Everything, Hosts: []EgressHost{}}
	for _, h := range s.Egress.Hosts {
		host := EgressHost{Host: h.Host, Origins: h.Origins}
		if h.Destination != (snapshot.Ref{}) {
			host.Destination = &h.Destination
		}
		out.Hosts = append(out.Hosts, host)
	}
	return out
}

// section lists the hosts.
func (e *Egress) section() Section {
	s := Section{Title: "Hosts that its proxies are configured with"}
	switch {
	case e == nil:
		s.Text = "All: no ServiceDependency is in force on it."
		return s
	case e.Everything:
		s.Text = "All: one of its ServiceDependencies names no destinations."
		return s
	}
	s.Header = []string{"HOST", "DESTINATION", "BY"}
	for _, h := range e.Hosts {
		row := []string{h.Host, "", "always"}
		if h.Destination != nil {
			row[1] = h.Destination.Name
		}
		for i, o := range h.Origins {
			row[2] = kindAndName(o.Ref)
			if i > 0 {
				row[0], row[1] = above, above
			}
			if i < len(h.Origins)-1 {
				s.Rows = append(s.Rows, slices.Clone(row))
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// hostsByDependency are, for each ServiceDependency, the hosts that proxies know
// of because of it.
func hostsByDependency(plan *snapshot.Plan) map[snapshot.Ref]map[string]bool {
	out := map[snapshot.Ref]map[string]bool{}
	seen := map[*snapshot.Egress]bool{}
	for _, s := range plan.Sidecars {
		if seen[s.Egress] {
			continue
		}
		seen[s.Egress] = true
		for _, h := range s.Egress.Hosts {
			for _, o := range h.Origins {
				if o.Ref.Kind != snapshot.ServiceDependency {
					continue
				}
				if out[o.Ref] == nil {
					out[o.Ref] = map[string]bool{}
				}
				out[o.Ref][h.Host] = true
			}
		}
	}
	return out
}

func (x describer) dependency(p *snapshot.DependencyPlan) *ServiceDependency {
	out := &ServiceDependency{Ref: p.Ref, State: string(x.stateOf(p.Ref)), InForce: x.inForceOf(p.Ref), Everything: len(p.Dependency.Spec.DestinationSelectors) == 0, Workloads: []DependentWorkload{}, Hosts: []string{}, Issues: x.issues.of(p.Ref)}
	of := map[snapshot.Ref]*snapshot.SidecarPlan{}
	for _, s := range x.state.Plan.Sidecars {
		if slices.Contains(s.Egress.Dependencies, p.Ref) {
			for _, ref := range s.Workloads {
				of[ref] = s
			}
		}
	}
	out.Hosts = append(out.Hosts, slices.Sorted(maps.Keys(hostsByDependency(x.state.Plan)[p.Ref]))...)
	for i := range p.Verdicts {
		workload := DependentWorkload{Ref: p.Verdicts[i].Destination}
		if s := of[workload.Ref]; s != nil {
			workload.Sidecar = &s.Ref
		}
		out.Workloads = append(out.Workloads, workload)
	}
	return out
}

// Page implements Description.
func (o *ServiceDependency) Page() Page {
	workloads := Section{Title: "Workloads that it selects", Text: "None."}
	if len(o.Workloads) > 0 {
		workloads.Text, workloads.Header = "", []string{"WORKLOAD", "SIDECAR"}
	}
	for _, x := range o.Workloads {
		by := ""
		if x.Sidecar != nil {
			by = x.Sidecar.String()
		}
		workloads.Rows = append(workloads.Rows, []string{x.Ref.Name, by})
		workloads.Refs = append(workloads.Refs, x.Ref)
	}
	none := "None."
	if o.Everything {
		none = "All: it names no destinations."
	}
	hosts := Section{Title: "Hosts that their proxies are configured with because of it", Text: none}
	if len(o.Hosts) > 0 {
		hosts.Text, hosts.Header = "", []string{"HOST"}
	}
	for _, h := range o.Hosts {
		hosts.Rows = append(hosts.Rows, []string{h})
	}
	return o.InForce.on(Page{
		Title:    "ServiceDependency " + shortName(o.Ref),
		Sections: []Section{facts("", [2]string{"State", o.State}), workloads, hosts},
		Issues:   o.Issues,
	})
}

package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// VirtualDestination describes a VirtualDestination.
type VirtualDestination struct {
	Ref snapshot.Ref `json:"ref"`
	// State is that of its status.
	State commonv1.ApprovalState `json:"state"`
	InForce
	Hostname string `json:"hostname"`
	// Address is the virtual IP of Hostname.
	Address string `json:"address,omitempty"`
	// OnlyFrom is the namespace whose callers alone see it, as NAMESPACE.CLUSTER; empty for one of the management cluster.
	OnlyFrom string `json:"onlyFrom,omitempty"`
	// ByServers are as in Federation, among the meshes of Views.
	ByServers []snapshot.Ref `json:"resolvedByServers,omitempty"`
	Port      uint32         `json:"port"`
	Protocol  string         `json:"protocol"`
	// Answers are as in Federation.
	Answers []string `json:"answers,omitempty"`
	// Outliers says when an endpoint counts as failing.
	Outliers Outliers `json:"outlierDetection"`
	// Backing are the services behind it.
	Backing []Backing `json:"backing"`
	// Views tell what callers in each mesh get.
	Views []VirtualView `json:"views"`
	// SubsetsFor are the policies that send traffic to subsets of it.
	SubsetsFor []snapshot.Ref `json:"subsetsFor,omitempty"`
	// Seen is what its callers have counted lately, and where requests went; nil where nobody counts by nature, as for a folder.
	Seen   *Seen            `json:"seen,omitempty"`
	Issues []snapshot.Issue `json:"issues"`
}

// Outliers says when an endpoint counts as failing, and for how long.
type Outliers struct {
	ConsecutiveErrors  uint32          `json:"consecutiveErrors"`
	Interval           string          `json:"interval"`
	BaseEjectionTime   string          `json:"baseEjectionTime"`
	MaxEjectionPercent uint32          `json:"maxEjectionPercent"`
	Origin             snapshot.Origin `json:"by"`
}

// Backing is a service behind a VirtualDestination.
type Backing struct {
	Destination snapshot.Ref `json:"destination"`
	Service     snapshot.Ref `json:"service"`
	Port        uint32       `json:"port"`
	Region      string       `json:"region,omitempty"`
	// Ready is how many endpoints it has.
	Ready int `json:"ready"`
}

// VirtualView is a VirtualDestination as callers in one mesh get it.
type VirtualView struct {
	Mesh snapshot.Ref `json:"mesh"`
	// Targets are in the order of failover; none if the mesh cannot call it.
	Targets []FailoverTarget `json:"targets"`
	Issues  []snapshot.Issue `json:"issues,omitempty"`
}

// FailoverTarget is a service at its place in the order.
type FailoverTarget struct {
	// Priority counts from 0; services of the same one share the calls.
	Priority int          `json:"priority"`
	Service  snapshot.Ref `json:"service"`
	// Reason says in a few words why it has this priority.
	Reason string `json:"reason"`
	// Through are addresses of gateways; none if pods are called directly.
	Through []string        `json:"through,omitempty"`
	Origin  snapshot.Origin `json:"by"`
}

func (x describer) virtualDestination(p *snapshot.VirtualDestinationPlan) *VirtualDestination {
	o := p.Outlier
	out := &VirtualDestination{
		Ref: p.Ref, State: x.stateOf(p.Ref), InForce: x.inForceOf(p.Ref), Hostname: p.Hostname, OnlyFrom: onlyFrom(p), Address: p.Address, Port: p.Port, Protocol: p.Protocol, Answers: p.Answers(),
		Outliers: Outliers{
			ConsecutiveErrors: o.Value.ConsecutiveErrors, Interval: durationText(o.Value.Interval),
			BaseEjectionTime: durationText(o.Value.BaseEjectionTime), MaxEjectionPercent: o.Value.MaxEjectionPercent,
			Origin: o.Origin,
		},
		Backing: []Backing{}, Views: []VirtualView{}, Seen: seenVirtual(x.Index, p), Issues: x.issues.of(p.Ref),
	}
	for _, b := range p.Backing {
		ready := 0
		for _, part := range b.Destination.Spec.KubeService.EndpointSubsets {
			ready += len(part.Endpoints)
		}
		out.Backing = append(out.Backing, Backing{Destination: b.Ref, Service: serviceOf(b), Port: b.Port.Port, Region: b.Region, Ready: ready})
	}
	var callers []*snapshot.MeshPlan
	for _, v := range p.Views {
		out.Views = append(out.Views, virtualView(v))
		callers = append(callers, v.Mesh)
	}
	out.ByServers = resolvedByServers(callers, p.Hostname)
	for _, t := range p.RequiredSubsets {
		out.SubsetsFor = append(out.SubsetsFor, snapshot.RefOf(snapshot.TrafficPolicy, t.Policy))
	}
	return out
}

// onlyFrom is the namespace whose callers alone see a VirtualDestination; empty if all may.
func onlyFrom(p *snapshot.VirtualDestinationPlan) string {
	if !p.OfNamespace() {
		return ""
	}
	return p.Ref.Namespace + "." + p.Ref.Cluster
}

func virtualView(v *snapshot.VirtualView) VirtualView {
	out := VirtualView{Mesh: v.Mesh.Ref, Targets: []FailoverTarget{}, Issues: v.Issues}
	for i, p := range v.Priorities {
		for _, t := range p.Targets {
			target := FailoverTarget{Priority: i, Service: serviceOf(t.Backing), Reason: p.Reason, Origin: p.Origin}
			for _, gw := range t.Through {
				for _, a := range gw.Addresses {
					target.Through = append(target.Through, a+":"+numbers([]uint32{gw.Port}))
				}
			}
			out.Targets = append(out.Targets, target)
		}
	}
	return out
}

func serviceOf(b *snapshot.BackingPlan) snapshot.Ref {
	s := b.Destination.Spec.KubeService.Ref
	return snapshot.Ref{Kind: snapshot.Service, Cluster: s.ClusterName, Namespace: s.Namespace, Name: s.Name}
}

// orderText is the order of failover in words: "a, then b or c".
func orderText(targets []FailoverTarget) string {
	var b strings.Builder
	for i, t := range targets {
		switch {
		case i > 0 && t.Priority == targets[i-1].Priority:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", then ")
		}
		b.WriteString(t.Service.Key())
	}
	return b.String()
}

// Page implements Description.
func (v *VirtualDestination) Page() Page {
	backing := Section{Title: "Services behind it", Header: []string{"SERVICE", "PORT", "REGION", "READY"}}
	for _, b := range v.Backing {
		backing.Rows = append(backing.Rows, []string{b.Service.Key(), strconv.FormatUint(uint64(b.Port), 10), b.Region, strconv.Itoa(b.Ready)})
		backing.Refs = append(backing.Refs, b.Destination)
	}
	if len(v.Backing) == 0 {
		backing = Section{Title: backing.Title, Text: "None."}
	}
	page := Page{
		Title: "VirtualDestination " + shortName(v.Ref),
		Sections: []Section{
			facts("",
				[2]string{"State", string(v.State)}, [2]string{"Host", v.Hostname}, [2]string{"Only from", v.OnlyFrom}, [2]string{"Address", v.Address},
				[2]string{"Not evaluated", byServersText(v.ByServers)},
				[2]string{"Port", strconv.FormatUint(uint64(v.Port), 10) + " " + v.Protocol},
				[2]string{"Answered by", answeredBy(v.Answers)},
				[2]string{"Outlier detection", v.Outliers.text()}, [2]string{"Set by", v.Outliers.setBy()},
			),
			backing,
		},
		Issues: v.Issues,
	}
	for _, view := range v.Views {
		page.Sections = append(page.Sections, view.section())
	}
	if len(v.SubsetsFor) > 0 {
		s := Section{Title: "Its subsets are used by", Header: []string{"POLICY"}}
		for _, ref := range v.SubsetsFor {
			s.Rows = append(s.Rows, []string{shortName(ref)})
			s.Refs = append(s.Refs, ref)
		}
		page.Sections = append(page.Sections, s)
	}
	return v.InForce.on(v.Seen.on(page, func() []Section {
		return append([]Section{v.Seen.callSection("", true, false, false)}, v.Seen.Failover.sections()...)
	}))
}

// text says when an endpoint gets no more requests, and for how long.
func (o *Outliers) text() string {
	return fmt.Sprintf("an endpoint is ejected after %s in a row, for %s or longer; checked every %s, at most %d%% ejected",
		snapshot.Count(int(o.ConsecutiveErrors), "error"), o.BaseEjectionTime, o.Interval, o.MaxEjectionPercent)
}

// setBy names the object and field that set it; it is the default if no
// outlierDetection does.
func (o *Outliers) setBy() string {
	if !strings.Contains(o.Origin.Field, "outlierDetection") {
		return "default"
	}
	return kindAndName(o.Origin.Ref) + ", " + o.Origin.Field
}

func (v *VirtualView) section() Section {
	s := Section{Title: "Calls from mesh " + v.Mesh.Name}
	if len(v.Targets) == 0 {
		s.Text = "None: the mesh cannot call it."
		return s
	}
	s.Text = "Requests go to the next service when those before it have no healthy endpoints."
	s.Header = []string{"PRIORITY", "SERVICE", "WHY", "THROUGH", "FIELD"}
	for i, t := range v.Targets {
		row := []string{strconv.Itoa(t.Priority), t.Service.Key(), t.Reason, strings.Join(t.Through, ", "), t.Origin.Field}
		if len(t.Through) == 0 {
			row[3] = "pods"
		}
		if i > 0 && v.Targets[i-1].Priority == t.Priority {
			row[0] = above
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// Failover is a VirtualDestination as a page about something else shows it.
type Failover struct {
	VirtualDestination snapshot.Ref `json:"virtualDestination"`
	Hostname           string       `json:"hostname"`
	Port               uint32       `json:"port"`
	// Mesh is the one whose callers get the Targets, and OnlyFrom the namespace whose callers alone do, as NAMESPACE.CLUSTER; empty for
	// all.
	Mesh     snapshot.Ref     `json:"mesh"`
	OnlyFrom string           `json:"onlyFrom,omitempty"`
	Targets  []FailoverTarget `json:"targets"`
}

// failovers are the VirtualDestinations that a mesh sees, or should see; with backing
// set, only those that have this service.
func (x describer) failovers(mesh *snapshot.MeshPlan, backing *snapshot.Ref) []Failover {
	var out []Failover
	for _, p := range x.state.Plan.VirtualDestinations {
		if backing != nil && !slices.ContainsFunc(p.Backing, func(b *snapshot.BackingPlan) bool { return b.Ref == *backing }) {
			continue
		}
		f := Failover{VirtualDestination: p.Ref, Hostname: p.Hostname, Port: p.Port, Mesh: mesh.Ref, OnlyFrom: onlyFrom(p), Targets: []FailoverTarget{}}
		seen := false
		for _, v := range p.Views {
			if v.Mesh == mesh {
				seen, f.Targets = true, virtualView(v).Targets
			}
		}
		if seen || backing != nil {
			out = append(out, f)
		}
	}
	return out
}

// failoverSection lists VirtualDestinations with the order in which a mesh's
// callers get their services.
func failoverSection(title string, failovers []Failover) Section {
	s := Section{Title: title, Header: []string{"HOST", "PORT", "VIRTUAL DESTINATION", "CALLS FROM " + failovers[0].Mesh.Name + " GO TO"}}
	for _, f := range failovers {
		order := orderText(f.Targets)
		if order == "" {
			order = "nowhere: the mesh cannot call it"
		}
		if f.OnlyFrom != "" {
			order += " (callers in " + f.OnlyFrom + " only)"
		}
		s.Rows = append(s.Rows, []string{f.Hostname, strconv.FormatUint(uint64(f.Port), 10), shortName(f.VirtualDestination), order})
		s.Refs = append(s.Refs, f.VirtualDestination)
	}
	return s
}

package explain

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Destination describes a service.
type Destination struct {
	Ref snapshot.Ref `json:"ref"`
	// Answer is the shortest answer to where requests go, and who may call it.
	Answer Answer `json:"answer"`
	// Service is where it comes from; external services have none.
	Service *snapshot.Ref `json:"service,omitempty"`
	InForce
	Mesh *snapshot.Ref `json:"mesh,omitempty"`
	// Frozen says why the service's cluster cannot be reached, so that nothing is changed there; empty if it can.
	Frozen string `json:"unreachable,omitempty"`
	// Mode says how far its pods are in ambient mode, and Waypoint which waypoint it asks for; empty for sidecars, and for none.
	Mode     string `json:"mode,omitempty"`
	Waypoint string `json:"waypoint,omitempty"`
	// Host is the service's name in its own cluster.
	Host       string      `json:"host"`
	Ports      []Port      `json:"ports"`
	Federation *Federation `json:"federation,omitempty"`
	// NotFederated says why not, although a VirtualMesh selects it; empty if none does.
	NotFederated string `json:"notFederated,omitempty"`
	// NotImportedBy are the meshes that could import it, and do not because nothing declares that their callers need it.
	NotImportedBy []snapshot.Ref `json:"notImportedBy,omitempty"`
	// Traffic are the TrafficPolicies that select it: those in force first, in
	// order of precedence, then those that were refused.
	Traffic []AppliedPolicy `json:"trafficPolicies"`
	// Views are the route tables; meshes without one reach the service unchanged.
	Views  []View `json:"views"`
	Access Access `json:"access"`
	// Audit is what would change for its callers if all that is audited was enforced; nil if nothing would, or nothing is audited.
	Audit *Audit `json:"audit,omitempty"`
	// Failovers are the VirtualDestinations that have it as a service, as seen from
	// its own mesh.
	Failovers []Failover `json:"failovers,omitempty"`
	// SubsetsFor are the policies that send traffic to subsets of the service.
	SubsetsFor []snapshot.Ref `json:"subsetsFor,omitempty"`
	// Endpoints are the pods behind it that are ready.
	Endpoints []Endpoint `json:"endpoints"`
	// NotEvaluated are sentences on what applies to its pods and is not evaluated.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Seen is what its callers have counted lately; nil where nobody counts by nature, as for a folder.
	Seen   *Seen            `json:"seen,omitempty"`
	Issues []snapshot.Issue `json:"issues"`
}

// Port of a service.
type Port struct {
	Number   uint32 `json:"number"`
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol,omitempty"`
}

// Federation is how other meshes see a service.
type Federation struct {
	Hostname string         `json:"hostname"`
	Address  string         `json:"address"`
	To       []snapshot.Ref `json:"to"`
	// ByServers are those of To whose proxies do not answer for Hostname, so that a DNS server of their cluster has to.
	ByServers []snapshot.Ref `json:"resolvedByServers,omitempty"`
	// ImportedBy says because of what each of To imports it, where that has to be declared.
	ImportedBy []Import `json:"importedBy,omitempty"`
	// Flat networks need no gateway.
	Flat bool `json:"flatNetwork,omitempty"`
	// Limited: gateways of both meshes end the TLS sessions, and check callers.
	Limited bool `json:"limitedTrust,omitempty"`
	// Answers are the identities with which it may answer; none if callers accept every
	// certificate of a root that they trust.
	Answers []string        `json:"answers,omitempty"`
	Origin  snapshot.Origin `json:"by"`
}

// AppliedPolicy is a TrafficPolicy on a Destination.
type AppliedPolicy struct {
	Ref snapshot.Ref `json:"ref"`
	// State is ACCEPTED or INVALID.
	State string `json:"state"`
	// WouldBe is the state that follows now, if the stored status says otherwise.
	WouldBe string `json:"wouldBe,omitempty"`
	// Order is the place in the order of precedence, from 0; accepted policies have one.
	Order *uint32 `json:"order,omitempty"`
	// LastGood: the present spec is invalid here, and the last accepted one is in force.
	LastGood bool `json:"lastGood,omitempty"`
	// Reduced: it is in force without targets that cannot be reached.
	Reduced bool `json:"reduced,omitempty"`
	// Sets are the fields, below spec, that take effect somewhere.
	Sets []string `json:"sets"`
	// Lost are the fields that an older policy sets.
	Lost   []string         `json:"lost,omitempty"`
	Issues []snapshot.Issue `json:"issues,omitempty"`
}

func (x describer) destination(d *snapshot.DestinationPlan) *Destination {
	out := &Destination{
		Ref: d.Ref, InForce: x.inForceOf(d.Ref), Host: d.LocalFQDN, Ports: []Port{}, Traffic: x.trafficOn(d), Views: viewsOf(x.Index, d),
		Access: x.accessTo(d), Audit: destinationAudit(x.Index, d), Endpoints: x.endpoints(d), Seen: seenDestination(x.Index, d.Ref), Issues: x.issues.of(d.Ref),
	}
	if d.Mesh != nil {
		out.Mesh = &d.Mesh.Ref
		out.Failovers = x.failovers(d.Mesh, &d.Ref)
		out.NotEvaluated = unevaluatedAt(x.Index, d)
		if text := ambientCallers(x.Index, d.Mesh); text != "" {
			out.NotEvaluated = append(out.NotEvaluated, text)
		}
	}
	if k := d.Destination.Spec.KubeService; k != nil {
		out.Mode, out.Waypoint = snapshot.AmbientText(k), snapshot.WaypointText(k)
		out.Service = &snapshot.Ref{Kind: snapshot.Service, Cluster: k.Ref.ClusterName, Namespace: k.Ref.Namespace, Name: k.Ref.Name}
		out.Frozen = x.frozenReason(k.Ref.ClusterName)
		for _, p := range k.Ports {
			out.Ports = append(out.Ports, Port{Number: p.Port, Name: p.Name, Protocol: p.Protocol})
		}
	}
	out.Answer = x.answer(d, &out.Access)
	out.NotFederated, out.NotImportedBy = d.NotFederated(), notImportedBy(d)
	if f := d.Federation; f != nil {
		out.Federation = &Federation{Hostname: f.Hostname, Address: f.Address, Flat: f.Flat, Limited: f.Limited, Origin: f.Origin,
			ImportedBy: importsOf(f), Answers: d.Mesh.Identities(d.Destination.Spec.KubeService)}
		for _, m := range f.To {
			out.Federation.To = append(out.Federation.To, m.Ref)
		}
		out.Federation.ByServers = resolvedByServers(f.To, f.Hostname)
	}
	for _, p := range d.RequiredSubsets {
		out.SubsetsFor = append(out.SubsetsFor, snapshot.RefOf(snapshot.TrafficPolicy, p.Policy))
	}
	return out
}

// trafficOn lists the TrafficPolicies that select a Destination.
func (x describer) trafficOn(d *snapshot.DestinationPlan) []AppliedPolicy {
	won := fieldsWon(d, x.unwritten.viewsOf(d))
	inForce := map[snapshot.Ref]snapshot.AppliedTraffic{}
	for _, applied := range d.Traffic {
		inForce[snapshot.RefOf(snapshot.TrafficPolicy, applied.Policy)] = applied
	}
	policies := []AppliedPolicy{}
	for _, p := range x.state.Plan.Policies {
		if p.Ref.Kind != snapshot.TrafficPolicy {
			continue
		}
		for _, v := range p.Verdicts {
			if v.Destination != d.Ref {
				continue
			}
			applied := AppliedPolicy{Ref: p.Ref, LastGood: inForce[p.Ref].LastGood, Reduced: inForce[p.Ref].Missing && snapshot.HasErrors(v.Issues), Sets: won[p.Ref], Lost: lostFields(v.Issues), Issues: v.Issues}
			if applied.Sets == nil {
				applied.Sets = []string{}
			}
			if applied.State, applied.WouldBe = x.targetState(p.Ref, &v); applied.State == "ACCEPTED" && v.Accepted {
				order := v.Order
				applied.Order = &order
			}
			policies = append(policies, applied)
		}
	}
	slices.SortStableFunc(policies, func(a, b AppliedPolicy) int {
		switch {
		case a.Order != nil && b.Order != nil:
			return int(*a.Order) - int(*b.Order)
		case a.Order != nil:
			return -1
		case b.Order != nil:
			return 1
		}
		return a.Ref.Compare(b.Ref)
	})
	return policies
}

// fieldsWon lists, for each policy, the fields that take effect in any view, ascending.
func fieldsWon(d *snapshot.DestinationPlan, views []*snapshot.View) map[snapshot.Ref][]string {
	won := map[snapshot.Ref][]string{}
	add := func(o snapshot.Origin) {
		if fields := won[o.Ref]; o.Ref.Kind == snapshot.TrafficPolicy && !slices.Contains(fields, o.Field) {
			won[o.Ref] = append(fields, o.Field)
		}
	}
	for _, v := range views {
		for _, s := range viewSettings(d, v) {
			add(s.Origin)
		}
		for _, r := range v.Routes {
			for _, s := range actionSettings(r) {
				add(s.Origin)
			}
			if t := r.Action.Targets; t != nil {
				add(t.Origin)
			}
		}
	}
	for _, fields := range won {
		slices.Sort(fields)
	}
	return won
}

// Page implements Description.
func (d *Destination) Page() Page {
	var service, mesh, ports string
	if d.Service != nil {
		service = d.Service.Cluster + "/" + d.Service.Namespace + "/" + d.Service.Name
	}
	if d.Mesh != nil {
		mesh = shortName(*d.Mesh)
	}
	for i, p := range d.Ports {
		if i > 0 {
			ports += ", "
		}
		ports += numbers([]uint32{p.Number})
		if p.Name != "" {
			ports += " " + p.Name
		}
	}
	page := Page{
		Title: "Destination " + shortName(d.Ref),
		Sections: []Section{facts("",
			[2]string{"Requests go", d.Answer.Requests}, [2]string{"Callers", d.Answer.Callers}, [2]string{"Service", service}, [2]string{"Host", d.Host}, [2]string{"Ports", ports},
			[2]string{"Mesh", mesh}, [2]string{"Mode", d.Mode}, [2]string{"Waypoint", d.Waypoint}, [2]string{"Unreachable", d.Frozen}, [2]string{"Not evaluated", strings.Join(d.NotEvaluated, "; ")},
		)},
		Issues: d.Issues,
	}
	page.Sections = append(page.Sections, d.federationSection(), d.trafficSection())
	if len(d.Failovers) > 0 {
		page.Sections = append(page.Sections, failoverSection("VirtualDestinations with this service", d.Failovers))
	}
	for _, v := range d.Views {
		page.Sections = append(page.Sections, v.sections()...)
	}
	page.Sections = append(page.Sections, d.Access.sections()...)
	page.Sections = append(page.Sections, d.Audit.sections()...)
	page.Sections = append(page.Sections, endpointsSection(d.Endpoints))
	if len(d.SubsetsFor) > 0 {
		s := Section{Title: "Its subsets are used by", Header: []string{"POLICY"}}
		for _, ref := range d.SubsetsFor {
			s.Rows = append(s.Rows, []string{shortName(ref)})
			s.Refs = append(s.Refs, ref)
		}
		page.Sections = append(page.Sections, s)
	}
	return d.InForce.on(d.Seen.on(page, func() []Section { return []Section{d.Seen.callSection("", true, false, d.Access.Default != Allow)} }))
}

func (d *Destination) federationSection() Section {
	f := d.Federation
	if f == nil {
		text := "Not federated: only its own mesh can call it."
		if len(d.Failovers) > 0 {
			text = "Not federated: other meshes can call it only through the VirtualDestinations below."
		}
		if len(d.NotImportedBy) > 0 {
			text += " " + d.notImportedText() + "."
		}
		if d.NotFederated != "" {
			text += " A VirtualMesh selects it, but " + d.NotFederated + "."
		}
		return Section{Title: "Federation", Text: text}
	}
	to := make([]string, len(f.To))
	for i, ref := range f.To {
		to[i] = shortName(ref)
		if f.ImportedBy != nil {
			to[i] += " (" + needText(f.ImportedBy[i].By) + ")"
		}
	}
	through := "east-west gateway, which balances connections, not requests"
	switch {
	case f.Flat:
		through = "direct (flat network)"
	case f.Limited:
		through = "east-west gateways of both meshes, which check callers and balance connections, not requests"
	}
	return facts("Federation",
		[2]string{"Host", f.Hostname}, [2]string{"Address", f.Address}, [2]string{"Not evaluated", byServersText(f.ByServers)}, [2]string{"To", strings.Join(to, ", ")},
		[2]string{"Not imported", d.notImportedText()}, [2]string{"Through", through}, [2]string{"Answered by", answeredBy(f.Answers)}, [2]string{"By", kindAndName(f.Origin.Ref)},
	)
}

// answeredBy says whose certificates callers accept.
func answeredBy(identities []string) string {
	if len(identities) == 0 {
		return "anyone with a certificate of the common root: the service accounts of its pods, or their trust domain, are not all known"
	}
	return firstOf(identities)
}

func (d *Destination) trafficSection() Section {
	s := Section{Title: "Traffic policies"}
	if len(d.Traffic) == 0 {
		s.Text = "None selects it: requests go to it unchanged."
		return s
	}
	s.Text = "Of two that set the same field, the first one wins."
	s.Header = []string{"ORDER", "POLICY", "STATE", "SETS", "CONFLICTS"}
	for _, p := range d.Traffic {
		order := ""
		if p.Order != nil {
			order = numbers([]uint32{*p.Order})
		}
		s.Rows = append(s.Rows, []string{order, shortName(p.Ref), stateText(p.State, p.WouldBe, p.LastGood, p.Reduced), strings.Join(p.Sets, ", "), strings.Join(p.Lost, ", ")})
		s.Refs = append(s.Refs, p.Ref)
	}
	return s
}

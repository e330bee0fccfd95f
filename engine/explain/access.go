package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Access is who may call a Destination.
type Access struct {
	// Default is what happens to callers whom no rule names: ALLOW or DENY.
	Default string `json:"default"`
	// DenyOrigins are what makes the default DENY.
	DenyOrigins []snapshot.Origin `json:"denyBy,omitempty"`
	Rules       []Rule            `json:"rules"`
	// Denied is whom AccessPolicies keep out whatever others allow, and DeniedBeside are services with the same pods whose policies
	// deny something, too. Anonymous says what becomes of callers without identity; empty if that is clear.
	Denied       []Rule         `json:"denied,omitempty"`
	DeniedBeside []snapshot.Ref `json:"deniedBeside,omitempty"`
	Anonymous    string         `json:"anonymous,omitempty"`
	// SharedWith are services with the same pods, the policies on which must allow calls,
	// too; or, if no policy selects the service itself, those whose policies decide.
	SharedWith []snapshot.Ref `json:"sharedWith,omitempty"`
	// inFront: SharedWith decide, and no policy selects the service itself.
	inFront bool
	// NoProxy says how many of the pods run no proxy of the mesh, so that nothing keeps anyone out there; empty if all do.
	NoProxy string `json:"noProxy,omitempty"`
	// Ambient says which of its pods are in ambient mode, and that what decides there is not followed; empty if none are.
	Ambient string `json:"ambient,omitempty"`
	// unknown: none of its pods has a proxy of its own, and it is not certain that they let nobody in.
	unknown bool
	// Gateway: it lets other clusters or the outside in, so that it stays open
	// where access is denied by default.
	Gateway bool `json:"gateway,omitempty"`
	// Permissive: its mesh allows all calls, whatever policies say.
	Permissive bool `json:"permissive,omitempty"`
	// Unidentified are the meshes whose callers present no identity, so that only a rule
	// for anyone allows them.
	Unidentified []Unidentified `json:"unidentified,omitempty"`
	// ByHand is what users wrote that also decides.
	ByHand []ByHand `json:"byHand,omitempty"`
	// Callers are the known workloads that get through, ascending, if the
	// default is DENY, or something in ByHand decides.
	Callers []snapshot.Ref `json:"callers,omitempty"`
	// Refused counts the known workloads that can reach it and do not get through.
	Refused int `json:"refused,omitempty"`
}

// Unidentified is a mesh whose callers present no identity.
type Unidentified struct {
	Mesh snapshot.Ref `json:"mesh"`
	// TLSMode is the mode with which they call.
	TLSMode string          `json:"tlsMode"`
	Origin  snapshot.Origin `json:"by"`
}

// ByHand is an object that users wrote for a mesh themselves.
type ByHand struct {
	Object snapshot.Ref `json:"object"`
	// What says what it does, after its name.
	What string `json:"what"`
}

// AccessMode says in a word who may call a Destination.
type AccessMode string

const (
	// AccessOpen: anyone may.
	AccessOpen AccessMode = "open"
	// AccessClosed: nobody may, because no AccessPolicy selects it.
	AccessClosed AccessMode = "closed"
	// AccessByPolicies: those may whom AccessPolicies name.
	AccessByPolicies AccessMode = "policies"
	// AccessByHand: no AccessPolicy decides, but what users wrote does.
	AccessByHand AccessMode = "by hand"
	// AccessAmbient: what decides in ambient mode is not followed.
	AccessAmbient AccessMode = "ambient"
)

func (o *outside) accessMode(d *snapshot.DestinationPlan) AccessMode {
	switch {
	case snapshot.AllAmbient(d.Destination.Spec.KubeService) && (d.Open() != snapshot.OpenNot || len(d.Access) > 0 || len(o.access(d)) > 0):
		return AccessAmbient
	case d.Open() != snapshot.OpenNot && (o.deniesSome(d) || o.closedInFront(d)):
		return AccessByPolicies
	case d.Open() != snapshot.OpenNot && len(o.access(d)) > 0:
		return AccessByHand
	case d.Open() != snapshot.OpenNot:
		return AccessOpen
	case len(d.Access) > 0:
		return AccessByPolicies
	}
	return AccessClosed
}

// The values of Access.Default.
const (
	Allow = "ALLOW"
	Deny  = "DENY"
)

// Rule is what one AccessPolicy allows on one Destination, or several do together.
type Rule struct {
	Policy snapshot.Ref `json:"policy"`
	// With are policies on other services with the same pods: the rule is what they allow
	// of what Policy allows.
	With []snapshot.Ref `json:"with,omitempty"`
	// Callers are identities and namespaces in words; "anyone" is everybody.
	Callers []string `json:"callers"`
	Paths   []string `json:"paths,omitempty"`
	Methods []string `json:"methods,omitempty"`
	Ports   []uint32 `json:"ports,omitempty"`
	// PodPorts are set instead of Ports where services with other ports have the same pods.
	PodPorts []uint32 `json:"podPorts,omitempty"`
}

func (x describer) accessTo(d *snapshot.DestinationPlan) Access {
	open := d.Open()
	a := Access{Default: Allow, Rules: []Rule{}, Gateway: open == snapshot.OpenAsGateway, Permissive: open == snapshot.OpenByMesh}
	for _, o := range x.outside.access(d) {
		a.ByHand = append(a.ByHand, ByHand{o.Ref, o.What})
	}
	if k := d.Destination.Spec.KubeService; k != nil {
		if all, bare := snapshot.EndpointCounts(k); bare > 0 {
			a.NoProxy = snapshot.NoProxyText(bare, all)
		}
		a.NoProxy = snapshot.Sentences(a.NoProxy, snapshot.PastProxyText(k))
	}
	a.Ambient = ambientText(d)
	if open == snapshot.OpenNot {
		a.restrict(d)
	}
	a.Denied, a.Anonymous = deniedRules(d), anonymousText(d)
	gate := x.gateTo(d)
	if a.unknown = gate.unknown(); !a.unknown && snapshot.AllAmbient(d.Destination.Spec.KubeService) {
		a.Ambient = snapshot.AmbientText(d.Destination.Spec.KubeService) + ", where ztunnel holds to that"
	}
	for _, c := range gate.calls {
		for _, o := range c.group.others {
			if !slices.Contains(a.SharedWith, o.Ref) {
				a.SharedWith, a.inFront = append(a.SharedWith, o.Ref), true
			}
		}
		for _, o := range c.group.denying {
			if o != d && !slices.Contains(a.DeniedBeside, o.Ref) {
				a.DeniedBeside = append(a.DeniedBeside, o.Ref)
			}
		}
	}
	if open != snapshot.OpenNot && len(a.ByHand)+len(a.SharedWith)+len(a.Denied)+len(a.DeniedBeside) == 0 {
		return a
	}
	for _, ref := range x.Refs(snapshot.Workload) {
		if may, _ := gate.admits(x.workloads[ref]); may {
			a.Callers = append(a.Callers, ref)
		} else if mesh := x.meshOf(x.workloads[ref]); mesh != nil && d.Mesh != nil && reaches(mesh, d) {
			a.Refused++
		}
	}
	return a
}

// restrict adds what AccessPolicies say about a Destination that is not open.
func (a *Access) restrict(d *snapshot.DestinationPlan) {
	a.Default = Deny
	if d.Mesh != nil && d.Mesh.DenyByDefault != nil {
		a.DenyOrigins = append(a.DenyOrigins, *d.Mesh.DenyByDefault)
	}
	for _, rule := range d.Access {
		// A policy that allows some callers denies all others.
		a.DenyOrigins = append(a.DenyOrigins, snapshot.Origin{Ref: rule.Origin.Ref})
	}
	a.Rules = append(a.Rules, rulesOn(d)...)
	a.SharedWith = d.Callers.SharedWith
	for _, u := range d.Callers.Unidentified {
		a.Unidentified = append(a.Unidentified, Unidentified{Mesh: u.Mesh, TLSMode: string(u.TLS.Value), Origin: u.TLS.Origin})
	}
}

// rulesOn are what the policies on a Destination allow, or do so together with those on services with
// the same pods.
func rulesOn(d *snapshot.DestinationPlan) (rules []Rule) {
	if d.Callers != nil && len(d.Callers.SharedWith) > 0 {
		for _, rule := range d.Callers.Rules {
			rules = append(rules, Rule{
				Policy: rule.Policy, With: rule.With, Callers: callersText(rule.Anyone, rule.Sources, false),
				Paths: rule.Paths, Methods: rule.Methods, PodPorts: rule.PodPorts,
			})
		}
		return rules
	}
	for _, rule := range d.Access {
		rules = append(rules, Rule{
			Policy: rule.Origin.Ref, Callers: callersText(rule.Anyone, rule.Sources, d.Mesh != nil && d.Mesh.Dialect.ByAccount),
			Paths: rule.Paths, Methods: rule.Methods, Ports: rule.Ports,
		})
	}
	return rules
}

// gate decides which workloads may call a Destination. It is made once for all of them.
type gate struct {
	*Index
	d     *snapshot.DestinationPlan
	calls []gateCall
}

// gateCall is a call to a group of pods, by a port of the Destination; 0 stands for any.
type gateCall struct {
	snapshot.Call
	group *podGroup
	port  uint32
}

// unknown reports whether all pods are in ambient mode, and some may let somebody in.
func (g *gate) unknown() bool {
	return !slices.ContainsFunc(g.calls, func(c gateCall) bool { return c.group.ambient == "" }) && snapshot.AllAmbient(g.d.Destination.Spec.KubeService) &&
		(g.d.Mesh == nil || slices.ContainsFunc(g.calls, func(c gateCall) bool {
			return c.group.toAmbient(g.d, g.d.Mesh, connection{by: byGateway}, c.Call).verdict == Unknown
		}))
}

func (x *Index) gateTo(d *snapshot.DestinationPlan) *gate {
	g := &gate{Index: x, d: d}
	add := func(isHTTP bool, port uint32) {
		for _, group := range x.outside.podGroups(d, port, nil) {
			g.calls = append(g.calls, gateCall{snapshot.Call{HTTP: isHTTP, AnyRequest: true}, group, port})
		}
	}
	if k := d.Destination.Spec.KubeService; k != nil {
		for i := range k.Ports {
			add(dialectOf(d).IsHTTP(&k.Ports[i]), k.Ports[i].Port)
		}
	}
	if len(g.calls) == 0 {
		add(true, 0)
	}
	open := func(c gateCall) bool { return c.group.bare || c.group.pastProxy != "" }
	if slices.ContainsFunc(g.calls, func(c gateCall) bool { return !open(c) }) { // what is said of bare pods is another matter
		g.calls = slices.DeleteFunc(g.calls, open)
	}
	return g
}

// admits reports whether a workload can reach the Destination and may call it, on some port and
// path of some pod at least, and which policies allow that; none if all callers are allowed. If it may not, these are the policies that
// deny it, whatever others allow.
func (g *gate) admits(workload *discoveryv1.Workload) (may bool, by []snapshot.Ref) {
	mesh := g.meshOf(workload)
	if mesh == nil || g.d.Mesh == nil || !reaches(mesh, g.d) || !trusts(g.d.Mesh, mesh) {
		return false, nil
	}
	caller := callerOf(workload, mesh, true)
	q := &query{Index: g.Index, workload: workload, mesh: mesh}
	hidden := !modeOf(workload).IsAmbient() && hiddenHost(q, g.d, hostFrom(mesh, g.d)) != ""
	if hidden {
		if what, _ := unknowns(q); mesh.Ref != g.d.Mesh.Ref || what == snapshot.UnknownsRefused {
			return false, nil
		}
	}
	var denied []snapshot.Ref
	for _, c := range g.calls {
		call, how := c.Call, connectionOf(g.Index, workload, mesh, g.d, c.port, "")
		call.Caller = caller
		if e := escapesTo(g.Index, workload, mesh, g.d, c.port); e.Sure {
			how = pastOf(e)
		} else if hidden {
			how = pastUnknown()
		}
		j := judge(g.d, mesh, how, call, c.group)
		if j.verdict == Allowed || j.verdict == Unknown {
			may, by = true, append(by, j.ours.By...)
		}
		denied = append(denied, j.ours.Denied...)
	}
	if !may {
		by = denied
	}
	slices.SortFunc(by, snapshot.Ref.Compare)
	return may, slices.Compact(by)
}

// trusts reports whether services of a mesh accept the certificates of callers of another one.
func trusts(of, callers *snapshot.MeshPlan) bool {
	return of.Ref == callers.Ref || !of.Dialect.SPIFFE || of.Limited || of.Accepts(callers.TrustDomain)
}

// reaches reports whether a mesh knows a name for a Destination.
func reaches(mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) bool {
	return mesh.Ref == d.MeshRef() || d.Federation != nil && slices.ContainsFunc(d.Federation.To, func(m *snapshot.MeshPlan) bool { return m.Ref == mesh.Ref })
}

// callerOf is what the certificates of a workload's pods name; nil if they present none.
func callerOf(workload *discoveryv1.Workload, mesh *snapshot.MeshPlan, identified bool) *snapshot.Identity {
	k := workload.Spec.Kubernetes
	if k == nil || !identified {
		return nil
	}
	return &snapshot.Identity{TrustDomain: mesh.IdentityDomain(), Namespace: k.Controller.Namespace, ServiceAccount: account(workload)}
}

// account is the service account of a workload's pods.
func account(workload *discoveryv1.Workload) string {
	if k := workload.Spec.Kubernetes; k != nil && k.ServiceAccountName != "" {
		return k.ServiceAccountName
	}
	return "default"
}

func (x *Index) meshOf(workload *discoveryv1.Workload) *snapshot.MeshPlan {
	return x.meshes[snapshot.Ref{Kind: snapshot.Mesh, Namespace: workload.Spec.Mesh.Namespace, Name: workload.Spec.Mesh.Name}]
}

func (a Access) sections() []Section {
	out := append(a.callerSections(), a.denialSections()...)
	if a.NoProxy != "" {
		out[0].Text += " Of its pods, " + a.NoProxy + "."
	}
	if a.Ambient != "" && !a.unknown {
		out[0].Text += " Besides, " + a.Ambient + "."
	}
	return out
}

func (a Access) callerSections() []Section {
	s := Section{Title: "Who may call it"}
	switch {
	case a.unknown:
		s.Text = "Not known: " + a.Ambient + "."
		return []Section{s}
	case a.Gateway && len(a.Denied)+len(a.DeniedBeside) > 0:
		s.Text = "Anyone whom no policy denies: it is a gateway, and stays open where access is denied by default."
		return []Section{s}
	case a.Gateway:
		s.Text = "Anyone: it is a gateway, and stays open where access is denied by default."
		return []Section{s}
	case a.Permissive:
		s.Text = "Anyone in its mesh, whatever policies say: the mesh is in permissive traffic policy mode."
		return []Section{s}
	case a.inFront && len(a.ByHand) > 0:
		s.Text = "No AccessPolicy selects it, but its pods are also those of " + services(a.SharedWith) + ": the policies there decide about calls to them, and what users wrote."
		return append([]Section{s}, a.byHandSections()...)
	case a.inFront:
		s.Text = "No AccessPolicy selects it, but its pods are also those of " + services(a.SharedWith) + ": the policies there decide about calls to them."
		return []Section{s, a.callersSection()}
	case a.Default == Allow && len(a.ByHand) > 0:
		s.Text = "No AccessPolicy allows calls to it, and access is open by default; what users wrote decides."
		if len(a.Denied) == 0 {
			s.Text = "No AccessPolicy selects it, and access is open by default; what users wrote decides."
		}
		return append([]Section{s}, a.byHandSections()...)
	case a.Default == Allow && len(a.Denied)+len(a.DeniedBeside) > 0:
		s.Text = "Anyone whom no policy denies: no AccessPolicy allows some callers only, and access is open by default."
		return []Section{s, a.callersSection()}
	case a.Default == Allow:
		s.Text = "Anyone: no AccessPolicy selects it, and access is open by default."
		return []Section{s}
	case len(a.Rules) == 0 && len(a.SharedWith) > 0:
		s.Text = "Nobody: its pods are also those of " + services(a.SharedWith) + ", and the policies on these services together allow no call."
		return append([]Section{s}, a.byHandSections()...)
	case len(a.Rules) == 0:
		s.Text = "Nobody: no AccessPolicy selects it, and access is denied by default (" + kindAndName(a.DenyOrigins[0].Ref) + ")."
		return append([]Section{s}, a.byHandSections()...)
	}
	s.Text = "Only the callers that a policy names; all others are denied."
	if len(a.SharedWith) > 0 {
		s.Text = "Only the callers that the policies on each service allow: its pods are also those of " + services(a.SharedWith) + "."
	}
	s.Header = ruleHeader
	for i := range a.Rules {
		a.Rules[i].addTo(&s)
	}
	for _, u := range a.Unidentified {
		s.Text += fmt.Sprintf(" Callers from mesh %s present no identity (%s sets TLS mode %s): only a policy for anyone allows them.",
			shortName(u.Mesh), kindAndName(u.Origin.Ref), u.TLSMode)
	}
	if len(a.ByHand) > 0 {
		return append([]Section{s}, a.byHandSections()...)
	}
	return []Section{s, a.callersSection()}
}

// ruleHeader is that of tables of rules.
var ruleHeader = []string{"POLICY", "CALLERS", "METHODS", "PATHS", "PORTS"}

// addTo adds a rule to a table, a row for each of its callers.
func (r *Rule) addTo(s *Section) {
	for i, caller := range r.Callers {
		row := []string{above, caller, above, above, above}
		if i == 0 {
			row = []string{r.policies(), caller, orAny(strings.Join(r.Methods, ", ")), orAny(strings.Join(r.Paths, ", ")), r.ports()}
		}
		s.Rows = append(s.Rows, row)
		s.Refs = append(s.Refs, r.Policy)
	}
}

// byHandSections are what users wrote, and who may call with that.
func (a Access) byHandSections() []Section {
	if len(a.ByHand) == 0 {
		return nil
	}
	s := Section{Title: "What users wrote beside that", Header: []string{"OBJECT", "WHAT IT DOES"}}
	for _, o := range a.ByHand {
		s.Rows = append(s.Rows, []string{o.Object.String(), o.What})
		s.Refs = append(s.Refs, o.Object)
	}
	return []Section{s, a.callersSection()}
}

func (a Access) callersSection() Section {
	callers := Section{Title: "Workloads that may call it", Header: []string{"WORKLOAD"}}
	for _, ref := range a.Callers {
		callers.Rows = append(callers.Rows, []string{ref.Name})
		callers.Refs = append(callers.Refs, ref)
	}
	switch {
	case len(callers.Rows) > 1 && a.Refused == 0:
		callers = Section{Title: callers.Title, Text: "All " + snapshot.Count(len(callers.Rows), "workload") + " that can reach it."}
	case len(callers.Rows) == 0:
		callers = Section{Title: "Workloads that may call it", Text: "None of the workloads that were discovered."}
	}
	return callers
}

// services names the first Destinations, and counts the others.
func services(refs []snapshot.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.Name
	}
	return firstOf(names)
}

// firstOf lists the first names, and counts the others.
func firstOf(names []string) string {
	const first = 3
	if more := len(names) - first; more > 0 {
		names = append(names[:first:first], strconv.Itoa(more)+" more")
	}
	return strings.Join(names, ", ")
}

// policies names those that allow what a rule says.
func (r *Rule) policies() string {
	text := shortName(r.Policy)
	for _, ref := range r.With {
		text += " with " + shortName(ref)
	}
	return text
}

func (r *Rule) ports() string {
	if len(r.PodPorts) > 0 {
		return numbers(r.PodPorts) + " of the pods"
	}
	return orAny(numbers(r.Ports))
}

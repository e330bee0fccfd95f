package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Verdict is what becomes of requests.
type Verdict string

const (
	// Allowed: all of them reach a pod, as far as that is known.
	Allowed Verdict = "ALLOWED"
	// Refused: none of them is let in, because of who sends them or what they ask for.
	Refused Verdict = "REFUSED"
	// Unreachable: none of them reaches a pod.
	Unreachable Verdict = "UNREACHABLE"
	// Partly: some of them are let in by a pod, and some are not.
	Partly Verdict = "PARTLY"
	// Unknown: something decides by what is not known.
	Unknown Verdict = "UNKNOWN"
)

// Why says what becomes of the requests of a workload to a service, and because of what.
type Why struct {
	From snapshot.Ref `json:"from"`
	// Identity is the SPIFFE ID of the callers; empty if the mesh gives none.
	Identity string `json:"identity,omitempty"`
	// To is a Destination or a VirtualDestination.
	To snapshot.Ref `json:"to"`
	// Host is the name by which the callers know it; empty if they know none.
	Host    string  `json:"host,omitempty"`
	Request Request `json:"request"`
	// Protocol is that of the port, as its Service names it; empty if proxies detect it.
	Protocol string  `json:"protocol,omitempty"`
	Verdict  Verdict `json:"verdict"`
	// Reason is the verdict in a sentence, with what it follows from.
	Reason string `json:"reason"`
	// Declaration is the manifest of a ServiceDependency, as JSON, because of which the callers' mesh imports the service; empty
	// if that is not what is missing.
	Declaration string `json:"declaration,omitempty"`
	// Route is the one that the requests take; nil if no policy routes them.
	Route *Route `json:"route,omitempty"`
	// Settings hold for all requests to the service.
	Settings []Setting `json:"settings,omitempty"`
	// Outcomes are where requests end, the largest share first.
	Outcomes []Outcome `json:"outcomes"`
	// NotRead is what was not looked at and may decide otherwise; empty if nothing was left out that answers follow.
	NotRead string `json:"notRead,omitempty"`
	// NotEvaluated are sentences on what applies to the requests and is not evaluated.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Notes are sentences on what else decides.
	Notes  []string         `json:"notes,omitempty"`
	Issues []snapshot.Issue `json:"issues"`
	// Seen is what these callers have sent there lately, whatever they asked for; nil where nobody counts by nature, as for a folder. The
	// verdict does not follow from it.
	Seen *Seen `json:"seen,omitempty"`
	// Proxies is what proxies do with it, by the configuration that they hold; nil if they were not asked.
	Proxies *InProxies `json:"proxies,omitempty"`
	// way is how the requests enter at the callers, if these are a gateway and that is known; else nil.
	way *wayIn
}

// Outcome is where some of the requests end.
type Outcome struct {
	// Share of the requests, in percent; nil where endpoints decide.
	Share *float64 `json:"share,omitempty"`
	// Priority counts from 1 where requests go to the next outcome only if those before it have
	// no healthy endpoints; else 0. Idle is set if it gets none because of that.
	Priority int  `json:"priority,omitempty"`
	Idle     bool `json:"idle,omitempty"`
	// Destination is zero for what is outside of all clusters.
	Destination snapshot.Ref `json:"destination"`
	// Host and Port are what callers connect to, and ServicePort is the port of the service behind a
	// VirtualDestination; else 0.
	Host        string `json:"host"`
	Port        uint32 `json:"port"`
	ServicePort uint32 `json:"servicePort,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	Subset      string `json:"subset,omitempty"`
	// Headers says which are changed for this outcome only.
	Headers string `json:"headers,omitempty"`
	// Hops are the connections on the way, in order.
	Hops []Hop `json:"hops,omitempty"`
	// Endpoints is how many pods are ready; nil if not known.
	Endpoints *int `json:"endpoints,omitempty"`
	// Verdict is never Partly.
	Verdict Verdict `json:"verdict"`
	// By are the policies that let the requests in; none if access is open, or if nobody does.
	By []snapshot.Ref `json:"by,omitempty"`
	// Denied are the policies that deny them, whatever others allow, ascending.
	Denied []snapshot.Ref `json:"denied,omitempty"`
	// Reason is the verdict in a sentence.
	Reason string `json:"reason"`
	// service is that of the Destination; nil if it has none.
	service *commonv1.ClusterObjectRef
	// some: it is about some of the pods, and other outcomes are about the others. past: the callers' proxies do not know it and pass
	// requests on.
	some, past bool

	// Change is the smallest change of policies after which the requests are let in; nil if they
	// are, or if it is not one of policies.
	Change *Addition `json:"change,omitempty"`
}

// Addition is what would have to be added to a policy, or taken out of it.
type Addition struct {
	// Removes: the policy denies, and what is named has to be taken out of it.
	Removes bool `json:"removes,omitempty"`
	// Policy is zero where no AccessPolicy selects the service, and one has to be created.
	Policy snapshot.Ref `json:"policy,omitzero"`
	// Caller is for spec.sourceSelector, Method for spec.allowedMethods, Path for
	// spec.allowedPaths and Port for spec.allowedPorts; what is zero need not be added.
	Caller commonv1.ClusterObjectRef `json:"caller,omitzero"`
	Method string                    `json:"method,omitempty"`
	Path   string                    `json:"path,omitempty"`
	Port   uint32                    `json:"port,omitempty"`
	// Text is the same as a sentence.
	Text string `json:"text"`
	// NotEnough says why the requests are not let in even then; empty if they are. See Why.Verify.
	NotEnough string `json:"notEnough,omitempty"`
}

// Hop is one connection on the way to a pod.
type Hop struct {
	// To says in words what is connected to.
	To      string `json:"to"`
	Cluster string `json:"cluster,omitempty"`
	// Addresses are those of gateways; none for pods.
	Addresses []string `json:"addresses,omitempty"`
	// Identity is what the client presents, as a SPIFFE ID; empty if it presents none.
	Identity string `json:"identity,omitempty"`
	// SNI is the name by which a gateway finds the way.
	SNI string `json:"sni,omitempty"`
}

// whole is the share of an outcome that gets all requests.
const whole = 100.0

// query is a question of Why, and what is known of its callers.
type query struct {
	*Index
	request  Request
	workload *discoveryv1.Workload
	mesh     *snapshot.MeshPlan
	identity string
	// called is what the callers call.
	called snapshot.Ref
	// action is that of the route which takes the request; nil if none does.
	action *snapshot.Action
}

// Why says what becomes of a request of a workload to a Destination or VirtualDestination; nil
// if there is none of these, or if the workload is part of no mesh.
func (x *Index) Why(from, to snapshot.Ref, request Request) *Why {
	q := query{Index: x, request: request.complete(), workload: x.workloads[from], called: to}
	if q.workload == nil {
		return nil
	}
	if q.mesh = x.meshOf(q.workload); q.mesh == nil {
		return nil
	}
	if k := q.workload.Spec.Kubernetes; k != nil && q.mesh.Dialect.Principal != nil {
		q.identity = q.mesh.Dialect.Principal(q.mesh.TrustDomain, k.Controller.Namespace, account(q.workload))
	}
	out := &Why{From: from, To: to, Identity: q.identity, Outcomes: []Outcome{}, Issues: []snapshot.Issue{}}
	sent := q.request.Path
	if q.request.Path = q.mesh.ComparedPath(sent); q.request.Path != sent {
		out.Notes = append(out.Notes, "proxies read path "+sent+" as "+q.request.Path+", by pathNormalization of mesh "+q.mesh.Ref.Name)
	}
	switch ignoring := ignoring(&q, to); {
	case ignoring != "":
		out.Verdict, out.Reason = Unknown, ignoring
	case modeOf(q.workload) != "" && !modeOf(q.workload).IsAmbient() && canBeCalled(x, to):
		out.Verdict, out.Reason = Unknown, "the callers are a "+modeText(modeOf(q.workload))+": where it sends requests is not followed"
	case x.virtualDestinations[to] != nil && modeOf(q.workload).IsAmbient():
		out.Host, out.Issues = x.virtualDestinations[to].Hostname, q.issues.of(to)
		out.Verdict, out.Reason = Unknown, "the callers are in ambient mode: what ztunnel does with the host of a VirtualDestination is not followed"
	case x.destinations[to] != nil:
		q.answerDestination(out, x.destinations[to])
	case x.virtualDestinations[to] != nil:
		q.answerVirtualDestination(out, x.virtualDestinations[to])
	default:
		return nil
	}
	out.Request = q.request
	out.Notes = append(out.Notes, q.notes(out)...)
	out.conclude()
	q.checkOrigin(out)
	q.checkAbort(out)
	if note := auditNote(x, out); note != "" {
		out.Notes = append(out.Notes, note)
	}
	out.addSeen(x)
	return out
}

// answerDestination answers for a Destination.
func (q *query) answerDestination(out *Why, d *snapshot.DestinationPlan) {
	port := q.choosePort(d)
	if port != nil {
		out.Protocol = snapshot.PortProtocol(*port)
	}
	out.Issues = q.issues.of(d.Ref)
	switch {
	case d.Mesh == nil:
		out.Verdict, out.Reason = Unreachable, "the mesh of "+d.Ref.Name+" is not known; see meshctl describe mesh"
		return
	case !reaches(q.mesh, d) && d.Mesh.Cluster == q.mesh.Cluster:
		out.Verdict, out.Reason = Unknown, besideText(q, d)
		return
	case !reaches(q.mesh, d):
		out.Verdict, out.Reason = Unreachable, q.unknownHost(d)
		if d.NotFederated() == "" && d.NotImported(q.mesh) {
			out.Declaration = declaration(q, d)
		}
		return
	}
	out.Host = hostFrom(q.mesh, d)
	if port == nil {
		out.Verdict, out.Reason = q.noPort(d)
		return
	}
	if modeOf(q.workload).IsAmbient() {
		q.answerFromAmbient(out, d)
		return
	}
	if answerEscaped(q, out, d) {
		return
	}
	if by := takenByAddress(q, d, port); by != "" {
		out.Verdict, out.Reason = Unknown, by
		return
	}
	hidden := hiddenHost(q, d, out.Host)
	at := placeOf(q, d)
	at.hidden = hidden != ""
	if by := definedByHand(q, at); by != "" {
		out.Verdict, out.Reason = Unknown, by
		return
	}
	if hidden != "" {
		if by := namedByHand(q, d, port); by != "" {
			out.Verdict, out.Reason = Unknown, by
		} else {
			q.answerHidden(out, d, hidden)
		}
		return
	}
	out.NotEvaluated = append(out.NotEvaluated, takenNames(q, d)...)
	view, route := q.routeTo(d)
	if view != nil {
		out.Settings = viewSettings(d, view)
	}
	traffic := trafficOf(d.Mesh.Dialect, port)
	if traffic != snapshot.Requests {
		route = nil
		if !isGateway(q.workload) && view != nil && len(view.Routes) > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("port %d is for %s: no route and no setting for requests applies", port.Port, snapshot.PortProtocol(*port)))
		}
	}
	of := q.hostQuery(d)
	of.Traffic = traffic
	if isGateway(q.workload) {
		route = q.routeAtGateway(out, of)
	} else if byHand, applies := q.routeByHand(out, of, view != nil && len(view.Routes) > 0); applies {
		route = byHand
	}
	if out.Verdict != "" {
		return
	}
	q.follow(out, route, func(q *query) []Outcome { return q.destinationOutcomes(d, q.request.Port, "") })
}

// follow sets the outcomes of a request that takes a route: those of self without one, or where it has no targets.
func (q *query) follow(out *Why, route *snapshot.Route, self func(*query) []Outcome) {
	if route != nil {
		r := describing(q.Index).route(route)
		// Of a request, the method is known, on which retries may depend.
		r.Settings = actionSettings(&snapshot.Route{Match: snapshot.Match{Request: &networkingv1.HttpMatcher{Method: q.request.Method}}, Action: route.Action})
		out.Route, q.action = &r, route.Action
	}
	if route == nil || route.Action.Targets == nil {
		if route != nil {
			q = q.changed(nil, route.Action.Headers)
		}
		out.Outcomes = divide(self(q), whole)
		return
	}
	for i, target := range route.Action.Targets.Value {
		q := q.changed(target.Headers, route.Action.Headers)
		if described := &out.Route.Targets[i]; described.Share > 0 {
			out.Outcomes = append(out.Outcomes, q.targetOutcomes(target, described)...)
		}
	}
	slices.SortStableFunc(out.Outcomes, func(a, b Outcome) int { return cmp.Compare(shareOf(b), shareOf(a)) })
}

func shareOf(o Outcome) float64 {
	if o.Share == nil {
		return 0
	}
	return *o.Share
}

// targetOutcomes are where the requests for one target of a route end.
func (q *query) targetOutcomes(t snapshot.Target, described *Target) []Outcome {
	var out []Outcome
	d, v := q.destinations[t.Destination], q.virtualDestinations[t.Destination]
	var verdict Verdict
	var reason string
	if d != nil && t.Place != snapshot.PlaceOutside && d.Ref != q.called {
		verdict, reason = q.targetUnknown(d)
		if by := targetByHand(q, d); by != "" {
			verdict, reason = Unknown, by
		}
	}
	switch {
	case reason != "":
		out = []Outcome{{Verdict: verdict, Destination: d.Ref, Port: t.Port, Cluster: q.clusterOf(d.Ref), Subset: t.Subset, Reason: reason}}
	case d != nil && t.Place != snapshot.PlaceOutside && resolvesPods(q, d):
		out = q.resolvedOutcomes(d, t, described)
	case d != nil && t.Place != snapshot.PlaceOutside:
		out = q.destinationOutcomes(d, t.Port, t.Subset)
	case v != nil:
		out = q.virtualOutcomes(v, t.Subset)
	case t.Host == "":
		out = []Outcome{{Verdict: Unreachable, Port: t.Port, Reason: "the route names a backend in another namespace, which no ReferenceGrant lets it use: these requests are answered with status 500"}}
	case t.Place != snapshot.PlaceOutside:
		out = []Outcome{{Verdict: Unknown, Port: t.Port, Reason: t.Host + " is no service that was discovered"}}
	default:
		out = []Outcome{{Verdict: Unknown, Destination: t.Destination, Port: t.Port, Reason: t.Host + " is outside of all clusters: what becomes of the requests there is not known"}}
	}
	for i := range out {
		out[i].Host, out[i].Headers = cmp.Or(t.Host, "no backend"), described.Headers
	}
	return divide(out, described.Share)
}

// routeTo finds the view of a Destination that the callers have, and the route that takes the
// request; nil where there is none.
func (q *query) routeTo(d *snapshot.DestinationPlan) (*snapshot.View, *snapshot.Route) {
	for _, v := range q.unwritten.viewsOf(d) {
		if v.Mesh != q.mesh {
			continue
		}
		for _, r := range v.Routes {
			if takes(r.Match, q.workload) && q.request.proxied().Matches(r.Match.Request) {
				return v, r
			}
		}
		return v, nil
	}
	return nil, nil
}

// unknownHost says why the callers have no name for a Destination.
func (q *query) unknownHost(d *snapshot.DestinationPlan) string {
	why := d.NotFederated()
	switch {
	case why != "":
	case d.NotImported(q.mesh):
		why = undeclared(q, d)
	case q.mesh.VirtualMesh == nil:
		why = "mesh " + q.mesh.Ref.Name + " is in no VirtualMesh; join it with that of the service: meshctl create virtualmesh"
	case q.mesh.VirtualMesh != d.Mesh.VirtualMesh:
		why = fmt.Sprintf("meshes %s and %s are in different VirtualMeshes", q.mesh.Ref.Name, d.Mesh.Ref.Name)
	case notAtPresent(q.Index, d) != "":
		why = notAtPresent(q.Index, d)
	default:
		why = fmt.Sprintf("VirtualMesh %s/%s does not federate it to them; select it in spec.federation.selectors", q.mesh.VirtualMesh.Namespace, q.mesh.VirtualMesh.Name)
	}
	return fmt.Sprintf("callers in mesh %s have no name for %s: %s", q.mesh.Ref.Name, d.Ref.Name, why)
}

// hostMissing says why the proxies of the callers do not know a host; empty if they do.
func (q *query) hostMissing(to snapshot.Ref, host string) string {
	sidecar, _ := generatedSidecar(q)
	if sidecar == nil || sidecar.Egress.Everything || slices.ContainsFunc(sidecar.Egress.Hosts, func(h snapshot.EgressHost) bool {
		rest, isPattern := strings.CutPrefix(h.Host, "*")
		return h.Destination == to || h.Host == host || isPattern && strings.HasSuffix(host, rest)
	}) {
		return ""
	}
	by := make([]string, len(sidecar.Egress.Dependencies))
	for i, ref := range sidecar.Egress.Dependencies {
		by[i] = shortName(ref)
	}
	return fmt.Sprintf("the proxies of the callers are not configured with %s: ServiceDependency %s names what they need; add it there", host, firstOf(by))
}

// notes are about the route that was found.
func (q *query) notes(out *Why) []string {
	var notes []string
	if r := out.Route; r != nil {
		for _, m := range r.Missing {
			notes = append(notes, m.Name+" gets none of the requests that "+kindAndName(r.TargetsOrigin.Ref)+" sends to it, as it cannot be reached")
		}
	}
	clusters := []string{q.clusterOfWorkload(out.From)}
	for _, o := range out.Outcomes {
		if d := q.destinations[o.Destination]; d != nil {
			if text := unlikeText(d); text != "" && !slices.Contains(notes, text) {
				notes = append(notes, text)
			}
		}
		if !slices.Contains(clusters, o.Cluster) && o.Cluster != "" {
			clusters = append(clusters, o.Cluster)
		}
	}
	out.NotRead, out.NotEvaluated = q.NotRead(clusters...), append(out.NotEvaluated, notEvaluated(q, out)...)
	for _, c := range clusters {
		// Of a cluster that was not read here, NotRead has the reason.
		if reason := q.frozenReason(c); reason != "" && (q.clusters[c] == nil || !q.clusters[c].Frozen() || q.unread) {
			notes = append(notes, fmt.Sprintf("cluster %s is not watched (%s): this is what was last seen of it", c, reason))
		}
	}
	for _, ref := range q.decidingPolicies(out) {
		if q.pending[ref] {
			notes = append(notes, kindAndName(ref)+" was edited, and no server has processed that yet")
		}
	}
	return notes
}

// decidingPolicies are the policies from which the answer follows, ascending.
func (q *query) decidingPolicies(out *Why) []snapshot.Ref {
	var refs []snapshot.Ref
	if out.Route != nil {
		refs = append(refs, out.Route.Policies...)
	}
	for _, o := range out.Outcomes {
		refs = append(append(refs, o.By...), o.Denied...)
	}
	slices.SortFunc(refs, snapshot.Ref.Compare)
	return slices.Compact(refs)
}

// conclude sets the verdict that follows from the outcomes.
func (w *Why) conclude() {
	if w.Verdict != "" {
		return
	}
	var allowed, unknown, bad *Outcome
	first := func(of **Outcome, o *Outcome) {
		if *of == nil {
			*of = o
		}
	}
	for i := range w.Outcomes {
		switch o := &w.Outcomes[i]; {
		case o.Idle:
		case o.Verdict == Allowed:
			first(&allowed, o)
		case o.Verdict == Unknown:
			first(&unknown, o)
		case bad != nil && bad.Verdict != Refused && o.Verdict == Refused:
			bad = o // what both are is said as refused
		default:
			first(&bad, o)
		}
	}
	switch {
	case allowed != nil && bad != nil:
		w.Verdict, w.Reason = Partly, bad.text()+": "+bad.Reason
	case unknown != nil:
		w.Verdict, w.Reason = Unknown, unknown.Reason
	case allowed != nil:
		w.Verdict, w.Reason = Allowed, allowed.Reason
	case bad != nil:
		w.Verdict, w.Reason = bad.Verdict, bad.Reason
	default:
		w.Verdict, w.Reason = Unreachable, "no service is behind it that the callers can reach"
	}
}

// text says in a few words which outcome it is: "75% to reviews in cluster-2, v3".
func (o *Outcome) text() string {
	where := o.Host
	if o.Destination != (snapshot.Ref{}) {
		where = o.Destination.Name
	}
	if o.Subset != "" {
		where += ", " + o.Subset
	}
	if o.some {
		where = snapshot.Count(*o.Endpoints, "pod") + " of " + where
	}
	if o.Share == nil {
		return where
	}
	return snapshot.Percent(*o.Share) + " to " + where
}

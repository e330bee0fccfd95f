package explain

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Workload describes what owns pods in a mesh.
type Workload struct {
	Ref snapshot.Ref `json:"ref"`
	// Controller is the Deployment, DaemonSet or StatefulSet, or what else owns the pods; nil if it has none.
	Controller *snapshot.Ref `json:"controller,omitempty"`
	// ControllerKind is the kind of the controller if it is no Deployment, DaemonSet or StatefulSet; Pod if nothing owns the pod.
	ControllerKind string            `json:"controllerKind,omitempty"`
	PodLabels      map[string]string `json:"podLabels,omitempty"`
	ServiceAccount string            `json:"serviceAccount"`
	Mesh           *snapshot.Ref     `json:"mesh,omitempty"`
	// Gateway: its pods are proxies by themselves. Routes of policies are none for them; see the questions of why.
	Gateway bool `json:"gateway,omitempty"`
	// Mode is how its pods take part in the mesh, in words; empty for sidecars, and for other gateways.
	Mode string `json:"mode,omitempty"`
	// Principal is the identity in the certificates of its pods; empty if the mesh is not known.
	Principal string `json:"principal,omitempty"`
	Frozen    string `json:"unreachable,omitempty"`
	// Destinations are the services that have its pods.
	Destinations []snapshot.Ref `json:"destinations"`
	// Policies select it as a source.
	Policies []snapshot.Ref `json:"policies"`
	// LoggedBy are the AccessLogRecords that apply to it, ascending.
	LoggedBy []LoggedBy `json:"loggedBy,omitempty"`
	// Egress are the hosts that its proxies are configured with; nil for all.
	Egress *Egress `json:"egress,omitempty"`
	// Calls are the services that it can reach, and whether it may call them.
	Calls []Call `json:"calls"`
	// PastProxies says which connections that its pods open their proxies do not see; empty if they see all.
	PastProxies string `json:"pastProxies,omitempty"`
	// NotEvaluated are sentences on what applies to its calls and is not evaluated.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Seen is what its pods got and sent lately; nil where nobody counts by nature, as for a folder.
	Seen   *Seen            `json:"seen,omitempty"`
	Issues []snapshot.Issue `json:"issues"`
}

// Call is a service that a workload can reach.
type Call struct {
	Destination snapshot.Ref `json:"destination"`
	// Host is the name under which the workload's mesh knows it.
	Host    string `json:"host"`
	Allowed bool   `json:"allowed"`
	// Unknown: what decides is in ambient mode, and not followed. Allowed then says only that some calls may get through.
	Unknown bool `json:"unknown,omitempty"`
	// Policies are the AccessPolicies that allow it; none if access is open.
	Policies []snapshot.Ref `json:"by,omitempty"`
	// Denied are the AccessPolicies that deny it, whatever others allow.
	Denied []snapshot.Ref `json:"denied,omitempty"`
	// Routes are those of the destination that its requests may take, in the
	// order in which they are tried; none means that they go to Host unchanged. Gateways have none here.
	Routes []Route `json:"routes,omitempty"`
}

// LoggedBy is an AccessLogRecord that applies to a workload.
type LoggedBy struct {
	Record snapshot.Ref `json:"record"`
	// Missing is why its log does not come; empty if it does, or if that is not known.
	Missing string `json:"missing,omitempty"`
}

// loggedBy are the AccessLogRecords that apply to a workload. Whether its log comes only the server knows, and its status says.
func loggedBy(state *snapshot.State, o *discoveryv1.Workload) (out []LoggedBy) {
	ref := snapshot.RefOf(snapshot.Workload, o)
	for _, p := range state.AccessLogs {
		if p.State == commonv1.ApprovalStateInvalid || !slices.Contains(p.Workloads, ref) {
			continue
		}
		l := LoggedBy{p.Ref, p.Missing[ref]}
		for i := range o.Status.AppliedAccessLogRecords {
			if said := &o.Status.AppliedAccessLogRecords[i]; state.Input.Logging == nil && said.Ref.Name == p.Ref.Name && said.Ref.Namespace == p.Ref.Namespace && said.ClusterName == p.Ref.Cluster {
				l.Missing = strings.Join(said.Errors, "; ")
			}
		}
		out = append(out, l)
	}
	return out
}

// loggedText names them, with why a log does not come.
func loggedText(by []LoggedBy) string {
	texts := make([]string, len(by))
	for i, l := range by {
		texts[i] = "AccessLogRecord " + shortName(l.Record)
		if l.Missing != "" {
			texts[i] += " (no log yet: " + l.Missing + ")"
		}
	}
	return strings.Join(texts, ", ")
}

func (x describer) workload(o *discoveryv1.Workload) *Workload {
	ref := snapshot.RefOf(snapshot.Workload, o)
	out := &Workload{
		Ref: ref, ServiceAccount: account(o), Destinations: []snapshot.Ref{}, Policies: []snapshot.Ref{}, Calls: []Call{},
		LoggedBy: loggedBy(x.state, o), Egress: x.egress(ref), Seen: seenWorkload(x.Index, ref), Issues: x.issues.of(ref),
	}
	if k := o.Spec.Kubernetes; k != nil {
		out.PodLabels, out.ControllerKind, out.Gateway = k.PodLabels, k.ControllerKind, k.Gateway
		out.Controller = controllerOf(ref, k)
		out.Frozen, out.Mode = x.frozenReason(k.Controller.ClusterName), modeText(k.DataPlaneMode)
	}
	mesh := x.meshOf(o)
	if mesh != nil {
		out.Mesh = &mesh.Ref
		out.NotEvaluated = append(x.outside.defaultSettings(mesh), x.outside.filtersOfCallers(mesh, o)...)
		if modeOf(o).IsAmbient() {
			out.NotEvaluated = append(out.NotEvaluated, "ztunnel, which is the proxy of its pods, and waypoints: they take no route and no setting of policies, and who may call is decided by identities and ports only")
		}
		out.PastProxies = capturedText(o)
		if out.Controller != nil {
			if name := mesh.Dialect.Principal; name != nil {
				out.Principal = name(mesh.TrustDomain, out.Controller.Namespace, out.ServiceAccount)
			}
		}
	}
	for _, p := range x.state.Plan.Policies {
		if x.selectsCaller(p, ref, o) {
			out.Policies = append(out.Policies, p.Ref)
		}
	}
	for d := range x.state.Plan.Destinations.All() {
		if out.Controller != nil && backs(o.Spec.Kubernetes, d) {
			out.Destinations = append(out.Destinations, d.Ref)
		}
		if mesh == nil || d.Mesh == nil || !reaches(mesh, d) {
			continue
		}
		gate := x.gateTo(d)
		allowed, by := gate.admits(o)
		call := Call{Destination: d.Ref, Host: hostFrom(mesh, d), Allowed: allowed, Policies: by, Unknown: allowed && (out.Mode != "" || gate.unknown())}
		if !allowed {
			call.Policies, call.Denied = nil, by
		}
		if modeOf(o).IsAmbient() && d.ThroughGateways(mesh) {
			call.Allowed, call.Unknown = false, false // see answerFromAmbient
		}
		if !out.Gateway && out.Mode == "" {
			call.Routes = x.routesOf(o, mesh, d)
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

// backs reports whether a workload's pods are among the Service's.
func backs(o *discoveryv1.KubernetesWorkload, d *snapshot.DestinationPlan) bool {
	return inventory.Backs(o, d.Destination.Spec.KubeService, nil)
}

// hostFrom is the name under which a mesh that reaches a Destination knows it.
func hostFrom(mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) string {
	if mesh.Ref == d.Mesh.Ref || d.Federation == nil {
		return d.LocalFQDN
	}
	return d.Federation.Hostname
}

// Page implements Description.
func (o *Workload) Page() Page {
	var controller, mesh string
	if o.Controller != nil {
		controller = o.Controller.Cluster + "/" + o.Controller.Namespace + "/" + o.Controller.Name
		if o.ControllerKind != "" {
			controller = o.ControllerKind + " " + controller
		}
	}
	if o.Mesh != nil {
		mesh = shortName(*o.Mesh)
	}
	serves := make([]string, len(o.Destinations))
	for i, ref := range o.Destinations {
		serves[i] = ref.Name
	}
	page := Page{
		Title: "Workload " + shortName(o.Ref),
		Sections: []Section{facts("",
			[2]string{"Controller", controller}, [2]string{"Pods", labels(o.PodLabels)}, [2]string{"Mesh", mesh}, [2]string{"Mode", o.Mode},
			[2]string{"Identity", o.Principal}, [2]string{"Serves", strings.Join(serves, ", ")}, [2]string{"Unreachable", o.Frozen},
			[2]string{"Past its proxies", o.PastProxies}, [2]string{"Logged by", loggedText(o.LoggedBy)},
			[2]string{"Not evaluated", strings.Join(o.NotEvaluated, "; ")},
		)},
		Issues: o.Issues,
	}
	policies := Section{Title: "Policies that select it as a caller"}
	if len(o.Policies) == 0 {
		policies.Text = "None."
	} else {
		policies.Header = []string{"KIND", "POLICY"}
	}
	for _, ref := range o.Policies {
		policies.Rows = append(policies.Rows, []string{ref.Kind.String(), shortName(ref)})
		policies.Refs = append(policies.Refs, ref)
	}
	page.Sections = append(page.Sections, policies)
	if o.Mode == "" {
		page.Sections = append(page.Sections, o.Egress.section())
	}
	page.Sections = append(page.Sections, o.callsSection())
	page.Sections = append(page.Sections, o.routesSection()...)
	return o.Seen.on(page, func() []Section { return o.Seen.calledSections() })
}

func (o *Workload) callsSection() Section {
	s := Section{Title: "What it can call"}
	if len(o.Calls) == 0 {
		s.Text = "Nothing: no service of its mesh was discovered."
		return s
	}
	s.Header = []string{"HOST", "DESTINATION", "ACCESS", "BY"}
	for _, c := range o.Calls {
		access, by := "denied", []string{}
		for _, ref := range slices.Concat(c.Policies, c.Denied) {
			by = append(by, shortName(ref))
		}
		switch {
		case c.Unknown:
			access = "not known"
		case c.Allowed && len(by) == 0:
			access = "open"
		case c.Allowed:
			access = "allowed"
		}
		s.Rows = append(s.Rows, []string{c.Host, c.Destination.Name, access, strings.Join(by, ", ")})
		s.Refs = append(s.Refs, c.Destination)
	}
	return s
}

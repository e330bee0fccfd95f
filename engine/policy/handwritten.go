package policy

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// handWritten is what users wrote for the meshes of one cluster, by the kind of mesh.
type handWritten struct {
	dialects []*snapshot.Dialect
	// of is parallel to dialects; nil for those without an inspector.
	of []snapshot.ByHand
}

func (r *reconciler) inspect(c *snapshot.Cluster, plane snapshot.Plane) *handWritten {
	h := &handWritten{dialects: r.Dialects, of: make([]snapshot.ByHand, len(r.Dialects))}
	for i, d := range r.Dialects {
		if d.Inspect != nil {
			h.of[i] = d.Inspect(c, plane)
		}
	}
	return h
}

// on is what was written for the kind of a mesh; nil if that is nothing.
func (h *handWritten) on(mesh *snapshot.MeshPlan) snapshot.ByHand {
	if h == nil {
		return nil
	}
	if i := slices.Index(h.dialects, mesh.Dialect); i >= 0 && h.of[i] != nil && !h.of[i].Empty() {
		return h.of[i]
	}
	return nil
}

// holds reports whether a cluster still has the same.
func (h *handWritten) holds(c *snapshot.Cluster) bool {
	return !slices.ContainsFunc(h.of, func(of snapshot.ByHand) bool { return of != nil && !of.Holds(c) })
}

func (h *handWritten) empty() bool {
	return !slices.ContainsFunc(h.of, func(of snapshot.ByHand) bool { return of != nil && !of.Empty() })
}

// byHand is what users wrote for the meshes of all clusters.
type byHand struct {
	of map[string]*handWritten
	// some: anything was written in any cluster.
	some bool
	// refuse: policies that conflict with it are rejected.
	refuse bool
}

// on is what was written for the kind of a mesh, in its cluster; nil if that is nothing.
func (h *byHand) on(mesh *snapshot.MeshPlan) snapshot.ByHand {
	if !h.some {
		return nil // in most fleets; a thousand viewers are not looked up then
	}
	return h.of[mesh.Cluster].on(mesh)
}

// updateHandWritten inspects the clusters again whose hand-written objects changed.
func (r *reconciler) updateHandWritten(in *snapshot.Input) {
	if r.env != nil && r.env.byHand.refuse == in.RefuseIntersecting && r.last.sameClusters(&r.next) {
		return
	}
	before := r.handWritten
	r.handWritten = make(map[string]*handWritten, len(in.Clusters))
	changed := r.env == nil || r.env.byHand.refuse != in.RefuseIntersecting || len(before) != len(in.Clusters)
	r.someByHand = false
	for _, c := range in.Clusters {
		was := before[c.Name]
		if was != nil && was.holds(c) {
			r.handWritten[c.Name] = was
			r.someByHand = r.someByHand || !was.empty()
			continue
		}
		now := r.inspect(c, in.Management.Plane())
		r.handWritten[c.Name] = now
		r.someByHand = r.someByHand || !now.empty()
		changed = changed || was != nil || !now.empty()
	}
	r.handWrittenChanged = changed
}

// handWrittenIssues lists the hand-written objects that configure the same as a
// policy for a host: routes, or connections and subsets.
func (c *fieldContext) handWrittenIssues() []snapshot.Issue {
	hand := c.env.byHand.on(c.viewer)
	if hand == nil {
		return nil
	}
	routed, connected := false, false
	for i := range features {
		f := &features[i]
		if f.value(c.spec.Policy) != nil {
			routed, connected = routed || f.route != nil, connected || f.view != nil
		}
	}
	var issues []snapshot.Issue
	add := func(at hostPlace, list []snapshot.Intersection) {
		for _, x := range list {
			issues = append(issues, c.env.byHand.issue(x, at.decides(x.Ref.Namespace)))
		}
	}
	if at := c.place(c.index); routed && at.Host != "" {
		at.Sources = c.sourceNamespaces()
		add(at, hand.Routes(&at.HostQuery))
		list := hand.Endpoints(&at.HostQuery)
		for i := range list {
			if list[i].What = "defines where " + at.Host + " is for callers in its namespace"; list[i].Ref.Namespace == at.Home {
				list[i].What = "is for " + at.Host + ", too, and may add endpoints to those that are known"
			}
		}
		add(at, list)
		if d := c.env.inv.Destinations[c.index]; d.Spec.Mesh != nil && at.Home == d.Spec.KubeService.Ref.Namespace && c.viewer.Cluster == d.Spec.KubeService.Ref.ClusterName {
			add(at, takers(c.env, hand, d, &at.HostQuery)) // the address of a federated one is reported with its federation
		}
	}
	for _, i := range c.configuredDestinations(connected) {
		if at := c.place(i); at.Host != "" {
			add(at, hand.Connections(&at.HostQuery))
		}
	}
	c.externalHosts(func(d *discoveryv1.Destination, host string) {
		at := hostPlace{HostQuery: snapshot.HostQuery{Host: host, Mesh: c.viewer, Home: c.viewer.Namespace, Sources: c.sourceNamespaces()}}
		list := hand.Endpoints(&at.HostQuery)
		for i := range list {
			list[i].Hint = "delete it: Destination " + d.Name + "." + d.Namespace + " defines the same"
		}
		add(at, list)
	})
	return issues
}

// takers are the hand-written objects for other hosts that take connections of callers to a service, by the address of its host: the first
// port of each.
func takers(env *environment, hand snapshot.ByHand, d *discoveryv1.Destination, of *snapshot.HostQuery) (out []snapshot.Intersection) {
	k := d.Spec.KubeService
	asked := *of
	if asked.Mesh.Cluster == k.Ref.ClusterName && !asked.Generated {
		asked.Addresses = env.calledAt(k)
	}
	for i := range k.Ports {
		asked.Port, asked.Traffic, asked.Detects = k.Ports[i].Port, snapshot.Connections, snapshot.PortProtocol(k.Ports[i]) == ""
		if asked.Mesh.Dialect.IsHTTP(&k.Ports[i]) {
			asked.Traffic = snapshot.Requests
		}
		for _, x := range hand.Takers(&asked, nil) {
			if !slices.ContainsFunc(out, func(o snapshot.Intersection) bool { return o.Ref == x.Ref }) {
				out = append(out, x)
			}
		}
	}
	return out
}

// externalHosts calls do for each host of the external services to which a policy sends requests.
func (c *fieldContext) externalHosts(do func(*discoveryv1.Destination, string)) {
	shift := c.spec.Policy.TrafficShift
	if shift == nil {
		return
	}
	for i := range shift.Destinations {
		to := shift.Destinations[i].StaticDestination
		if to == nil {
			continue
		}
		if d := c.env.externals.find(*to); d != nil {
			for _, host := range d.Spec.ExternalService.Hosts {
				do(d, host)
			}
		}
	}
}

// configuredDestinations are the Destinations, by index, for which the policy generates a DestinationRule: itself, and those whose subsets it uses.
func (c *fieldContext) configuredDestinations(connected bool) []int {
	var out []int
	if connected {
		out = append(out, c.index)
	}
	for _, t := range targets(c.spec.Policy) {
		if len(t.Subset) == 0 {
			continue
		}
		if at, ok := c.env.inv.IndexOfService(commonv1.ClusterObjectRef{Name: t.Name, Namespace: t.Namespace, ClusterName: t.ClusterName}); ok {
			out = append(out, at)
		}
	}
	return out
}

// accessIssues reports what else says who may call a Destination, which may decide about it. An AccessPolicy that is
// rejected because of that stays in force: removing it would allow more callers.
func (h *byHand) accessIssues(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	hand := h.on(mesh)
	if hand == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, x := range hand.Access(d.Spec.KubeService, mesh) {
		issues = append(issues, h.issue(x, true))
	}
	return issues
}

// hostIntersections are the hand-written objects for a host that only generated ones, in the namespace home, make known in a mesh.
func (h *byHand) hostIntersections(host string, mesh *snapshot.MeshPlan, home string) []snapshot.Intersection {
	hand := h.on(mesh)
	if hand == nil {
		return nil
	}
	of := &snapshot.HostQuery{Host: host, Mesh: mesh, Home: home, Generated: true}
	if home != mesh.Namespace {
		of.Sources = []string{home} // those of a namespace are for callers there
	}
	return slices.Concat(hand.Routes(of), hand.Connections(of), hand.Endpoints(of))
}

// hostIssues reports the hand-written objects for the host of a VirtualDestination in a mesh.
func (h *byHand) hostIssues(host string, mesh *snapshot.MeshPlan, home string) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, x := range h.hostIntersections(host, mesh, home) {
		issues = append(issues, handWrittenWarning(x))
	}
	return issues
}

// handWrittenWarning reports an object beside something that is never rejected because of it: all callers of a federated
// service or VirtualDestination, and the pods of a ServiceDependency, would pay for what one editor wrote.
func handWrittenWarning(x snapshot.Intersection) snapshot.Issue {
	return snapshot.Warnf(snapshot.HandWritten, x.Hint, "the hand-written %s %s", x.Ref, x.What).CausedBy(x.Ref)
}

// issue reports an object beside a TrafficPolicy or AccessPolicy: a warning, or an error if conflicts are rejected
// and the object may decide about what it conflicts with. A policy that was in force before stays in force.
func (h *byHand) issue(x snapshot.Intersection, decides bool) snapshot.Issue {
	issue := handWrittenWarning(x)
	switch {
	case !h.refuse:
	case decides:
		issue.Severity = snapshot.Error
		issue.Message += "; --disallow-intersecting-config rejects that"
	default:
		issue.Message += "; --disallow-intersecting-config does not reject because of it: its namespace is neither that of the service nor that of the mesh"
	}
	return issue
}

// hostPlace is a host as a mesh knows it.
type hostPlace struct {
	snapshot.HostQuery
	// owner is the namespace of the service to which a policy applies; empty if it is of
	// another cluster, where a namespace of the same name may be of somebody else.
	owner string
}

// place is the host of a Destination for the viewer; its host is empty if the viewer
// does not know it.
func (c *fieldContext) place(i int) hostPlace {
	at := hostPlace{HostQuery: snapshot.HostQuery{Mesh: c.viewer, Home: c.viewer.Namespace}}
	at.Host, _ = c.env.topology.Host(i, c.viewer)
	if service := c.env.inv.Destinations[i].Spec.KubeService.Ref; service.ClusterName == c.viewer.Cluster {
		at.Home = service.Namespace
	}
	if service := c.env.inv.Destinations[c.index].Spec.KubeService.Ref; service.ClusterName == c.viewer.Cluster {
		at.owner = service.Namespace
	}
	return at
}

// decides reports whether an object in a namespace may decide about what the management
// plane does for a host: whoever owns the service or the mesh may, and no tenant may
// about what others rely on.
func (at hostPlace) decides(namespace string) bool {
	return namespace == at.Mesh.RootNamespace || namespace == at.Mesh.Namespace || namespace == at.owner
}

// sourceNamespaces are the namespaces of the viewer's callers to which the routes of a
// policy apply; nil for all.
func (c *fieldContext) sourceNamespaces() []string {
	out := []string{}
	from, _ := sources(c.spec, c.viewer.Cluster)
	for _, m := range from {
		if len(m.Namespaces) == 0 {
			return nil
		}
		out = append(out, m.Namespaces...)
	}
	return out
}

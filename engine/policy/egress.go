package policy

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxEgress bounds the Destinations of one Egress, far below the size limit of an
// object.
const maxEgress = 5000

// egress is the hosts that a set of ServiceDependencies configures in the proxies of
// a mesh.
type egress struct {
	mesh     *snapshot.MeshPlan
	bindings []*dependencyBinding // ascending by ref
	// routed are the hosts to which policies route requests for each Destination, by its
	// index: for those of the dependencies, and in turn for those that are routed to. Proxies
	// are configured with all routes of a host that they know (istio.io Sidecar.egress).
	routed map[int][]snapshot.EgressHost
	plan   *snapshot.Egress
}

// unusable says why these dependencies cannot limit the proxies; nil if they can. It
// changes only with the environment, the dependencies, or what stands behind
// VirtualDestinations.
func (e *egress) unusable() *snapshot.Issue {
	var issue snapshot.Issue
	switch {
	case e.plan.Everything:
		return nil
	case len(e.routed) > maxEgress:
		issue = snapshot.Errorf(snapshot.FieldInvalid, "select fewer destinations",
			"it depends on %d destinations, and a %s can list at most %d", len(e.routed), e.mesh.Dialect.Egress, maxEgress).At("destinationSelectors")
	case !slices.ContainsFunc(e.plan.Hosts, func(h snapshot.EgressHost) bool { return len(h.Origins) > 0 }):
		issue = snapshot.Errorf(snapshot.SelectsNothing, "correct destinationSelectors; until then the proxies stay configured with every service",
			"it cannot reach any of the selected destinations").At("destinationSelectors")
	default:
		return nil
	}
	return &issue
}

// egressOf returns the egress of a group of workloads. Groups with the same
// dependencies share one.
func (d *dependencies) egressOf(env *environment, members []int, of map[int][]*dependencyBinding) *egress {
	e := &egress{mesh: env.topology.Mesh(env.inv.Workloads[members[0]].Spec.Mesh)}
	for _, i := range members {
		for _, b := range of[i] {
			if !slices.Contains(e.bindings, b) {
				e.bindings = append(e.bindings, b)
			}
		}
	}
	e.bindings = inForceOf(e.bindings)
	slices.SortFunc(e.bindings, func(a, b *dependencyBinding) int { return a.ref.Compare(b.ref) })
	var name strings.Builder
	name.WriteString(e.mesh.Ref.Name)
	for _, b := range e.bindings {
		name.WriteString("\x00" + b.ref.Cluster + "/" + b.ref.Namespace + "/" + b.ref.Name)
	}
	if known := d.egress[name.String()]; known != nil && slices.Equal(known.bindings, e.bindings) && known.mesh == e.mesh {
		return known
	}
	d.egress[name.String()] = e
	return e
}

// rebuildEgress removes the egresses that no group uses any more and builds the new
// ones. An egress that is equal to an earlier one keeps that one's plan.
func (d *dependencies) rebuildEgress(r *reconciler, before map[string]*egress, dirty map[inventory.Namespace]bool) {
	used := map[*egress]bool{}
	for _, s := range d.groups {
		for _, g := range s.groups {
			used[g.egress] = true
		}
	}
	maps.DeleteFunc(d.egress, func(_ string, e *egress) bool { return !used[e] })
	for name, e := range d.egress {
		if e.plan != nil {
			d.refreshOne(r, e, dirty)
			continue
		}
		e.route(r, func(int) bool { return false })
		e.plan = e.hosts(r.env)
		if was := before[name]; was != nil && reflect.DeepEqual(was.plan, e.plan) {
			e.plan = was.plan
		}
	}
}

// refreshEgress updates the hosts of Destinations whose routes changed.
func (d *dependencies) refreshEgress(r *reconciler) {
	changed, dirty := false, map[inventory.Namespace]bool{}
	for _, e := range d.egress {
		changed = d.refreshOne(r, e, dirty) || changed
	}
	if changed {
		d.updateSidecars(r.env)
	}
	if len(dirty) > 0 {
		d.updateVerdicts(r.env, dirty)
	}
}

// refreshOne updates one egress. It marks the namespaces in which it became usable or
// unusable.
func (d *dependencies) refreshOne(r *reconciler, e *egress, dirty map[inventory.Namespace]bool) bool {
	before := e.unusable()
	if !e.updateHosts(r) {
		return false
	}
	if !reflect.DeepEqual(before, e.unusable()) {
		for at, s := range d.groups {
			if slices.ContainsFunc(s.groups, func(g *podGroup) bool { return g.egress == e }) {
				dirty[at] = true
			}
		}
	}
	return true
}

func (e *egress) updateHosts(r *reconciler) bool {
	var changed bool
	if r.resolved {
		changed = e.route(r, func(int) bool { return false })
	} else {
		selected := false
		for i := range r.changed {
			if _, selected = e.routed[i]; selected {
				break
			}
		}
		changed = selected && e.route(r, func(i int) bool { return r.changed[i] == nil })
	}
	if changed {
		e.plan = e.hosts(r.env)
	}
	return changed
}

// route finds what is routed, and reports whether that has changed. What is routed for a Destination
// that same reports is as before.
func (e *egress) route(r *reconciler, same func(i int) bool) bool {
	before := e.routed
	e.routed = make(map[int][]snapshot.EgressHost, len(before))
	var visit func(i int)
	visit = func(i int) {
		if _, done := e.routed[i]; done {
			return
		}
		hosts, known := before[i]
		if !known || !same(i) {
			hosts = r.routedHosts(i, e)
		}
		e.routed[i] = hosts
		for _, h := range hosts {
			if next, found := r.env.inv.IndexOf(h.Destination); found && h.Destination.Kind == snapshot.Destination {
				visit(next)
			}
		}
	}
	for _, b := range e.bindings {
		for _, i := range b.destinations {
			visit(i)
		}
	}
	return !reflect.DeepEqual(before, e.routed)
}

// hosts lists the hosts for the proxies.
func (e *egress) hosts(env *environment) *snapshot.Egress {
	out := &snapshot.Egress{}
	found := map[[2]string]*snapshot.EgressHost{}
	add := func(h snapshot.EgressHost) {
		at := [2]string{h.Namespace, h.Host}
		if found[at] == nil {
			found[at] = &snapshot.EgressHost{Namespace: h.Namespace, Host: h.Host, Destination: h.Destination}
		}
		found[at].Origins = append(found[at].Origins, h.Origins...)
	}
	for _, b := range e.bindings {
		out.Dependencies = append(out.Dependencies, b.ref)
		out.Everything = out.Everything || b.everything
		origin := []snapshot.Origin{{Ref: b.ref, Field: "destinationSelectors"}}
		for _, i := range b.destinations {
			if host, ok := env.topology.Host(i, e.mesh); ok {
				add(snapshot.EgressHost{Host: host, Destination: inventory.DestinationRef(env.inv.Destinations[i]), Origins: origin})
			}
		}
	}
	for _, hosts := range e.routed {
		for _, h := range hosts {
			add(h)
		}
	}
	if out.Everything {
		return out
	}
	// The services in the mesh's own namespace, such as trace collectors, are always
	// included; their federated names do not end like this, so those are listed
	// separately.
	add(snapshot.EgressHost{Namespace: e.mesh.Namespace, Host: "*." + e.mesh.Namespace + ".svc." + env.inv.Domain(e.mesh.Cluster)})
	for _, h := range found {
		slices.SortFunc(h.Origins, compareOrigins)
		h.Origins = slices.Compact(h.Origins)
		out.Hosts = append(out.Hosts, *h)
	}
	slices.SortFunc(out.Hosts, func(a, b snapshot.EgressHost) int { return strings.Compare(a.Host, b.Host) })
	return out
}

func compareOrigins(a, b snapshot.Origin) int {
	if c := a.Ref.Compare(b.Ref); c != 0 {
		return c
	}
	return strings.Compare(a.Field, b.Field)
}

// knows reports whether proxies whose dependencies name a service know a VirtualDestination that the service is behind. One of a
// registered cluster is for those that are limited by their own namespace only: it would lift a limit of the management cluster.
func (e *egress) knows(v *snapshot.VirtualDestinationPlan) bool {
	return v.Sees(e.mesh) && (!v.OfNamespace() || !slices.ContainsFunc(e.bindings, func(b *dependencyBinding) bool {
		return b.ref.Cluster != v.Ref.Cluster || b.ref.Namespace != v.Ref.Namespace
	}))
}

// routedHosts are the hosts to which a mesh's policies route or mirror requests for a
// Destination, and the VirtualDestinations that it serves.
func (r *reconciler) routedHosts(i int, e *egress) []snapshot.EgressHost {
	mesh := e.mesh
	var out []snapshot.EgressHost
	add := func(h snapshot.EgressHost) {
		if h.Host != "" && !slices.ContainsFunc(out, func(o snapshot.EgressHost) bool { return o.Host == h.Host && o.Origins[0] == h.Origins[0] }) {
			out = append(out, h)
		}
	}
	for _, v := range r.env.backedBy[i] {
		if e.knows(v) {
			add(snapshot.EgressHost{Host: v.Hostname, Destination: v.Ref, Origins: []snapshot.Origin{{Ref: v.Ref, Field: "hostname"}}})
		}
	}
	for _, view := range r.states[i].plan.Views {
		if view.Mesh.Cluster != mesh.Cluster {
			continue
		}
		for _, route := range view.Routes {
			if t := route.Action.Targets; t != nil {
				for _, target := range t.Value {
					add(snapshot.EgressHost{Host: target.Host, Destination: target.Destination, Origins: []snapshot.Origin{t.Origin}})
				}
			}
			if m := route.Action.Mirror; m != nil {
				add(snapshot.EgressHost{Host: m.Value.Host, Destination: m.Value.Destination, Origins: []snapshot.Origin{m.Origin}})
			}
		}
	}
	return out
}

// updateSidecars plans the Sidecars. Equal ones stay the same objects.
func (d *dependencies) updateSidecars(env *environment) {
	before := make(map[snapshot.Ref]*snapshot.SidecarPlan, len(d.sidecars))
	for _, s := range d.sidecars {
		before[s.Ref] = s
	}
	var out []*snapshot.SidecarPlan
	for at, s := range d.groups {
		named := map[string]bool{}
		for _, g := range s.groups {
			if g.egress.unusable() != nil {
				continue // updateVerdicts reports why
			}
			o := env.inv.Workloads[g.root]
			name := o.Spec.Kubernetes.Controller.Name
			if named[name] {
				name = o.Name // a Deployment and a StatefulSet can have the same name
			}
			named[name] = true
			plan := &snapshot.SidecarPlan{
				Ref:  snapshot.Ref{Kind: g.egress.mesh.Dialect.Egress, Cluster: at.Cluster, Namespace: at.Name, Name: name},
				Mesh: g.egress.mesh, Selector: o.Spec.Kubernetes.PodLabels, Egress: g.egress.plan,
			}
			for _, i := range g.members {
				plan.Workloads = append(plan.Workloads, snapshot.RefOf(snapshot.Workload, env.inv.Workloads[i]))
			}
			if was := before[plan.Ref]; was != nil && was.Mesh == plan.Mesh && was.Egress == plan.Egress && slices.Equal(was.Workloads, plan.Workloads) && maps.Equal(was.Selector, plan.Selector) {
				plan = was
			}
			out = append(out, plan)
		}
	}
	slices.SortFunc(out, func(a, b *snapshot.SidecarPlan) int { return a.Ref.Compare(b.Ref) })
	if !slices.Equal(out, d.sidecars) {
		d.sidecars = out
	}
}

// updateVerdicts evaluates the ServiceDependencies that are new or that select
// workloads in a changed namespace.
func (d *dependencies) updateVerdicts(env *environment, dirty map[inventory.Namespace]bool) {
	plans := make([]*snapshot.DependencyPlan, 0, len(d.bindings))
	for _, b := range d.bindings {
		fresh := !b.evaluated // its selection may have changed
		b.evaluated = true
		for _, i := range b.workloads {
			fresh = fresh || dirty[inventory.NamespaceOf(env.inv.Workloads[i].Spec.Kubernetes)]
		}
		if fresh {
			if plan := d.newPlan(env, b); !reflect.DeepEqual(plan, b.plan) {
				b.plan = plan
			}
		}
		plans = append(plans, b.plan)
	}
	d.plans = plans
}

func (d *dependencies) newPlan(env *environment, b *dependencyBinding) *snapshot.DependencyPlan {
	plan := &snapshot.DependencyPlan{Ref: b.ref, Dependency: b.dependency, Issues: b.issues}
	for _, i := range b.workloads {
		o := env.inv.Workloads[i]
		s := d.groups[inventory.NamespaceOf(o.Spec.Kubernetes)]
		v := snapshot.Verdict{Destination: snapshot.RefOf(snapshot.Workload, o)}
		issues := s.issues[i]
		if g := s.groupOf[i]; g != nil {
			if issue := g.egress.unusable(); issue != nil {
				issues = append(slices.Clone(issues), *issue)
			}
			if !slices.Contains(g.egress.bindings, b) {
				issues = append(slices.Clone(issues), overruledDependency(g.egress.bindings[0].ref))
			}
		}
		v.Accepted = !snapshot.HasErrors(issues)
		v = withIssues(v, b.ref, issues)
		plan.Verdicts = append(plan.Verdicts, v)
		plan.IssueCount += len(v.Issues)
	}
	return plan
}

package policy

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxEgress bounds the Destinations of one Sidecar, far below what an API server stores.
const maxEgress = 5000

// egress is what the proxies of a mesh are told of by some ServiceDependencies.
type egress struct {
	mesh     *snapshot.MeshPlan
	bindings []*dependencyBinding // ascending by ref
	// rerouted is where policies send requests for the Destinations, by index.
	rerouted map[int][]snapshot.EgressHost
	plan     *snapshot.Egress
}

// unusable says why proxies are not told of what these dependencies name; nil
// if they are. It is the same until the world, the dependencies or what stands
// behind VirtualDestinations change.
func (e *egress) unusable() *snapshot.Issue {
	var issue snapshot.Issue
	switch {
	case e.plan.Everything:
		return nil
	case len(e.rerouted) > maxEgress:
		issue = snapshot.Errorf(snapshot.FieldInvalid, "select fewer destinations; of that many, proxies may as well know all",
			"it depends on %d destinations, and more than %d cannot be listed", len(e.rerouted), maxEgress)
	case !slices.ContainsFunc(e.plan.Hosts, func(h snapshot.EgressHost) bool { return len(h.Origins) > 0 }):
		issue = snapshot.Errorf(snapshot.SelectsNothing, "correct destinationSelectors; until then the proxies go on to know of every service",
			"none of the selected destinations is one that it can reach")
	default:
		return nil
	}
	return &issue
}

// egressOf finds what a group of workloads is told of. Groups with the same
// dependencies share it.
func (d *dependencies) egressOf(w *world, members []int, of map[int][]*dependencyBinding) *egress {
	e := &egress{mesh: w.topology.Mesh(w.inv.Workloads[members[0]].Spec.Mesh)}
	for _, i := range members {
		for _, b := range of[i] {
			if !slices.Contains(e.bindings, b) {
				e.bindings = append(e.bindings, b)
			}
		}
	}
	slices.SortFunc(e.bindings, func(a, b *dependencyBinding) int { return a.ref.Compare(b.ref) })
	var name strings.Builder
	name.WriteString(e.mesh.Ref.Name)
	for _, b := range e.bindings {
		name.WriteString("\x00" + b.ref.Namespace + "/" + b.ref.Name)
	}
	if known := d.egress[name.String()]; known != nil && slices.Equal(known.bindings, e.bindings) && known.mesh == e.mesh {
		return known
	}
	d.egress[name.String()] = e
	return e
}

// renewEgress drops what no group needs any more, and works out what is new;
// it reuses what was told before where that is the same.
func (d *dependencies) renewEgress(r *round, before map[string]*egress, dirty map[inventory.Namespace]bool) {
	used := map[*egress]bool{}
	for _, s := range d.standing {
		for _, g := range s.groups {
			used[g.egress] = true
		}
	}
	maps.DeleteFunc(d.egress, func(_ string, e *egress) bool { return !used[e] })
	for name, e := range d.egress {
		if e.plan != nil {
			d.refresh(r, e, dirty)
			continue
		}
		e.rerouted = map[int][]snapshot.EgressHost{}
		for _, b := range e.bindings {
			for _, i := range b.destinations {
				if _, done := e.rerouted[i]; !done {
					e.rerouted[i] = r.rerouted(i, e.mesh)
				}
			}
		}
		e.plan = e.hosts(r.world)
		if was := before[name]; was != nil && reflect.DeepEqual(was.plan, e.plan) {
			e.plan = was.plan
		}
	}
}

// refreshEgress looks again at where requests for the Destinations are sent
// whose plans are new.
func (d *dependencies) refreshEgress(r *round) {
	changed, dirty := false, map[inventory.Namespace]bool{}
	for _, e := range d.egress {
		changed = d.refresh(r, e, dirty) || changed
	}
	if changed {
		d.collect(r.world)
	}
	if len(dirty) > 0 {
		d.judge(r.world, dirty)
	}
}

// refresh looks again at one egress, and marks the places whose proxies are told
// of it now and were not, or the other way round.
func (d *dependencies) refresh(r *round, e *egress, dirty map[inventory.Namespace]bool) bool {
	before := e.unusable()
	if !e.refresh(r) {
		return false
	}
	if !reflect.DeepEqual(before, e.unusable()) {
		for at, s := range d.standing {
			if slices.ContainsFunc(s.groups, func(g *podGroup) bool { return g.egress == e }) {
				dirty[at] = true
			}
		}
	}
	return true
}

func (e *egress) refresh(r *round) bool {
	changed := false
	for i := range r.reachedAnew() {
		before, selected := e.rerouted[i]
		if !selected {
			continue
		}
		if now := r.rerouted(i, e.mesh); !reflect.DeepEqual(before, now) {
			e.rerouted[i] = now
			changed = true
		}
	}
	if changed {
		e.plan = e.hosts(r.world)
	}
	return changed
}

// hosts puts together what the proxies are told of.
func (e *egress) hosts(w *world) *snapshot.Egress {
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
			if host, ok := w.topology.Host(i, e.mesh); ok {
				add(snapshot.EgressHost{Host: host, Destination: inventory.DestinationRef(w.inv.Destinations[i]), Origins: origin})
			}
			for _, h := range e.rerouted[i] {
				add(h)
			}
		}
	}
	if out.Everything {
		return out
	}
	// Where the mesh's own services are, such as collectors of traces, its
	// federated ones are declared, too: those do not end like this.
	add(snapshot.EgressHost{Namespace: e.mesh.Namespace, Host: "*." + e.mesh.Namespace + ".svc." + w.inv.Domain(e.mesh.Cluster)})
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

// rerouted are the hosts to which a mesh's policies send, or copy, requests for
// a Destination, and the VirtualDestinations that it stands behind.
func (r *round) rerouted(i int, mesh *snapshot.MeshPlan) []snapshot.EgressHost {
	var out []snapshot.EgressHost
	add := func(h snapshot.EgressHost) {
		if h.Host != "" && !slices.ContainsFunc(out, func(o snapshot.EgressHost) bool { return o.Host == h.Host && o.Origins[0] == h.Origins[0] }) {
			out = append(out, h)
		}
	}
	for _, v := range r.world.backed[i] {
		if v.Sees(mesh) {
			add(snapshot.EgressHost{Host: v.Hostname, Destination: v.Ref, Origins: []snapshot.Origin{{Ref: v.Ref, Field: "hostname"}}})
		}
	}
	for _, view := range r.cells[i].plan.Views {
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

// collect lists the Sidecars, and keeps those that say what they said before.
func (d *dependencies) collect(w *world) {
	before := make(map[snapshot.Ref]*snapshot.SidecarPlan, len(d.sidecars))
	for _, s := range d.sidecars {
		before[s.Ref] = s
	}
	var out []*snapshot.SidecarPlan
	for at, s := range d.standing {
		named := map[string]bool{}
		for _, g := range s.groups {
			if g.egress.unusable() != nil {
				continue // judge says why
			}
			o := w.inv.Workloads[g.root]
			name := o.Spec.Kubernetes.Controller.Name
			if named[name] {
				name = o.Name // a Deployment and a StatefulSet of one name
			}
			named[name] = true
			plan := &snapshot.SidecarPlan{
				Ref:      snapshot.Ref{Kind: snapshot.Sidecar, Cluster: at.Cluster, Namespace: at.Name, Name: name},
				Selector: o.Spec.Kubernetes.PodLabels, Egress: g.egress.plan,
			}
			for _, i := range g.members {
				plan.Workloads = append(plan.Workloads, snapshot.RefOf(snapshot.Workload, w.inv.Workloads[i]))
			}
			if was := before[plan.Ref]; was != nil && was.Egress == plan.Egress && slices.Equal(was.Workloads, plan.Workloads) && maps.Equal(was.Selector, plan.Selector) {
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

// judge gives the verdicts on the ServiceDependencies that are new, or about
// workloads that stand otherwise than before.
func (d *dependencies) judge(w *world, dirty map[inventory.Namespace]bool) {
	plans := make([]*snapshot.DependencyPlan, 0, len(d.bindings))
	for _, b := range d.bindings {
		fresh := !b.judged // what it selects may be new, or nothing any more
		b.judged = true
		for _, i := range b.workloads {
			fresh = fresh || dirty[inventory.NamespaceOf(w.inv.Workloads[i].Spec.Kubernetes)]
		}
		if fresh {
			if plan := d.verdicts(w, b); !reflect.DeepEqual(plan, b.plan) {
				b.plan = plan
			}
		}
		plans = append(plans, b.plan)
	}
	d.plans = plans
}

func (d *dependencies) verdicts(w *world, b *dependencyBinding) *snapshot.DependencyPlan {
	plan := &snapshot.DependencyPlan{Ref: b.ref, Dependency: b.dependency, Issues: b.issues}
	for _, i := range b.workloads {
		o := w.inv.Workloads[i]
		s := d.standing[inventory.NamespaceOf(o.Spec.Kubernetes)]
		v := snapshot.Verdict{Destination: snapshot.RefOf(snapshot.Workload, o)}
		issues := s.issues[i]
		if g := s.of[i]; g != nil {
			if issue := g.egress.unusable(); issue != nil {
				issues = append(slices.Clone(issues), *issue)
			}
		}
		v.Accepted = !snapshot.HasErrors(issues)
		v = reject(v, b.ref, issues)
		plan.Verdicts = append(plan.Verdicts, v)
		plan.Remarks += len(v.Issues)
	}
	return plan
}

package policy

import (
	"fmt"
	"slices"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// dependencies is what a Planner keeps of ServiceDependencies from plan to plan.
type dependencies struct {
	bindings []*dependencyBinding // ascending by ref
	places   *podPlaces
	standing map[inventory.Namespace]*standing
	egress   map[string]*egress
	sidecars []*snapshot.SidecarPlan
	plans    []*snapshot.DependencyPlan
}

// dependencyBinding is a ServiceDependency with what it selects, by index.
type dependencyBinding struct {
	dependency   *enterprisev1beta1.ServiceDependency
	ref          snapshot.Ref
	workloads    []int
	destinations []int
	// everything: it selects no destinations in particular.
	everything bool
	issues     []snapshot.Issue
	// plan is the last verdict; judged: it was passed on this very binding.
	plan   *snapshot.DependencyPlan
	judged bool
}

// planDependencies brings what follows from ServiceDependencies up to date. It
// comes after the Destinations, whose routes it reads.
func (r *round) planDependencies() {
	if len(r.next.dependencies) == 0 {
		r.dependencies = dependencies{}
		return
	}
	d := &r.dependencies
	if !r.fresh && !r.handChanged && d.bindings != nil && snapshot.SameSlice(r.basis.dependencies, r.next.dependencies) {
		d.refreshEgress(r)
		return
	}
	old := *d
	if r.fresh || d.places == nil {
		*d = dependencies{places: newPodPlaces(r.world), standing: map[inventory.Namespace]*standing{}, egress: map[string]*egress{}}
	}
	dirty := d.bind(r, old.bindings)
	if r.handChanged {
		for at := range d.standing {
			dirty[at] = true
		}
	}
	d.stand(r, dirty)
	d.renewEgress(r, old.egress, dirty)
	d.sidecars = old.sidecars // to reuse
	d.collect(r.world)
	d.judge(r.world, dirty)
}

// bind finds what each ServiceDependency selects, and reports the places in
// which workloads are selected in another way than before.
func (d *dependencies) bind(r *round, old []*dependencyBinding) map[inventory.Namespace]bool {
	dirty := map[inventory.Namespace]bool{}
	touch := func(b *dependencyBinding) {
		for _, i := range b.workloads {
			dirty[inventory.NamespaceOf(r.world.inv.Workloads[i].Spec.Kubernetes)] = true
		}
	}
	before := make(map[snapshot.Ref]*dependencyBinding, len(old))
	for _, b := range old {
		before[b.ref] = b
	}
	d.bindings = make([]*dependencyBinding, 0, len(r.next.dependencies))
	for _, dependency := range r.next.dependencies {
		ref := snapshot.RefOf(snapshot.ServiceDependency, dependency)
		was := before[ref]
		if was != nil && was.dependency == dependency && !r.fresh {
			d.bindings = append(d.bindings, was)
			delete(before, ref)
			continue
		}
		b := d.bindOne(r.world, ref, dependency)
		if was != nil {
			b.plan = was.plan // to reuse
		}
		d.bindings = append(d.bindings, b)
		touch(b)
	}
	if !r.fresh {
		for _, gone := range before {
			touch(gone)
		}
	}
	return dirty
}

func (d *dependencies) bindOne(w *world, ref snapshot.Ref, o *enterprisev1beta1.ServiceDependency) *dependencyBinding {
	b := &dependencyBinding{dependency: o, ref: ref, everything: len(o.Spec.DestinationSelectors) == 0}
	add := func(issue snapshot.Issue) { b.issues = append(b.issues, issue.On(ref, snapshot.Ref{})) }
	gateways := false
	for i, workload := range w.inv.Workloads {
		k := workload.Spec.Kubernetes
		if k == nil || !inventory.SelectsWorkload(o.Spec.SourceSelectors, k) {
			continue
		}
		if d.places.gateways[i] {
			gateways = true
			continue
		}
		b.workloads = append(b.workloads, i)
	}
	switch {
	case len(b.workloads) > 0:
	case gateways:
		add(snapshot.Warnf(snapshot.SelectsNothing, "select workloads with sidecars; gateways know of every service",
			"sourceSelectors match gateways only"))
	default:
		add(snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelectors, or start the workloads; `meshctl describe workload` lists those there are",
			"sourceSelectors match no workload"))
	}
	if b.everything {
		add(snapshot.Warnf(snapshot.LimitsNothing, "name the destinations that the workloads call in destinationSelectors",
			"destinationSelectors is empty, which means all: the workloads' proxies go on to know of every service"))
		return b
	}
	selected, missing := w.inv.SelectDestinations(o.Spec.DestinationSelectors)
	b.destinations = selected
	b.issues = append(b.issues, inventory.SelectionIssues(ref, "destinationSelectors", selected, missing)...)
	b.issues = append(b.issues, w.unreachable(b)...)
	return b
}

// unreachable warns of Destinations that a ServiceDependency names and that the
// meshes of its workloads do not know.
func (w *world) unreachable(b *dependencyBinding) []snapshot.Issue {
	named := map[int]bool{}
	for i := range b.dependency.Spec.DestinationSelectors {
		if refs := b.dependency.Spec.DestinationSelectors[i].KubeServiceRefs; refs != nil {
			for _, service := range refs.Services {
				if at, ok := w.inv.IndexOfService(service); ok {
					named[at] = true
				}
			}
		}
	}
	var issues []snapshot.Issue
	for _, mesh := range w.meshesOf(b.workloads) {
		reached, missed, example := 0, 0, -1
		for _, i := range b.destinations {
			switch _, ok := w.topology.Host(i, mesh); {
			case ok:
				reached++
			case named[i]:
				if missed++; example < 0 {
					example = i
				}
			case example < 0 && missed == 0 && reached == 0:
				example = i
			}
		}
		if missed == 0 && (reached > 0 || len(b.destinations) == 0) {
			continue
		}
		what := "service " + inventory.ServiceName(w.inv.Destinations[example].Spec.KubeService.Ref)
		if missed > 1 {
			what = fmt.Sprintf("%d of the services, among them %s", missed, what)
		}
		issues = append(issues, snapshot.Warnf(snapshot.NotFederated,
			"federate to that mesh in the VirtualMesh, or restrict sourceSelectors to clusters that can reach it",
			"mesh %s cannot reach %s by its own name, and its proxies are not told of that name", mesh.Ref.Name, what).On(b.ref, snapshot.Ref{}))
	}
	return issues
}

// meshesOf lists the meshes of workloads, ascending.
func (w *world) meshesOf(workloads []int) []*snapshot.MeshPlan {
	var out []*snapshot.MeshPlan
	for _, i := range workloads {
		if m := w.topology.Mesh(w.inv.Workloads[i].Spec.Mesh); m != nil && m.Mesh.Spec.Istio != nil && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, virtualmesh.CompareMeshes)
	return out
}

package policy

import (
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// dependencies is the Planner's cache of ServiceDependencies.
type dependencies struct {
	bindings []*dependencyBinding // ascending by ref
	pods     *podIndex
	groups   map[inventory.Namespace]*namespaceGroups
	egress   map[string]*egress
	sidecars []*snapshot.SidecarPlan
	plans    []*snapshot.DependencyPlan
}

// dependencyBinding is a ServiceDependency with the indexes of what it selects.
type dependencyBinding struct {
	dependency   *enterprisev1beta1.ServiceDependency
	ref          snapshot.Ref
	workloads    []int
	destinations []int
	// everything is set if it has no destinationSelectors.
	everything bool
	issues     []snapshot.Issue
	// plan is the last result; evaluated is set once it is that of this binding.
	plan      *snapshot.DependencyPlan
	evaluated bool
}

// planDependencies plans the ServiceDependencies. It runs after the Destinations are
// planned, because it reads their routes.
func (r *reconciler) planDependencies() {
	if len(r.next.dependencies) == 0 {
		r.dependencies = dependencies{}
		return
	}
	d := &r.dependencies
	if !r.rebuilt && !r.handWrittenChanged && d.bindings != nil && snapshot.SameSlice(r.last.dependencies, r.next.dependencies) {
		d.refreshEgress(r)
		return
	}
	old := *d
	if r.rebuilt || d.pods == nil {
		*d = dependencies{pods: newPodIndex(r.env), groups: map[inventory.Namespace]*namespaceGroups{}, egress: map[string]*egress{}}
	}
	dirty := d.bindAll(r, old.bindings)
	if r.handWrittenChanged {
		for at := range d.groups {
			dirty[at] = true
		}
	}
	d.updateGroups(r, dirty)
	d.rebuildEgress(r, old.egress, dirty)
	d.sidecars = old.sidecars // to reuse
	d.updateSidecars(r.env)
	d.updateVerdicts(r.env, dirty)
}

// bindAll finds what each ServiceDependency selects. It returns the namespaces in
// which the selected workloads, or what they depend on, changed.
func (d *dependencies) bindAll(r *reconciler, old []*dependencyBinding) map[inventory.Namespace]bool {
	dirty := map[inventory.Namespace]bool{}
	touch := func(b *dependencyBinding) {
		for _, i := range b.workloads {
			dirty[inventory.NamespaceOf(r.env.inv.Workloads[i].Spec.Kubernetes)] = true
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
		if was != nil && was.dependency == dependency && !r.rebuilt && !r.next.ofDependencies.beyond[ref] {
			d.bindings = append(d.bindings, was)
			delete(before, ref)
			continue
		}
		b := d.newBinding(r.env, ref, dependency)
		if was != nil {
			b.plan = was.plan // to reuse
		}
		d.bindings = append(d.bindings, b)
		touch(b)
	}
	if !r.rebuilt {
		for _, gone := range before {
			touch(gone)
		}
	}
	return dirty
}

func (d *dependencies) newBinding(env *environment, ref snapshot.Ref, o *enterprisev1beta1.ServiceDependency) *dependencyBinding {
	b := &dependencyBinding{dependency: o, ref: ref, everything: len(o.Spec.DestinationSelectors) == 0}
	add := func(issue snapshot.Issue) { b.issues = append(b.issues, issue.On(ref, snapshot.Ref{})) }
	if b.issues = append(env.scope.Issues(ref), env.local[ref]...); !env.scope.CountsPolicy(ref) || snapshot.Rejected(b.issues) {
		return b
	}
	gateways, imports := false, false
	for _, i := range withinWorkloads(env, ref, env.inv.Callers(o.Spec.SourceSelectors)) {
		imports = imports || ref.Cluster == "" && env.importsDeclared(env.inv.Workloads[i]) // see updateNeeds
		if d.pods.gateways[i] {
			gateways = true
			continue
		}
		b.workloads = append(b.workloads, i)
	}
	switch {
	case len(b.workloads) > 0:
	case gateways && imports: // what their mesh imports follows from it
	case gateways:
		add(snapshot.Warnf(snapshot.SelectsNothing, "select workloads with sidecars; gateways are configured with every service",
			"sourceSelectors match only gateways").At("sourceSelectors"))
	default:
		add(snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelectors, or start the workloads; `meshctl describe workload` lists those there are",
			"sourceSelectors match no workload").At("sourceSelectors"))
	}
	if b.everything && imports {
		add(snapshot.Warnf(snapshot.LimitsNothing, "name the destinations that the workloads call in destinationSelectors",
			"destinationSelectors is empty, which means all: the meshes of the workloads import every service, and their proxies are configured with it").At("destinationSelectors"))
		return b
	}
	if b.everything {
		add(snapshot.Warnf(snapshot.LimitsNothing, "name the destinations that the workloads call in destinationSelectors",
			"destinationSelectors is empty, which means all: the proxies of the workloads stay configured with every service").At("destinationSelectors"))
		return b
	}
	selected, missing := env.inv.SelectDestinations(o.Spec.DestinationSelectors)
	b.destinations = selected
	b.issues = append(b.issues, env.inv.SelectionIssues(ref, "destinationSelectors", selected, missing)...)
	b.issues = append(b.issues, env.unreachableIssues(b)...)
	return b
}

// importsDeclared reports whether the mesh of a workload imports what is declared only.
func (env *environment) importsDeclared(w *discoveryv1.Workload) bool {
	mesh := env.topology.Mesh(w.Spec.Mesh)
	return mesh != nil && mesh.VirtualMesh != nil && virtualmesh.Declares(mesh.VirtualMesh)
}

// unreachableIssues warns of Destinations that a ServiceDependency names and that the
// meshes of its workloads cannot reach.
func (env *environment) unreachableIssues(b *dependencyBinding) []snapshot.Issue {
	named := map[int]bool{}
	for i := range b.dependency.Spec.DestinationSelectors {
		if refs := b.dependency.Spec.DestinationSelectors[i].KubeServiceRefs; refs != nil {
			for _, service := range refs.Services {
				if at, ok := env.inv.IndexOfService(service); ok {
					named[at] = true
				}
			}
		}
	}
	var issues []snapshot.Issue
	for _, mesh := range env.meshesOf(b.workloads) {
		reached, missed, example := 0, 0, -1
		for _, i := range b.destinations {
			switch _, ok := env.topology.Host(i, mesh); {
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
		what := "service " + inventory.ServiceName(env.inv.Destinations[example].Spec.KubeService.Ref)
		if missed > 1 {
			what = fmt.Sprintf("%d of the services, among them %s", missed, what)
		}
		issues = append(issues, snapshot.Warnf(snapshot.NotFederated,
			"federate to that mesh in the VirtualMesh, or restrict sourceSelectors to clusters that can reach it",
			"mesh %s cannot reach %s by its own name, so its proxies are not configured with that name", mesh.Ref.Name, what).At("destinationSelectors").On(b.ref, snapshot.Ref{}))
	}
	return issues
}

// meshesOf lists the meshes of workloads, ascending.
func (env *environment) meshesOf(workloads []int) []*snapshot.MeshPlan {
	var out []*snapshot.MeshPlan
	for _, i := range workloads {
		if m := env.topology.Mesh(env.inv.Workloads[i].Spec.Mesh); m != nil && limitsProxies(m) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, virtualmesh.CompareMeshes)
	return out
}

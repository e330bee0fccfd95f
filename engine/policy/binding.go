package policy

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxListed bounds the lists that a status and a plan name one by one.
const maxListed = 200

// trafficBinding is a TrafficPolicy with what it selects.
type trafficBinding struct {
	policy    *networkingv1.TrafficPolicy
	ref       snapshot.Ref
	selected  []int
	workloads workloadList
	issues    []snapshot.Issue
	ceasing
	// plan is the last verdict; nil if there is none yet.
	plan *snapshot.PolicyPlan
}

// accessBinding is an AccessPolicy with what it selects and who it lets in.
type accessBinding struct {
	// callers and uncovered are remembered answers, by mesh and by account.
	callers   map[snapshot.Ref]*callers
	uncovered map[accountKey]string

	policy    *networkingv1.AccessPolicy
	ref       snapshot.Ref
	selected  []int
	rule      *snapshot.AccessRule
	workloads workloadList
	issues    []snapshot.Issue
	ceasing
	// plan is the last verdict; nil if there is none yet.
	plan *snapshot.PolicyPlan
}

// workloadList is the beginning of a list of workloads, and how many there are.
type workloadList struct {
	first []snapshot.Ref
	count int
}

func (w *world) bindTraffic(p *networkingv1.TrafficPolicy, old *trafficBinding) *trafficBinding {
	b := &trafficBinding{policy: p, ref: snapshot.RefOf(snapshot.TrafficPolicy, p)}
	selected, missing := w.inv.selectDestinations(p.Spec.DestinationSelector)
	b.selected = selected
	b.issues = selectionIssues(b.ref, "destinationSelector", selected, missing)
	b.workloads = w.workloads(selected, len(p.Spec.SourceSelector) == 0, workloadAreas(p.Spec.SourceSelector), func(i int) bool {
		k := w.inv.Workloads[i].Spec.Kubernetes
		return k != nil && matchesWorkload(p.Spec.SourceSelector, k)
	})
	if b.workloads.count == 0 && len(selected) > 0 {
		b.issues = append(b.issues, on(b.ref, snapshot.Ref{}, warning(snapshot.SelectsNothing,
			"correct sourceSelector, or start the workloads", "sourceSelector matches no workload that could call these destinations")))
	}
	if p.Spec.Policy == nil || reflect.ValueOf(*p.Spec.Policy).IsZero() {
		b.issues = append(b.issues, on(b.ref, snapshot.Ref{}, warning(snapshot.SelectsNothing, "set a field of spec.policy", "the policy asks for nothing")))
	}
	if old != nil && slices.Equal(old.selected, b.selected) {
		b.selected = old.selected
	}
	if old != nil {
		b.plan = old.plan // to reuse
	}
	return b
}

func (w *world) bindAccess(p *networkingv1.AccessPolicy, old *accessBinding) *accessBinding {
	b := &accessBinding{policy: p, ref: snapshot.RefOf(snapshot.AccessPolicy, p)}
	selected, missing := w.inv.selectDestinations(p.Spec.DestinationSelector)
	b.selected = selected
	b.issues = selectionIssues(b.ref, "destinationSelector", selected, missing)
	b.workloads = w.workloads(selected, len(p.Spec.SourceSelector) == 0, identityAreas(p.Spec.SourceSelector), func(i int) bool {
		k := w.inv.Workloads[i].Spec.Kubernetes
		return k != nil && matchesIdentity(p.Spec.SourceSelector, k)
	})
	rule, issues := w.accessRule(p)
	if w.knowIdentities(selected) {
		for _, issue := range issues {
			b.issues = append(b.issues, on(b.ref, snapshot.Ref{}, issue))
		}
	}
	b.rule = rule
	if old != nil && reflect.DeepEqual(old.rule, rule) {
		b.rule = old.rule
	}
	if old != nil {
		b.plan = old.plan // to reuse
	}
	return b
}

// selectionIssues says which references name nothing, or that nothing is selected at all.
func selectionIssues(policy snapshot.Ref, field string, selected []int, missing []commonv1.ClusterObjectRef) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, m := range missing {
		issues = append(issues, on(policy, snapshot.Ref{}, failure(snapshot.DestinationNotFound,
			"correct the reference; `meshctl describe destination` lists the services there are",
			"%s: service %s was not discovered", field, key(m))))
	}
	if len(selected)+len(missing) == 0 {
		issues = append(issues, on(policy, snapshot.Ref{}, warning(snapshot.SelectsNothing,
			"correct "+field+"; `meshctl describe destination` lists the services there are",
			"%s matches no destination", field)))
	}
	return issues
}

// workloads are the ones that match among those that could call the selected
// Destinations: the workloads of their meshes, and of the VirtualMeshes these are
// in. Nothing that matches is elsewhere than in the areas.
func (w *world) workloads(selected []int, all bool, where areas, matches func(int) bool) workloadList {
	meshes := w.callingMeshes(selected)
	var out workloadList
	if len(meshes) == 0 {
		return out
	}
	add := func(i int) {
		out.count++
		if len(out.first) < maxListed {
			out.first = append(out.first, snapshot.RefOf(snapshot.Workload, w.inv.Workloads[i]))
		}
	}
	switch {
	case all:
		total := 0
		for mesh := range meshes {
			total += w.inv.workloadsOf[mesh]
		}
		for i, workload := range w.inv.Workloads {
			if out.count >= min(total, maxListed) {
				break
			}
			if meshes[workload.Spec.Mesh] {
				add(i)
			}
		}
		out.count = total
	case where.narrow():
		for _, i := range w.inv.workloadBlocks.all(func(b *block) bool { return meshes[b.mesh] && where.has(b.place) }) {
			if matches(i) {
				add(i)
			}
		}
	default:
		for i, workload := range w.inv.Workloads {
			if matches(i) && meshes[workload.Spec.Mesh] {
				add(i)
			}
		}
	}
	return out
}

// callingMeshes are those of the selected Destinations, and the others in their
// VirtualMeshes.
func (w *world) callingMeshes(selected []int) map[commonv1.ObjectRef]bool {
	meshes := map[commonv1.ObjectRef]bool{}
	virtual := map[*networkingv1.VirtualMesh]bool{}
	for _, i := range selected {
		if mesh := w.groups.mesh(w.inv.Destinations[i]); mesh != nil {
			meshes[*w.inv.Destinations[i].Spec.Mesh] = true
			if mesh.VirtualMesh != nil {
				virtual[mesh.VirtualMesh] = true
			}
		}
	}
	for _, mesh := range w.groups.Meshes {
		if mesh.VirtualMesh != nil && virtual[mesh.VirtualMesh] {
			meshes[commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}] = true
		}
	}
	return meshes
}

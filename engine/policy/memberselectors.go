package policy

import (
	"slices"
	"strconv"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// selectorIssues says which selectors of a VirtualMesh name what does not exist,
// or nothing in its members.
func selectorIssues(inv *Inventory, plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	f := plan.VirtualMesh.Spec.Federation
	if f == nil {
		return nil
	}
	var issues []snapshot.Issue
	add := func(issue snapshot.Issue) { issues = append(issues, on(plan.Ref, snapshot.Ref{}, issue)) }
	for i, s := range f.Selectors {
		field := "federation.selectors[" + strconv.Itoa(i) + "]"
		inv.checkSelectors(plan, field+".destinationSelectors", s.DestinationSelectors, add)
		for _, name := range s.Meshes {
			if !isMember(plan, name) {
				add(failure(snapshot.MeshNotFound, "add it to spec.meshes, or remove it from the selector",
					"%s.meshes: mesh %s.%s is not among the members, and sees nothing of them", field, name.Name, name.Namespace))
			}
		}
	}
	for i, s := range f.EastWestIngressGatewaySelectors {
		inv.checkSelectors(plan, "federation.eastWestIngressGatewaySelectors["+strconv.Itoa(i)+"].destinationSelectors", s.DestinationSelectors, add)
	}
	if len(f.Selectors) > 0 && f.Permissive != nil {
		add(warning(snapshot.FieldUnsupported, "remove one of the two", "federation.permissive has no effect beside federation.selectors"))
	}
	return issues
}

// checkSelectors tells of references to services that do not exist, and of
// selectors that match nothing in any member. No selectors stand for a default.
func (inv *Inventory) checkSelectors(plan *snapshot.VirtualMeshPlan, field string, selectors []commonv1.DestinationSelector, add func(snapshot.Issue)) {
	if len(selectors) == 0 {
		return
	}
	selected, missing := inv.selectDestinations(selectors)
	for _, m := range missing {
		add(failure(snapshot.DestinationNotFound, findDestination, "%s: service %s was not discovered", field, key(m)))
	}
	if len(missing) > 0 || slices.ContainsFunc(selected, func(i int) bool {
		d := inv.Destinations[i]
		return d.Spec.Mesh != nil && isMember(plan, *d.Spec.Mesh)
	}) {
		return
	}
	add(warning(snapshot.SelectsNothing, "correct it; `meshctl describe destination` lists the services there are",
		"%s matches no service of the members", field))
}

func isMember(plan *snapshot.VirtualMeshPlan, name commonv1.ObjectRef) bool {
	return slices.ContainsFunc(plan.Members, func(m *snapshot.MeshPlan) bool {
		return m.Ref.Name == name.Name && m.Ref.Namespace == name.Namespace
	})
}

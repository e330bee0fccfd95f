package policy

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// gatewaySelectorIssues says which gateway selectors of a VirtualMesh name
// services that do not exist, or none of any member, and what has no effect
// beside something else.
func (t *Topology) gatewaySelectorIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	f := plan.VirtualMesh.Spec.Federation
	if f == nil {
		return nil
	}
	var issues []snapshot.Issue
	for i, s := range f.EastWestIngressGatewaySelectors {
		if len(s.DestinationSelectors) == 0 {
			continue // stands for the marked gateways
		}
		selected, missing := t.inv.SelectDestinations(s.DestinationSelectors)
		own := slices.DeleteFunc(selected, func(at int) bool {
			mesh := t.MeshOf(t.inv.Destinations[at])
			return mesh == nil || !slices.Contains(plan.Members, mesh)
		})
		field := "federation.eastWestIngressGatewaySelectors[" + strconv.Itoa(i) + "].destinationSelectors"
		issues = append(issues, SelectionIssues(plan.Ref, field, own, missing)...)
	}
	if len(f.Selectors) > 0 && f.Permissive != nil {
		issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported,
			"remove one of the two", "federation.permissive has no effect beside federation.selectors").On(plan.Ref, snapshot.Ref{}))
	}
	return issues
}

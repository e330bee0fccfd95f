package virtualmesh

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// federationSelectorIssues reports federation selectors with meshes that are not
// members, with unknown services, or that match nothing.
func (t *Topology) federationSelectorIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	federation := plan.VirtualMesh.Spec.Federation
	if federation == nil {
		return nil
	}
	var issues []snapshot.Issue
	for i, s := range federation.Selectors {
		field := "federation.selectors[" + strconv.Itoa(i) + "]"
		for _, m := range s.Meshes {
			// Meshes in spec.meshes were checked there.
			if named := (snapshot.Ref{Kind: snapshot.Mesh, Namespace: m.Namespace, Name: m.Name}); !slices.Contains(plan.VirtualMesh.Spec.Meshes, m) {
				issues = append(issues, snapshot.Errorf(snapshot.MeshNotFound,
					"add it to spec.meshes, or remove it from "+field+".meshes", "%s.meshes: mesh %s.%s is not a member", field, m.Name, m.Namespace).At(field+".meshes").On(plan.Ref, named))
			}
		}
		if len(s.DestinationSelectors) == 0 {
			continue
		}
		selected, missing := t.inv.SelectDestinations(s.DestinationSelectors)
		own := slices.DeleteFunc(selected, func(at int) bool {
			mesh := t.MeshOf(t.inv.Destinations[at])
			return mesh == nil || !slices.Contains(plan.Members, mesh)
		})
		issues = append(issues, t.inv.SelectionIssues(plan.Ref, field+".destinationSelectors", own, missing)...)
	}
	return issues
}

// gatewaySelectorIssues reports gateway selectors with unknown services or that match
// no service of a member, and fields that exclude each other.
func (t *Topology) gatewaySelectorIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	f := plan.VirtualMesh.Spec.Federation
	if f == nil {
		return nil
	}
	var issues []snapshot.Issue
	for i, s := range f.EastWestIngressGatewaySelectors {
		if len(s.DestinationSelectors) == 0 {
			continue // it matches the labelled gateways
		}
		selected, missing := t.inv.SelectDestinations(s.DestinationSelectors)
		own := slices.DeleteFunc(selected, func(at int) bool {
			mesh := t.MeshOf(t.inv.Destinations[at])
			return mesh == nil || !slices.Contains(plan.Members, mesh)
		})
		field := "federation.eastWestIngressGatewaySelectors[" + strconv.Itoa(i) + "].destinationSelectors"
		issues = append(issues, t.inv.SelectionIssues(plan.Ref, field, own, missing)...)
	}
	if len(f.Selectors) > 0 && f.Permissive != nil {
		issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported,
			"remove one of the two", "federation.permissive has no effect if federation.selectors is set").At("federation.permissive").On(plan.Ref, snapshot.Ref{}))
	}
	return issues
}

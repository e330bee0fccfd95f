package policy

import (
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// rootIssues warns of a target in a mesh that shares no root with the viewer: what is
// sent there fails. Of several such meshes behind a VirtualDestination it names the
// first.
func (c *fieldContext) rootIssues(field string, target snapshot.Target) []snapshot.Issue {
	if target.Host == "" {
		return nil // the viewer cannot reach it
	}
	for _, mesh := range c.meshesBehind(target) {
		if issue, apart := virtualmesh.RootsApart(c.viewer, mesh); apart {
			issue.Message = field + ": " + issue.Message
			return []snapshot.Issue{issue.At(field)}
		}
	}
	return nil
}

// meshesBehind are the meshes with the services to which a target leads.
func (c *fieldContext) meshesBehind(target snapshot.Target) []*snapshot.MeshPlan {
	var out []*snapshot.MeshPlan
	if plan := c.env.virtualDestinations[target.Destination]; plan != nil {
		for _, b := range plan.Backing {
			out = append(out, b.Mesh)
		}
		return out
	}
	i, ok := c.env.inv.IndexOf(target.Destination)
	if !ok || inventory.DestinationRef(c.env.inv.Destinations[i]) != target.Destination {
		return nil // it is outside all meshes
	}
	if mesh := c.env.topology.MeshOf(c.env.inv.Destinations[i]); mesh != nil {
		out = append(out, mesh)
	}
	return out
}

// callerRootIssues warns of clusters that an AccessPolicy names, but whose callers share
// no root with the given meshes: they are allowed in vain. Of several pairs of meshes it
// names the first.
func (env *environment) callerRootIssues(p *networkingv1.AccessPolicy, in []*snapshot.MeshPlan) []snapshot.Issue {
	if p.Spec.Denies() {
		return nil // they cannot connect
	}
	var named []string
	for _, s := range p.Spec.SourceSelector {
		if s.KubeIdentityMatcher != nil {
			named = append(named, s.KubeIdentityMatcher.Clusters...)
		}
		if s.KubeServiceAccountRefs == nil {
			continue
		}
		for _, account := range s.KubeServiceAccountRefs.ServiceAccounts {
			named = append(named, account.ClusterName)
		}
	}
	for _, mesh := range in {
		for _, caller := range env.topology.Meshes {
			if mesh.VirtualMesh == nil || caller.VirtualMesh != mesh.VirtualMesh || !slices.Contains(named, caller.Cluster) {
				continue
			}
			if issue, apart := virtualmesh.RootsApart(caller, mesh); apart {
				issue.Message = "callers in cluster " + caller.Cluster + " are allowed in vain: " + issue.Message
				return []snapshot.Issue{issue.At("sourceSelector")}
			}
		}
	}
	return nil
}

package wizards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// FormOf is the form of a kind in lower case; nil if there is none.
func FormOf(kind string) *Form {
	for _, form := range []*Form{VirtualMesh(), TrafficPolicy(), AccessPolicy(), VirtualDestination(), ServiceDependency(), AccessLogRecord(), Role(), RoleBinding()} {
		if strings.ToLower(form.Kind.String()) == kind {
			return form
		}
	}
	return nil
}

// Discovered summarizes what was discovered, a line for each cluster.
func (c *Catalog) Discovered() []string {
	workloads, services := map[string]int{}, map[string]int{}
	for _, k := range c.workloads() {
		workloads[k.Controller.ClusterName]++
	}
	for _, k := range c.services() {
		services[k.Ref.ClusterName]++
	}
	var out []string
	for _, cluster := range c.Input.Clusters {
		var meshes []string
		for _, m := range c.Plan.Meshes {
			if m.Cluster == cluster.Name {
				meshes = append(meshes, m.Ref.Name)
			}
		}
		line := fmt.Sprintf("Found in %s: %s", cluster.Name, snapshot.Count(len(meshes), "mesh"))
		if len(meshes) > 0 {
			line += " (" + strings.Join(meshes, ", ") + ")"
		}
		line += fmt.Sprintf(", %s, %s", snapshot.Count(services[cluster.Name], "service"), snapshot.Count(workloads[cluster.Name], "workload"))
		if cluster.Sync != snapshot.Synced && cluster.Reason != "" {
			line += "; it cannot be read: " + cluster.Reason
		}
		out = append(out, clean(line))
	}
	return out
}

// UnjoinedMeshes lists the meshes that are in no VirtualMesh, as namespace/name;
// joined is a sentence about the VirtualMeshes of the others.
func (c *Catalog) UnjoinedMeshes() (unjoined []string, joined string) {
	var in []string
	all := map[string]int{}
	for _, m := range c.Plan.Meshes {
		if m.VirtualMesh == nil {
			unjoined = append(unjoined, m.Ref.Namespace+"/"+m.Ref.Name)
			continue
		}
		name := m.VirtualMesh.Namespace + "/" + m.VirtualMesh.Name
		if all[name]++; !slices.Contains(in, name) {
			in = append(in, name)
		}
	}
	if len(in) == 0 {
		return unjoined, ""
	}
	for i, name := range in {
		in[i] = fmt.Sprintf("VirtualMesh %s has %s", name, snapshot.Count(all[name], "mesh"))
	}
	joined = "Already joined: " + strings.Join(in, ", ")
	if len(unjoined) > 0 {
		joined += fmt.Sprintf("; %d of %d are in none. To add one, edit spec.meshes.", len(unjoined), len(c.Plan.Meshes))
	}
	return unjoined, clean(joined)
}

package wizards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// FormOf is the form of a kind in lower case; nil if there is none.
func FormOf(kind string) *Form {
	for _, form := range []*Form{VirtualMesh(), TrafficPolicy(), AccessPolicy()} {
		if strings.ToLower(form.Kind.String()) == kind {
			return form
		}
	}
	return nil
}

// Found says what was discovered, a line for each cluster.
func (w *World) Found() []string {
	workloads, services := map[string]int{}, map[string]int{}
	for _, k := range w.workloads() {
		workloads[k.Controller.ClusterName]++
	}
	for _, k := range w.services() {
		services[k.Ref.ClusterName]++
	}
	var out []string
	for _, c := range w.Input.Clusters {
		var meshes []string
		for _, m := range w.Plan.Meshes {
			if m.Cluster == c.Name {
				meshes = append(meshes, m.Ref.Name)
			}
		}
		line := fmt.Sprintf("Found in %s: %s", c.Name, snapshot.Count(len(meshes), "mesh"))
		if len(meshes) > 0 {
			line += " (" + strings.Join(meshes, ", ") + ")"
		}
		line += fmt.Sprintf(", %s, %s", snapshot.Count(services[c.Name], "service"), snapshot.Count(workloads[c.Name], "workload"))
		if c.Sync != snapshot.Synced && c.Reason != "" {
			line += "; it cannot be read: " + c.Reason
		}
		out = append(out, clean(line))
	}
	return out
}

// Free lists the meshes that are in no VirtualMesh, as namespace/name; joined
// says which VirtualMeshes have the others.
func (w *World) Free() (free []string, joined string) {
	var in []string
	all := map[string]int{}
	for _, m := range w.Plan.Meshes {
		if m.VirtualMesh == nil {
			free = append(free, m.Ref.Namespace+"/"+m.Ref.Name)
			continue
		}
		name := m.VirtualMesh.Namespace + "/" + m.VirtualMesh.Name
		if all[name]++; !slices.Contains(in, name) {
			in = append(in, name)
		}
	}
	if len(in) == 0 {
		return free, ""
	}
	for i, name := range in {
		in[i] = fmt.Sprintf("VirtualMesh %s has %s", name, snapshot.Count(all[name], "mesh"))
	}
	joined = "Already joined: " + strings.Join(in, ", ")
	if len(free) > 0 {
		joined += fmt.Sprintf("; %d of %d are free. To add one to it, edit its spec.meshes.", len(free), len(w.Plan.Meshes))
	}
	return free, clean(joined)
}

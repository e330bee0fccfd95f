package discovery

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// meshOfNamespace is the mesh of a Service without workloads, but with the annotation
// of destinations: the mesh that its namespace names; else the only possible one; of
// several, the one with the default revision.
func (x *Index) meshOfNamespace(kinds []*detected, s *corev1.Service) *ControlPlane {
	named, possible := x.candidates(kinds, s.Namespace)
	if len(named) == 1 {
		return named[0]
	}
	var defaults []*ControlPlane
	for _, m := range possible {
		if m.Default {
			defaults = append(defaults, m)
		}
	}
	issue := snapshot.Issue{Code: snapshot.AmbiguousMesh, Severity: snapshot.Warning, Ref: x.serviceRef(s)}
	switch {
	case len(possible) == 1:
		return possible[0]
	case len(defaults) == 1:
		return defaults[0]
	case len(possible) == 0:
		issue.Code = snapshot.ServiceWithoutMesh
		issue.Message = "it has the annotation for discovery, but its cluster has no mesh"
		issue.Hint = "install a mesh or remove the annotation " + snapshot.DiscoverServiceAnnotation
		if hasMesh(kinds) {
			issue.Message = "it has the annotation for discovery, but no mesh of its cluster includes its namespace"
			issue.Hint = "add the namespace to a mesh, or remove the annotation " + snapshot.DiscoverServiceAnnotation
			issue.Cause = x.namespaceRef(s.Namespace)
		}
		x.Report(issue)
		return nil
	default:
		issue.Message = fmt.Sprintf("it has the annotation for discovery, but its cluster has %d meshes, and neither a workload nor its namespace determines which; it is assigned to %s",
			len(possible), possible[0].Mesh.Name)
		issue.Hint = "select a workload of the intended mesh"
		x.Report(issue)
		return possible[0]
	}
}

// candidates are the meshes that a namespace names, and those to which a Service in it
// can belong.
func (x *Index) candidates(kinds []*detected, namespace string) (named, possible []*ControlPlane) {
	ns := x.Namespaces[namespace]
	for _, k := range kinds {
		if ns == nil || !k.OptIn {
			possible = append(possible, k.controlPlanes...)
		}
		if ns == nil || k.Namespace == nil {
			continue
		}
		c, ok := k.Namespace(ns)
		if !ok {
			continue
		}
		if r := k.resolve(c); r.plane != nil && r.code == "" {
			named = append(named, r.plane)
			if k.OptIn {
				possible = append(possible, r.plane)
			}
		}
	}
	return named, possible
}

func hasMesh(kinds []*detected) bool {
	return slices.ContainsFunc(kinds, func(k *detected) bool { return len(k.controlPlanes) > 0 })
}

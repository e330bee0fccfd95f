package discovery

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// meshOfNamespace is the mesh of a Service that only its annotation counts to
// one: the mesh that its namespace names; else the only one that may be meant;
// of several, the one without a name of its own.
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
		issue.Message = "it asks by annotation to be a destination, but its cluster has no mesh"
		issue.Hint = "install a mesh or remove the annotation " + snapshot.DiscoverServiceAnnotation
		if hasMesh(kinds) {
			issue.Message = "it asks by annotation to be a destination, but no mesh of its cluster looks into its namespace"
			issue.Hint = "take the namespace into a mesh, or remove the annotation " + snapshot.DiscoverServiceAnnotation
			issue.Cause = x.namespaceRef(s.Namespace)
		}
		x.Report(issue)
		return nil
	default:
		issue.Message = fmt.Sprintf("it asks by annotation to be a destination, but its cluster has %d meshes and neither a workload nor its namespace tells which; it is counted to %s",
			len(possible), possible[0].Mesh.Name)
		issue.Hint = "let it select a workload of the mesh that is meant"
		x.Report(issue)
		return possible[0]
	}
}

// candidates are the meshes that a namespace names, and those to which what is
// in it can belong.
func (x *Index) candidates(kinds []*detected, namespace string) (named, possible []*ControlPlane) {
	ns := x.Namespaces[namespace]
	for _, k := range kinds {
		if ns == nil || !k.OptIn {
			possible = append(possible, k.planes...)
		}
		if ns == nil || k.Namespace == nil {
			continue
		}
		c, says := k.Namespace(ns)
		if !says {
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
	return slices.ContainsFunc(kinds, func(k *detected) bool { return len(k.planes) > 0 })
}

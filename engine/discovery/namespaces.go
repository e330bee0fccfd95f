package discovery

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// meshOfNamespace is the mesh of a Service that only its annotation counts to
// one: the mesh that its namespace names; else the only one that may be meant;
// of several, the one without a name of its own.
func (w *world) meshOfNamespace(kinds []detector, s *corev1.Service) *mesh {
	named, possible := w.candidates(kinds, s.Namespace)
	if len(named) == 1 {
		return named[0]
	}
	var usual []*mesh
	for _, m := range possible {
		if m.usual {
			usual = append(usual, m)
		}
	}
	issue := snapshot.Issue{Code: snapshot.AmbiguousMesh, Severity: snapshot.Warning, Ref: w.serviceRef(s)}
	switch {
	case len(possible) == 1:
		return possible[0]
	case len(usual) == 1:
		return usual[0]
	case len(possible) == 0:
		issue.Code = snapshot.ServiceWithoutMesh
		issue.Message = "it asks by annotation to be a destination, but its cluster has no mesh"
		issue.Hint = "install a mesh or remove the annotation " + snapshot.DiscoverServiceAnnotation
		if hasMesh(kinds) {
			issue.Message = "it asks by annotation to be a destination, but no mesh of its cluster looks into its namespace"
			issue.Hint = "take the namespace into a mesh, or remove the annotation " + snapshot.DiscoverServiceAnnotation
		}
		w.report(issue)
		return nil
	default:
		issue.Message = fmt.Sprintf("it asks by annotation to be a destination, but its cluster has %d meshes and neither a workload nor its namespace tells which; it is counted to %s",
			len(possible), possible[0].object.Name)
		issue.Hint = "let it select a workload of the mesh that is meant"
		w.report(issue)
		return possible[0]
	}
}

// candidates are the meshes that a namespace names, and those to which what is
// in it can belong.
func (w *world) candidates(kinds []detector, namespace string) (named, possible []*mesh) {
	ns := w.namespaces[namespace]
	for i := range kinds {
		k := &kinds[i]
		if ns == nil || !k.listed {
			possible = append(possible, k.found...)
		}
		if ns == nil {
			continue
		}
		c, says := k.namespace(ns)
		if !says {
			continue
		}
		if v := k.settle(c); v.mesh != nil && v.code == "" {
			named = append(named, v.mesh)
			if k.listed {
				possible = append(possible, v.mesh)
			}
		}
	}
	return named, possible
}

func hasMesh(kinds []detector) bool {
	for i := range kinds {
		if len(kinds[i].found) > 0 {
			return true
		}
	}
	return false
}

package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about namespaces of which a control plane reads nothing. What runs there is no part of its mesh: callers do not know
// its services, and what is written there has no effect. A namespace that is not known is taken for one that is read.

// ignores reports whether a control plane reads nothing of a namespace, and notes that, to be reported.
func ignores(x *Index, p *ControlPlane, namespace string) bool {
	ns := x.Namespaces[namespace]
	if p == nil || p.Ignores == nil || ns == nil || !p.Ignores(ns) {
		return false
	}
	if !slices.Contains(p.ignored, namespace) {
		p.ignored = append(p.ignored, namespace)
	}
	return true
}

// reportIgnored reports the namespaces with workloads that would belong to a mesh, if its control plane read them.
func reportIgnored(x *Index, kinds []*detected) {
	const examples = 3
	for _, k := range kinds {
		for _, p := range k.controlPlanes {
			if len(p.ignored) == 0 {
				continue
			}
			slices.Sort(p.ignored)
			names := strings.Join(p.ignored[:min(len(p.ignored), examples)], ", ")
			if len(p.ignored) > examples {
				names += fmt.Sprintf(" and %d more", len(p.ignored)-examples)
			}
			x.Report(snapshot.Issue{
				Code: snapshot.NamespaceIgnored, Severity: snapshot.Warning, Ref: snapshot.RefOf(snapshot.Mesh, p.Mesh),
				Message: fmt.Sprintf("its control plane reads nothing of %s with workloads of the mesh (%s): callers do not know the services there, and no policy has an effect on them",
					snapshot.Count(len(p.ignored), "namespace"), names),
				Hint: p.ReadHint,
			})
		}
	}
}

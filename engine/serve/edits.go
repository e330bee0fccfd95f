package serve

import (
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// editsBetween is what users changed between two translations. After a start, nothing is
// known of what they changed before.
func editsBetween(before *snapshot.State, now *snapshot.Input) apply.Edits {
	edits := apply.Edits{Released: map[string]string{}}
	for _, c := range now.Management.KubernetesClusters {
		if code := c.Annotations[cluster.ReleaseAnnotation]; code != "" {
			edits.Released[c.Name] = code
		}
	}
	if before != nil {
		edits.Objects = userChanges(before.Input, now)
	}
	return edits
}

// userChanges are the users' objects that were created, edited or deleted.
func userChanges(before, now *snapshot.Input) map[snapshot.Ref]bool {
	out := map[snapshot.Ref]bool{}
	for kind, list := range now.Management.Lists {
		if isDerived(kind) {
			continue
		}
		eachChange(before.Management.List(kind), list, func(was, is snapshot.APIObject) {
			switch {
			case is == nil:
				out[snapshot.RefOf(kind, was)] = true
			case was == nil, was.GetGeneration() != is.GetGeneration(), was.GetUID() != is.GetUID():
				out[snapshot.RefOf(kind, is)] = true
			}
		})
	}
	for _, name := range goneClusters(before, now) {
		out[snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: now.Management.Namespace, Name: name}] = true
	}
	return out
}

// goneClusters are the clusters that are no longer registered, ascending.
func goneClusters(before, now *snapshot.Input) []string {
	registered := map[string]bool{}
	for _, c := range now.Clusters {
		registered[c.Name] = true
	}
	var out []string
	for _, c := range before.Clusters {
		if !registered[c.Name] {
			out = append(out, c.Name)
		}
	}
	return out
}

package serve

import (
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// editsBetween is what users changed between two translations. After a start, nothing is
// known of what they changed before.
func editsBetween(before *snapshot.State, now *snapshot.Input) apply.Edits {
	edits := apply.Edits{Released: map[string]string{}, Leaving: map[string]bool{}}
	for _, c := range now.Management.KubernetesClusters {
		if code := c.Annotations[cluster.ReleaseAnnotation]; code != "" {
			edits.Released[c.Name] = code
		}
	}
	for _, name := range now.Management.Leaving() {
		edits.Leaving[name] = true
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
		if !isDerived(kind) {
			addChanges(out, kind, "", before.Management.List(kind), list)
		}
	}
	for _, c := range now.Clusters {
		was := before.Cluster(c.Name)
		if was == nil || was == c || was.Frozen() || c.Frozen() {
			continue
		}
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.InClusters) {
			old, list := was.List(kind), c.List(kind)
			if list.Len() == 0 && old.Len() > 1 {
				continue // that all are gone at once may be because of their type
			}
			addChanges(out, kind, c.Name, old, list)
		}
	}
	for _, name := range goneClusters(before.Staying(), now.Staying()) {
		out[snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: now.Management.Namespace, Name: name}] = true
	}
	return out
}

// addChanges adds the objects of a kind that differ between two lists of a cluster, which is empty for the management cluster.
func addChanges(out map[snapshot.Ref]bool, kind snapshot.Kind, cluster string, before, now snapshot.ObjectList) {
	add := func(o snapshot.APIObject) {
		out[snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: o.GetNamespace(), Name: o.GetName()}] = true
	}
	eachChange(before, now, func(was, is snapshot.APIObject) {
		switch {
		case is == nil:
			add(was)
		case was == nil, was.GetGeneration() != is.GetGeneration(), was.GetUID() != is.GetUID():
			add(is)
		}
	})
}

// goneClusters are the clusters that are no longer registered, or leave, ascending.
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

package discovery

import (
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Distinct gives each object the name that it has among those of all clusters. The
// parts of several can join to one name: service a in namespace b-c of cluster d, and
// service a in namespace b of cluster c-d.
//
// An object that is stored keeps its name, and no other one gets that as long as it is
// stored, so that nobody who may make Services or clusters takes the name of another's:
// policies and VirtualMeshes may name it. Of several objects that are not stored, that
// of the first cluster by name gets the name, and in one cluster the first by namespace
// and name. The others get a hash as suffix, which they keep, and an issue.
//
// The argument is ascending by cluster. It is not modified, and returned as it is if no
// name changes.
func Distinct(all []*snapshot.Discovered, stored *StoredNames) []*snapshot.Discovered {
	if !mayClash(all) && !slices.ContainsFunc(all, stored.concern) {
		return all
	}
	n := namer{stored: stored, holders: map[snapshot.Kind]map[string]*claim{}}
	claims := make([][]*claim, len(all))
	for i, d := range all {
		claims[i] = claimsOf(d)
		for _, c := range claims[i] {
			n.keep(c)
		}
	}
	for _, list := range claims {
		for _, c := range list {
			n.assign(c)
		}
	}
	out := make([]*snapshot.Discovered, len(all))
	for i, d := range all {
		out[i] = n.rename(d, claims[i])
	}
	return out
}

// mayClash reports whether generated names can be the same: within a cluster, or, as
// all of them end in the name of their cluster, if the name of one cluster ends in that
// of another.
func mayClash(all []*snapshot.Discovered) bool {
	endings := make(map[string]bool, len(all))
	for _, d := range all {
		ending := "-" + snapshot.Sanitize(d.Cluster)
		if len(d.Clashes) > 0 || endings[ending] {
			return true
		}
		endings[ending] = true
	}
	for ending := range endings {
		for i := 1; i < len(ending); i++ {
			if ending[i] == '-' && endings[ending[i:]] {
				return true
			}
		}
	}
	return false
}

// claim is an object that needs a name.
type claim struct {
	kind   snapshot.Kind
	source snapshot.Ref
	// joined is what its parts join to, and given its name within its cluster.
	joined, given string
	// name is the one that it gets.
	name string
}

// claimsOf are the claims of a cluster. Objects that have within the cluster what their
// parts join to come before the others.
func claimsOf(d *snapshot.Discovered) []*claim {
	out := make([]*claim, 0, len(d.Meshes)+len(d.Workloads)+len(d.Destinations))
	var late []*claim
	add := func(kind snapshot.Kind, o object, source snapshot.Ref) {
		c := &claim{kind: kind, source: source, joined: o.GetName(), given: o.GetName()}
		if joined, clash := d.Clashes[snapshot.RefOf(kind, o)]; clash {
			c.joined = joined
			late = append(late, c)
			return
		}
		out = append(out, c)
	}
	for _, o := range d.Meshes {
		add(snapshot.Mesh, o, meshSource(o))
	}
	for _, o := range d.Workloads {
		add(snapshot.Workload, o, workloadSource(o))
	}
	for _, o := range d.Destinations {
		add(snapshot.Destination, o, destinationSource(o))
	}
	return append(out, late...)
}

// namer decides who gets which name.
type namer struct {
	stored *StoredNames
	// holders have the names of each kind.
	holders map[snapshot.Kind]map[string]*claim
}

func (n *namer) give(c *claim, name string) {
	if n.holders[c.kind] == nil {
		n.holders[c.kind] = map[string]*claim{}
	}
	n.holders[c.kind][name], c.name = c, name
}

// keep gives an object the name under which it is stored.
func (n *namer) keep(c *claim) {
	for _, name := range n.stored.names(c) {
		if n.holders[c.kind][name] == nil {
			n.give(c, name)
			return
		}
	}
}

// assign gives an object a name if it has none yet.
func (n *namer) assign(c *claim) {
	if c.name != "" {
		return
	}
	name := c.joined
	if n.taken(c, name) {
		name = c.given
	}
	for n.taken(c, name) {
		name = hashedName(name, c.source)
	}
	n.give(c, name)
}

// taken reports whether another object has a name, or is stored under it.
func (n *namer) taken(c *claim, name string) bool {
	source, stored := n.stored.source(c.kind, name)
	return n.holders[c.kind][name] != nil || stored && source != c.source
}

// issue says why an object is not called what its parts join to; nil if it is, or could
// be and keeps its name.
func (n *namer) issue(c *claim) *snapshot.Issue {
	source, taken := n.stored.source(c.kind, c.joined)
	if holder := n.holders[c.kind][c.joined]; holder != nil {
		source, taken = holder.source, true
	}
	if c.name == c.joined || !taken {
		return nil
	}
	cause := sourceRef(c.kind, c.joined, source)
	return &snapshot.Issue{
		Code: snapshot.NameCollision, Severity: snapshot.Warning, Ref: sourceRef(c.kind, c.joined, c.source), Cause: cause,
		Message: fmt.Sprintf("its %s would be called %s, as that of %s is; it is called %s instead", c.kind, c.joined, cause, c.name),
		Hint:    "rename one of the two if you need the name",
	}
}

// controllerKinds are the kinds of the sources of Workloads.
var controllerKinds = []snapshot.Kind{snapshot.Deployment, snapshot.DaemonSet, snapshot.StatefulSet}

// sourceRef refers to the source of an object: what it does not say is in the name that
// its parts join to, unless that was too long.
func sourceRef(kind snapshot.Kind, joined string, source snapshot.Ref) snapshot.Ref {
	switch kind {
	case snapshot.Mesh:
		if name, ok := strings.CutSuffix(joined, "-"+objectName(source.Namespace, source.Cluster)); ok {
			source.Kind, source.Name = snapshot.Deployment, name
		}
	case snapshot.Workload:
		for i, ending := range nameEndings(kind, source.Cluster) {
			if strings.HasSuffix(joined, ending) {
				source.Kind = controllerKinds[i]
			}
		}
	default:
		if source.Cluster != "" { // else a user wrote the Destination
			source.Kind = snapshot.Service
		}
	}
	return source
}

// rename returns d with the names that its objects got; d itself if they have them.
func (n *namer) rename(d *snapshot.Discovered, claims []*claim) *snapshot.Discovered {
	names := map[snapshot.Ref]string{} // the new ones
	var issues []snapshot.Issue
	for _, c := range claims {
		if c.name != c.given {
			names[snapshot.Ref{Kind: c.kind, Name: c.given}] = c.name
		}
		if issue := n.issue(c); issue != nil {
			issues = append(issues, *issue)
		}
	}
	if len(names)+len(issues) == 0 {
		return d
	}
	now := func(kind snapshot.Kind, name string) string {
		if changed, ok := names[snapshot.Ref{Kind: kind, Name: name}]; ok {
			return changed
		}
		return name
	}
	out := *d
	out.Meshes = replace(d.Meshes, func(o *discoveryv1.Mesh) *discoveryv1.Mesh {
		name := now(snapshot.Mesh, o.Name)
		if name == o.Name {
			return o
		}
		m := *o
		m.Name = name
		return &m
	})
	out.Workloads = replace(d.Workloads, func(o *discoveryv1.Workload) *discoveryv1.Workload {
		name, mesh := now(snapshot.Workload, o.Name), now(snapshot.Mesh, o.Spec.Mesh.Name)
		if name == o.Name && mesh == o.Spec.Mesh.Name {
			return o
		}
		wl := *o
		wl.Name, wl.Spec.Mesh.Name = name, mesh
		return &wl
	})
	out.Destinations = replace(d.Destinations, func(o *discoveryv1.Destination) *discoveryv1.Destination {
		name, mesh := now(snapshot.Destination, o.Name), now(snapshot.Mesh, o.Spec.Mesh.Name)
		if name == o.Name && mesh == o.Spec.Mesh.Name {
			return o
		}
		dest := *o
		dest.Name, dest.Spec.Mesh = name, &commonv1.ObjectRef{Name: mesh, Namespace: o.Spec.Mesh.Namespace}
		return &dest
	})
	for _, issue := range d.Issues {
		if issue.Target.Kind == snapshot.Mesh {
			issue.Target.Name = now(snapshot.Mesh, issue.Target.Name)
		}
		issues = append(issues, issue)
	}
	out.Issues = issues
	slices.SortFunc(out.Issues, snapshot.Issue.Compare)
	return &out
}

// replace is a new list, ascending by name, of what change makes of the objects.
func replace[T named](list []T, change func(T) T) []T {
	out := make([]T, len(list))
	for i, o := range list {
		out[i] = change(o)
	}
	slices.SortFunc(out, byName)
	return out
}

package policy

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Values of exportTo that are no names of namespaces (istio.io, VirtualService.exportTo).
const (
	ownNamespace  = "."
	allNamespaces = "*"
	noNamespace   = "~"
)

// callerNamespaces are the namespaces of callers.
type callerNamespaces struct {
	all   bool
	names []string // ascending
}

func (n callerNamespaces) none() bool { return !n.all && len(n.names) == 0 }

func (n callerNamespaces) includes(name string) bool {
	return n.all || slices.Contains(n.names, name)
}

// only is one of the namespaces, or none.
func (n callerNamespaces) only(name string) callerNamespaces {
	if !n.includes(name) {
		return callerNamespaces{}
	}
	return callerNamespaces{names: []string{name}}
}

// among are those that are also in a list; nil stands for all namespaces. If they are
// all, they stay all: nothing has to be said about them.
func (n callerNamespaces) among(list []string) callerNamespaces {
	if n.all || list == nil {
		return n
	}
	return callerNamespaces{names: slices.DeleteFunc(slices.Clone(n.names), func(name string) bool { return !slices.Contains(list, name) })}
}

// phrase restricts a sentence to the callers.
func (n callerNamespaces) phrase() string {
	const few = 3
	switch {
	case n.all:
		return ""
	case len(n.names) == 1:
		return ", for callers in namespace " + n.names[0]
	case len(n.names) > few:
		return fmt.Sprintf(", for callers in namespaces %s and %d more", strings.Join(n.names[:few], ", "), len(n.names)-few)
	}
	return ", for callers in namespaces " + strings.Join(n.names, ", ")
}

// seenBy are the namespaces whose callers see an object in a mesh.
func (o handWrittenObject) seenBy(mesh *snapshot.MeshPlan) callerNamespaces {
	exportTo := o.exportTo
	if len(exportTo) == 0 {
		exportTo = defaultExportTo(mesh.ExportTo, o.ref.Kind)
	}
	switch {
	case len(exportTo) == 0 || slices.Contains(exportTo, allNamespaces):
		return callerNamespaces{all: true}
	case slices.Contains(exportTo, noNamespace):
		return callerNamespaces{}
	}
	names := slices.Clone(exportTo)
	for i, name := range names {
		if name == ownNamespace {
			names[i] = o.ref.Namespace
		}
	}
	slices.Sort(names)
	return callerNamespaces{names: slices.Compact(names)}
}

// defaultExportTo is the exportTo of objects that have none. Of the values for
// DestinationRules Istio reads one (PushContext.setDestinationRules).
func defaultExportTo(settings *discoveryv1.IstioExportTo, kind snapshot.Kind) []string {
	if settings == nil {
		return nil
	}
	switch kind {
	case snapshot.VirtualService:
		return settings.VirtualServices
	case snapshot.ServiceEntry:
		return settings.Services
	}
	if slices.Contains(settings.DestinationRules, ownNamespace) {
		return []string{ownNamespace}
	}
	return nil
}

// hostPlace is a host as a mesh knows it.
type hostPlace struct {
	host string
	mesh *snapshot.MeshPlan
	// home is the namespace of the service there, which for one of another cluster is
	// that of its ServiceEntry.
	home string
	// owner is the namespace of the service to which a policy applies; empty if it is of
	// another cluster, where a namespace of the same name may be of somebody else.
	owner string
}

// place is the host of a Destination for the viewer; its host is empty if the viewer
// does not know it.
func (c *fieldContext) place(i int) hostPlace {
	at := hostPlace{mesh: c.viewer, home: c.viewer.Namespace}
	at.host, _ = c.env.topology.Host(i, c.viewer)
	if service := c.env.inv.Destinations[i].Spec.KubeService.Ref; service.ClusterName == c.viewer.Cluster {
		at.home = service.Namespace
	}
	if service := c.env.inv.Destinations[c.index].Spec.KubeService.Ref; service.ClusterName == c.viewer.Cluster {
		at.owner = service.Namespace
	}
	return at
}

// decides reports whether an object in a namespace may decide about what the management
// plane does for a host: whoever owns the service or the mesh may, and no tenant may
// about what others rely on.
func (at hostPlace) decides(namespace string) bool {
	return namespace == at.mesh.RootNamespace || namespace == at.mesh.Namespace || namespace == at.owner
}

// ruleFor are the callers to whom a DestinationRule applies. Istio takes the rules of
// the first of three namespaces that has any: the caller's, the service's, and the root
// namespace, where callers of the root namespace begin with the second, but for rules
// that are for them alone (PushContext.destinationRule). Hidden is set if a rule of the
// root namespace no longer applies to them, because one is generated for the service.
func (o handWrittenObject) ruleFor(at hostPlace) (to callerNamespaces, hidden bool) {
	to = o.seenBy(at.mesh)
	root := at.mesh.RootNamespace
	switch o.ref.Namespace {
	case at.home:
		return to, false
	case root:
		return to, to.all || !slices.Equal(to.names, []string{root})
	}
	return to.only(o.ref.Namespace), false
}

// sourceNamespaces are the namespaces of the viewer's callers to which the routes of a
// policy apply; nil for all.
func (c *fieldContext) sourceNamespaces() []string {
	out := []string{}
	from, _ := sources(c.spec, c.viewer.Cluster)
	for _, m := range from {
		if len(m.Namespaces) == 0 {
			return nil
		}
		out = append(out, m.Namespaces...)
	}
	return out
}

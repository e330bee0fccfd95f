package istio

import (
	"fmt"
	"slices"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"

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
	if !o.of(mesh) || o.in != nil && isIgnored(mesh, o.in) {
		return callerNamespaces{}
	}
	exportTo := o.exportTo
	if len(exportTo) == 0 {
		exportTo = defaultExportTo(mesh.ExportTo, o.ref.Kind)
	}
	return namespacesOf(exportTo, o.ref.Namespace)
}

// namespacesOf are those of an exportTo of an object in a namespace. One that is empty says nothing.
func namespacesOf(exportTo []string, own string) callerNamespaces {
	switch {
	case len(exportTo) == 0 || slices.Contains(exportTo, allNamespaces):
		return callerNamespaces{all: true}
	case slices.Contains(exportTo, noNamespace):
		return callerNamespaces{}
	}
	names := slices.Clone(exportTo)
	for i, name := range names {
		if name == ownNamespace {
			names[i] = own
		}
	}
	slices.Sort(names)
	return callerNamespaces{names: slices.Compact(names)}
}

// unknown says why callers in a namespace do not know a service: its annotation, or the settings of its mesh (istio.io:
// MeshConfig.defaultServiceExportTo). Of what generated ServiceEntries make known, the settings decide alone
// (MeshConfig.serviceEntryVisibility).
func unknown(mesh *snapshot.MeshPlan, service *discoveryv1.KubeService, namespace string) string {
	if service == nil {
		return unknownEntries(mesh, namespace)
	}
	exportTo, by := serviceExportTo(mesh, service)
	to := namespacesOf(exportTo, service.Ref.Namespace)
	if to.includes(namespace) {
		return ""
	}
	whom := " to nobody"
	if len(to.names) > 0 {
		whom = " in namespace " + strings.Join(to.names[:min(len(to.names), 3)], ", ") + " only"
	}
	return by + " makes it known" + whom
}

// unknownEntries says why callers in a namespace do not know the ServiceEntries of the namespace of a mesh; empty if they do, or if
// no callers are meant and some do.
func unknownEntries(mesh *snapshot.MeshPlan, namespace string) string {
	text := "serviceEntryVisibility in the meshConfig of mesh " + mesh.Ref.Name + " makes the ServiceEntries of namespace " + mesh.Namespace + " known "
	switch spec := specOf(mesh); {
	case spec == nil || spec.ServiceEntryVisibility == "":
		return ""
	case spec.ServiceEntryVisibility == meshconfig.ServiceEntryVisibility_NONE.String():
		return text + "to nobody"
	case namespace == mesh.Namespace:
		return ""
	}
	return text + "in that namespace only"
}

// isIgnored reports whether a control plane reads nothing of a namespace.
func isIgnored(mesh *snapshot.MeshPlan, ns *corev1.Namespace) bool {
	spec := specOf(mesh)
	return spec != nil && !selects(spec.DiscoverySelectors, ns)
}

// specOf is what is known of a mesh; nil if that is nothing.
func specOf(mesh *snapshot.MeshPlan) *discoveryv1.IstioMesh {
	if mesh.Mesh == nil {
		return nil
	}
	return mesh.Mesh.Spec.Istio
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

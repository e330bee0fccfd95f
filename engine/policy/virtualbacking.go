package policy

import (
	"slices"
	"strconv"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// findDestination is the next step wherever a service was not found.
const findDestination = "correct the reference; `meshctl describe destination` lists the services there are"

// back finds the services behind a VirtualDestination.
func (b *virtualBinding) back(w *world) {
	spec := &b.source.Spec
	switch {
	case spec.Static != nil:
		b.backStatic(w, spec.Static)
	case spec.Localized != nil:
		b.backLocalized(w, spec.Localized)
	}
	if len(b.backing) == 0 {
		b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.SelectsNothing,
			"name services that exist and have the port; `meshctl describe destination` lists the services there are",
			"no service stands behind it"))
	}
}

func (b *virtualBinding) backStatic(w *world, static *enterprisev1beta1.StaticDestinations) {
	for i, d := range static.Destinations {
		field := "static.destinations[" + strconv.Itoa(i) + "]"
		if d.KubeService == nil {
			b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set its kubeService", "%s names no service", field))
			continue
		}
		at, ok := w.inv.IndexOfService(*d.KubeService)
		switch {
		case !ok:
			b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.DestinationNotFound, findDestination,
				"%s: service %s was not discovered", field, inventory.ServiceName(*d.KubeService)))
		case slices.Contains(b.selected, at):
			b.issue(inventory.DestinationRef(w.inv.Destinations[at]), snapshot.Warnf(snapshot.FieldInvalid, "name each service once",
				"%s: service %s is named above already", field, inventory.ServiceName(*d.KubeService)))
		default:
			b.add(w, at, field)
		}
	}
}

// backLocalized selects among the services of the meshes that the exporting
// meshes are joined with. Of several in one cluster it takes none: which one
// was meant is not for us to guess.
func (b *virtualBinding) backLocalized(w *world, localized *enterprisev1beta1.LocalizedDestinations) {
	selected, missing := w.inv.SelectDestinations(localized.DestinationSelectors)
	for _, m := range missing {
		b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.DestinationNotFound, findDestination,
			"localized.destinationSelectors: service %s was not discovered", inventory.ServiceName(m)))
	}
	byCluster := map[string][]int{}
	for _, at := range selected {
		d := w.inv.Destinations[at]
		if b.joined(w.topology.MeshOf(d)) || named(localized.DestinationSelectors, d) {
			cluster := d.Spec.KubeService.Ref.ClusterName
			byCluster[cluster] = append(byCluster[cluster], at)
		}
	}
	for _, at := range selected {
		d := w.inv.Destinations[at]
		switch same := byCluster[d.Spec.KubeService.Ref.ClusterName]; {
		case !slices.Contains(same, at):
		case len(same) == 1:
			b.add(w, at, "localized.destinationSelectors")
		case same[0] == at:
			b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.AmbiguousBacking,
				"narrow localized.destinationSelectors until it selects one there; a label on the Service that is meant helps",
				"%d services of cluster %s are selected, such as %s and %s; none of them is used", len(same),
				d.Spec.KubeService.Ref.ClusterName, inventory.ServiceName(d.Spec.KubeService.Ref), inventory.ServiceName(w.inv.Destinations[same[1]].Spec.KubeService.Ref)))
		}
	}
	b.checkDirectives(localized.FailoverDirectives)
}

// named reports whether a selector refers to a Destination by name.
func named(selectors []commonv1.DestinationSelector, d *discoveryv1.Destination) bool {
	return slices.ContainsFunc(selectors, func(s commonv1.DestinationSelector) bool {
		return s.KubeServiceRefs != nil && slices.Contains(s.KubeServiceRefs.Services, d.Spec.KubeService.Ref)
	})
}

// joined reports whether a mesh is one that callers may be in, or in one
// VirtualMesh with such a mesh.
func (b *virtualBinding) joined(mesh *snapshot.MeshPlan) bool {
	return mesh != nil && slices.ContainsFunc(b.exported, func(m *snapshot.MeshPlan) bool {
		return m == mesh || (m.VirtualMesh != nil && m.VirtualMesh == mesh.VirtualMesh)
	})
}

// add puts a service behind the VirtualDestination, if it has the port.
func (b *virtualBinding) add(w *world, at int, field string) {
	d := w.inv.Destinations[at]
	service := d.Spec.KubeService
	mesh := w.topology.MeshOf(d)
	if mesh == nil {
		b.issue(inventory.DestinationRef(d), snapshot.Errorf(snapshot.NotFederated, "name a service whose pods have the sidecars of a mesh",
			"service %s is in no mesh", inventory.ServiceName(service.Ref)))
		return
	}
	port, problem := b.targetPort(service)
	if problem != nil {
		b.issue(inventory.DestinationRef(d), *problem)
		return
	}
	region := service.Region
	if region == "" {
		region = regionOf(mesh)
	}
	b.selected = append(b.selected, at)
	b.backing = append(b.backing, &snapshot.BackingPlan{
		Ref: inventory.DestinationRef(d), Destination: d, Mesh: mesh, Port: port, Region: region, Origin: snapshot.Origin{Ref: b.ref, Field: field},
	})
}

// targetPort is the port of a service that takes what arrives at the
// VirtualDestination's: the one named, or else the one of that number.
func (b *virtualBinding) targetPort(service *discoveryv1.KubeService) (discoveryv1.KubeServicePort, *snapshot.Issue) {
	asked := b.source.Spec.Port
	wanted := func(p discoveryv1.KubeServicePort) bool { return p.Port == asked.Number }
	what := "port " + strconv.FormatUint(uint64(asked.Number), 10)
	hint := "set port.targetNumber or port.targetName to the service's own port"
	switch {
	case asked.TargetName != "":
		wanted = func(p discoveryv1.KubeServicePort) bool { return p.Name == asked.TargetName }
		what, hint = "port named "+strconv.Quote(asked.TargetName), "correct port.targetName, or give the Service a port of that name"
	case asked.TargetNumber != 0:
		wanted = func(p discoveryv1.KubeServicePort) bool { return p.Port == asked.TargetNumber }
		what, hint = "port "+strconv.FormatUint(uint64(asked.TargetNumber), 10), "correct port.targetNumber, or give the Service that port"
	}
	none := func(code snapshot.Code, format string, args ...any) (discoveryv1.KubeServicePort, *snapshot.Issue) {
		issue := snapshot.Errorf(code, hint+"; without it the service is left out", format, args...)
		return discoveryv1.KubeServicePort{}, &issue
	}
	at := slices.IndexFunc(service.Ports, wanted)
	if at < 0 {
		return none(snapshot.FieldInvalid, "service %s has no %s; it has %s", inventory.ServiceName(service.Ref), what, portList(service.Ports))
	}
	port := service.Ports[at]
	if port.Protocol != "" && port.Protocol != "TCP" {
		return none(snapshot.FieldUnsupported, "%s of service %s takes %s, which cannot fail over", what, inventory.ServiceName(service.Ref), port.Protocol)
	}
	return port, nil
}

// regionOf is where a mesh says that it is; may be empty.
func regionOf(m *snapshot.MeshPlan) string {
	switch spec := &m.Mesh.Spec; {
	case spec.Istio != nil:
		return spec.Istio.Installation.Region
	case spec.Osm != nil:
		return spec.Osm.Installation.Region
	}
	return ""
}

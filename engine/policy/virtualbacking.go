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

// findDestination is the hint if a service was not found.
const findDestination = "correct the reference; `meshctl describe destination` lists the services there are"

// addBacking finds the services behind the VirtualDestination.
func (v *virtualDestination) addBacking(env *environment) {
	spec := &v.source.Spec
	field := "static.destinations"
	switch {
	case spec.Static != nil:
		v.addStatic(env, spec.Static)
	case spec.Localized != nil:
		field = "localized.destinationSelectors"
		v.addLocalized(env, spec.Localized)
	}
	if len(v.backing) == 0 {
		v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.SelectsNothing,
			"name services that exist and have the port; `meshctl describe destination` lists the services there are",
			"there is no service behind it").At(field))
	}
}

func (v *virtualDestination) addStatic(env *environment, static *enterprisev1beta1.StaticDestinations) {
	for i, d := range static.Destinations {
		field := "static.destinations"
		if v.ref.Cluster == "" { // else some are left out, see boundVirtualDestination
			field += "[" + strconv.Itoa(i) + "]"
		}
		if d.KubeService == nil {
			v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set its kubeService", "%s names no service", field).At(field))
			continue
		}
		at, ok := env.inv.IndexOfService(*d.KubeService)
		switch {
		case !ok:
			v.addIssue(snapshot.Ref{}, env.inv.NotDiscovered(field, *d.KubeService, findDestination))
		case slices.Contains(v.selected, at):
			v.addIssue(inventory.DestinationRef(env.inv.Destinations[at]), snapshot.Warnf(snapshot.FieldInvalid, "list each service once",
				"%s: service %s is listed twice", field, inventory.ServiceName(*d.KubeService)).At(field))
		default:
			v.add(env, at, field)
		}
	}
}

// addLocalized selects services of the meshes that are joined with the exporting
// meshes. If several in one cluster match it takes none of them, because it cannot
// know which one was meant.
func (v *virtualDestination) addLocalized(env *environment, localized *enterprisev1beta1.LocalizedDestinations) {
	selected, missing := env.inv.SelectDestinations(localized.DestinationSelectors)
	for _, m := range missing {
		v.addIssue(snapshot.Ref{}, env.inv.NotDiscovered("localized.destinationSelectors", m, findDestination))
	}
	byCluster := map[string][]int{}
	for _, at := range selected {
		d := env.inv.Destinations[at]
		if v.reachable(env.topology.MeshOf(d)) || named(localized.DestinationSelectors, d) {
			cluster := d.Spec.KubeService.Ref.ClusterName
			byCluster[cluster] = append(byCluster[cluster], at)
		}
	}
	for _, at := range selected {
		d := env.inv.Destinations[at]
		switch same := byCluster[d.Spec.KubeService.Ref.ClusterName]; {
		case !slices.Contains(same, at):
		case len(same) == 1:
			v.add(env, at, "localized.destinationSelectors")
		case same[0] == at:
			v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.AmbiguousBacking,
				"narrow localized.destinationSelectors so that it selects one of them, for example by a label",
				"%d services of cluster %s are selected, such as %s and %s; none of them is used", len(same),
				d.Spec.KubeService.Ref.ClusterName, inventory.ServiceName(d.Spec.KubeService.Ref), inventory.ServiceName(env.inv.Destinations[same[1]].Spec.KubeService.Ref)).
				At("localized.destinationSelectors"))
		}
	}
	v.checkDirectives(localized.FailoverDirectives)
}

// named reports whether a selector references a Destination by name.
func named(selectors []commonv1.DestinationSelector, d *discoveryv1.Destination) bool {
	return slices.ContainsFunc(selectors, func(s commonv1.DestinationSelector) bool {
		return s.KubeServiceRefs != nil && slices.Contains(s.KubeServiceRefs.Services, d.Spec.KubeService.Ref)
	})
}

// reachable reports whether a mesh is one of the caller's meshes, or in one
// VirtualMesh with one of them.
func (v *virtualDestination) reachable(mesh *snapshot.MeshPlan) bool {
	return mesh != nil && slices.ContainsFunc(v.meshes, func(m *snapshot.MeshPlan) bool {
		return m == mesh || (m.VirtualMesh != nil && m.VirtualMesh == mesh.VirtualMesh)
	})
}

// add adds a service, if it has the port.
func (v *virtualDestination) add(env *environment, at int, field string) {
	d := env.inv.Destinations[at]
	service := d.Spec.KubeService
	if v.ref.Cluster != "" && !reachOf(v.ref).includes(service.Ref) {
		return // bounded references and selectors find no others; this is to be sure
	}
	mesh := env.topology.MeshOf(d)
	if mesh == nil {
		v.addIssue(inventory.DestinationRef(d), snapshot.Errorf(snapshot.NotFederated, "use a service whose pods have sidecars",
			"service %s is in no mesh", inventory.ServiceName(service.Ref)).At(field))
		return
	}
	if snapshot.AllAmbient(service) {
		v.addIssue(inventory.DestinationRef(d), snapshot.Errorf(snapshot.AmbientMode, "use a service whose pods have sidecars; until then this one is not used",
			"service %s: %s, for which nothing is translated yet", inventory.ServiceName(service.Ref), snapshot.AmbientText(service)).At(field))
		return
	}
	port, problem := v.targetPort(service)
	if problem != nil {
		v.addIssue(inventory.DestinationRef(d), *problem)
		return
	}
	region := service.Region
	if region == "" {
		region = regionOf(mesh)
	}
	v.selected = append(v.selected, at)
	v.backing = append(v.backing, &snapshot.BackingPlan{
		Ref: inventory.DestinationRef(d), Destination: d, Mesh: mesh, Port: port, Region: region, Origin: snapshot.Origin{Ref: v.ref, Field: field},
	})
}

// targetPort is the port of a service for requests to the VirtualDestination: the one
// it names, or else the one with the same number.
func (v *virtualDestination) targetPort(service *discoveryv1.KubeService) (discoveryv1.KubeServicePort, *snapshot.Issue) {
	asked := v.source.Spec.Port
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
		issue := snapshot.Errorf(code, hint+"; until then the service is not used", format, args...).At("port")
		return discoveryv1.KubeServicePort{}, &issue
	}
	at := slices.IndexFunc(service.Ports, wanted)
	if at < 0 {
		return none(snapshot.FieldInvalid, "service %s has no %s; it has %s", inventory.ServiceName(service.Ref), what, portList(service.Ports))
	}
	port := service.Ports[at]
	if port.Protocol != "" && port.Protocol != "TCP" {
		return none(snapshot.FieldUnsupported, "%s of service %s has protocol %s, which cannot fail over", what, inventory.ServiceName(service.Ref), port.Protocol)
	}
	return port, nil
}

// regionOf is the region of a mesh; may be empty.
func regionOf(m *snapshot.MeshPlan) string {
	_, installation := snapshot.MeshType(&m.Mesh.Spec)
	return installation.Region
}

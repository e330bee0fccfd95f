package snapshot

import (
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// This file says in words what pods in ambient mode mean. Nothing is translated for them: the proxy of their node enforces
// AuthorizationPolicies with a selector, by identities and ports, and nothing else that is written for sidecars.

// AmbientHints are next steps about pods in ambient mode, with the names that the mesh has for what is to be done.
type AmbientHints struct {
	// Policy is for a policy that does not hold for them.
	Policy string
	// Identity is for callers that present none, because their callees do not take it.
	Identity string
	// Federation is for services that other clusters do not reach.
	Federation string
	// MakeWaypoint is for a waypoint that is not there, ServeServices for one that takes no traffic for services, and ShareWaypoint for one
	// that other clusters do not get as they do its service.
	MakeWaypoint, ServeServices, ShareWaypoint string
}

// Ambient are the next steps of the kind of a mesh; empty ones if it has no such mode, or if there is no mesh.
func (m *MeshPlan) Ambient() AmbientHints {
	if m == nil || m.Dialect == nil || m.Dialect.Ambient == nil {
		return AmbientHints{}
	}
	return *m.Dialect.Ambient
}

// AllAmbient reports whether no pod of a Service takes what is written for sidecars and gateways: all are in ambient mode, or part of its
// data plane.
func AllAmbient(service *discoveryv1.KubeService) bool {
	return service != nil && service.Ambient != nil && !service.Ambient.Partly
}

// AmbientCount is how many of the ready endpoints of a Service are in ambient mode.
func AmbientCount(service *discoveryv1.KubeService) (n int) {
	for i := range service.EndpointSubsets {
		if service.EndpointSubsets[i].Ambient {
			n += len(service.EndpointSubsets[i].Endpoints)
		}
	}
	return n
}

// AmbientText says in a clause which part of a Service is in ambient mode, in which namespace; empty if none is.
func AmbientText(service *discoveryv1.KubeService) string {
	if service == nil || service.Ambient == nil {
		return ""
	}
	in := " (namespace " + service.Ref.Namespace + ")"
	all, _ := EndpointCounts(service)
	switch n := AmbientCount(service); {
	case service.Ambient.Mode == discoveryv1.ModeWaypoint:
		return "it is a waypoint" + in
	case service.Ambient.Mode == discoveryv1.ModeHBONEGateway:
		return "it is an east-west gateway of ambient mode" + in
	case service.Ambient.Mode == discoveryv1.ModePending && service.Ambient.Partly:
		return "labels ask for ambient mode for some of its pods" + in
	case service.Ambient.Mode == discoveryv1.ModePending:
		return "labels ask for ambient mode for its pods" + in
	case !service.Ambient.Partly:
		return "its pods are in ambient mode" + in
	case n == 1:
		return fmt.Sprintf("1 of its %d endpoints is in ambient mode%s", all, in)
	case n > 1:
		return fmt.Sprintf("%d of its %d endpoints are in ambient mode%s", n, all, in)
	}
	return "some of its pods are in ambient mode" + in
}

// WaypointText says in a clause which waypoint a Service asks for, and whether it is there; empty if it asks for none.
func WaypointText(service *discoveryv1.KubeService) string {
	if service == nil || service.Ambient == nil || service.Ambient.Waypoint == nil {
		return ""
	}
	w := service.Ambient.Waypoint
	name := w.Namespace + "/" + w.Name
	switch {
	case w.State == discoveryv1.WaypointMissing:
		return name + ", which is not there"
	case w.State == discoveryv1.WaypointNotReady:
		return name + ", none of whose pods is ready"
	case !w.TakesServices():
		return name + ", which takes no traffic for services, but for " + w.For
	}
	return name + ", ready"
}

// HasWaypoint reports whether requests to a Service may go through a waypoint. One that was ready once stays in use (Istio,
// ambient.gatewayToWaypointTransform).
func HasWaypoint(service *discoveryv1.KubeService) bool {
	return service != nil && service.Ambient != nil && service.Ambient.Waypoint != nil && service.Ambient.Waypoint.TakesServices() &&
		service.Ambient.Waypoint.State != discoveryv1.WaypointMissing
}

// NamespacesText names the first of some namespaces, and counts the others.
func NamespacesText(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	const first = 3
	text := "namespace "
	if len(names) > 1 {
		text = "namespaces "
	}
	for i, name := range names[:min(first, len(names))] {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if more := len(names) - first; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

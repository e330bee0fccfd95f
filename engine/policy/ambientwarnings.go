package policy

import (
	"cmp"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ambientWarnings are about services with pods in ambient mode, whatever policies there are: waypoints that are not usable, and what
// users wrote that means something else there. It looks at all only if something of that changed.
func ambientWarnings(r *reconciler) []snapshot.Issue {
	if r.plan != nil && !r.rebuilt && !r.handWrittenChanged {
		return r.plan.Warnings
	}
	var out []snapshot.Issue
	global, meant := map[string][]*discoveryv1.Destination{}, map[snapshot.Intersection][]*discoveryv1.Destination{}
	for _, d := range r.env.inv.Destinations {
		k := d.Spec.KubeService
		if k == nil || k.Ambient == nil || !k.Ambient.Mode.IsAmbient() {
			continue
		}
		if k.Ambient.Global {
			name := k.Ref.Namespace + "/" + k.Ref.Name
			global[name] = append(global[name], d)
		}
		mesh := r.env.topology.MeshOf(d)
		if issue := waypointIssue(k, mesh.Ambient()); issue.Code != "" {
			out = append(out, issue.On(inventory.ServiceRef(d), inventory.DestinationRef(d)))
		}
		if mesh == nil {
			continue
		}
		if hand := r.env.byHand.of[mesh.Cluster].on(mesh); hand != nil {
			for _, x := range hand.InAmbient(&snapshot.HostQuery{Host: r.env.inv.LocalFQDN(k.Ref), Mesh: mesh, Home: k.Ref.Namespace}, k) {
				meant[x] = append(meant[x], d)
			}
		}
	}
	for x, on := range meant {
		out = append(out, otherwiseMeant(x, on)...)
	}
	for _, same := range global {
		out = append(out, unlikeWaypoints(same)...)
	}
	slices.SortFunc(out, snapshot.Issue.Compare)
	return out
}

// otherwiseMeant says on the first services that an object means something else for them, and of others how many there are: one in the
// root namespace is for all.
func otherwiseMeant(x snapshot.Intersection, on []*discoveryv1.Destination) (out []snapshot.Issue) {
	const first = 10
	for _, d := range on[:min(first, len(on))] {
		out = append(out, snapshot.Warnf(snapshot.AmbientMode, x.Hint, "%s; %s", x.What, snapshot.AmbientText(d.Spec.KubeService)).On(x.Ref, inventory.DestinationRef(d)))
	}
	if len(on) <= first {
		return out
	}
	namespaces := make([]string, 0, len(on)-first)
	for _, d := range on[first:] {
		namespaces = append(namespaces, d.Spec.KubeService.Ref.Namespace)
	}
	return append(out, snapshot.Warnf(snapshot.AmbientMode, x.Hint, "%s; so it does for %s more with pods in ambient mode (%s)",
		x.What, snapshot.Count(len(namespaces), "service"), snapshot.NamespacesText(namespaces)).On(x.Ref, snapshot.Ref{}))
}

// waypointIssue says that the waypoint for which a Service asks does not decide about it; zero if it does, or if it asks for none.
func waypointIssue(k *discoveryv1.KubeService, hints snapshot.AmbientHints) snapshot.Issue {
	w := k.Ambient.Waypoint
	if w == nil {
		return snapshot.Issue{}
	}
	text := "asks for waypoint " + snapshot.WaypointText(k)
	switch {
	case w.State == discoveryv1.WaypointMissing:
		return snapshot.Warnf(snapshot.WaypointUnusable, hints.MakeWaypoint,
			"%s: requests of callers in ambient mode go past it, so that no rule about requests holds", text)
	case w.State == discoveryv1.WaypointNotReady:
		return snapshot.Warnf(snapshot.WaypointUnusable, "look at its pods",
			"%s: requests of callers in ambient mode fail if it was ready before, or else go past it", text)
	case !w.TakesServices():
		return snapshot.Warnf(snapshot.WaypointUnusable, hints.ServeServices,
			"%s: requests to the service go past it, so that no rule about requests holds", text)
	case k.Ambient.Global && !w.Global:
		return snapshot.Warnf(snapshot.WaypointUnusable, hints.ShareWaypoint,
			"waypoint %s/%s is not given to other clusters, as the service is: callers there may go past it", w.Namespace, w.Name)
	}
	return snapshot.Issue{}
}

// unlikeWaypoints warns of services of one name that clusters give to each other, behind waypoints of different names.
func unlikeWaypoints(same []*discoveryv1.Destination) (out []snapshot.Issue) {
	name := func(d *discoveryv1.Destination) string {
		if w := d.Spec.KubeService.Ambient.Waypoint; w != nil {
			return w.Namespace + "/" + w.Name
		}
		return ""
	}
	slices.SortFunc(same, func(a, b *discoveryv1.Destination) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range same[1:] {
		if name(d) != name(same[0]) {
			out = append(out, snapshot.Warnf(snapshot.WaypointUnusable, "give the waypoints of a service the same name and namespace in all clusters",
				"it is one service with that of cluster %s, which is behind waypoint %s, and this one is behind %s: which of them decides is not known",
				same[0].Spec.KubeService.Ref.ClusterName, cmp.Or(name(same[0]), "none"), cmp.Or(name(d), "none")).
				CausedBy(inventory.ServiceRef(same[0])).On(inventory.ServiceRef(d), inventory.DestinationRef(d)))
		}
	}
	return out
}

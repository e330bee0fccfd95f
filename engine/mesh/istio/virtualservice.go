package istio

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sharedService is a VirtualService that was rendered for a view with the same routes.
type sharedService struct {
	view    *snapshot.View
	content *snapshot.Content
}

// virtualService renders the routes of a view. A route is written for each port of
// the service, so that requests keep their port.
func (r *builder) virtualService(view *snapshot.View, remote bool) {
	ports := routedPorts(r.plan.Destination.Spec.KubeService.Ports)
	if len(view.Routes) == 0 || len(ports) == 0 {
		return
	}
	ref := r.place(snapshot.VirtualService, view, remote)
	if remote {
		for _, s := range r.services {
			if s.view.Host == view.Host && snapshot.SameSlice(s.view.Routes, view.Routes) {
				r.add(ref, s.content)
				return
			}
		}
	}
	spec := &networking.VirtualService{Hosts: []string{view.Host}}
	var policies []snapshot.Ref
	for _, route := range view.Routes {
		policies = append(policies, route.Action.Policies...)
		for _, port := range ports {
			spec.Http = append(spec.Http, r.httpRoutes(view, route, port)...)
		}
	}
	content := related(r.content(spec, remote, r.parents(remote, policies...)), routeNeeds(view, placeOf(remote), ports), nil)
	if remote {
		r.services = append(r.services, sharedService{view, content})
	}
	r.add(ref, content)
}

// routedPorts are the ports that have HTTP routes, ascending.
func routedPorts(ports []discoveryv1.KubeServicePort) []uint32 {
	var out []uint32
	for _, p := range ports {
		if p.Protocol != udp && p.Protocol != sctp && !slices.Contains(out, p.Port) {
			out = append(out, p.Port)
		}
	}
	slices.Sort(out)
	return out
}

func (r *builder) httpRoutes(view *snapshot.View, route *snapshot.Route, port uint32) []*networking.HTTPRoute {
	out := &networking.HTTPRoute{Name: r.routeName(route), Match: []*networking.HTTPMatchRequest{matchRequest(route.Match, port)}}
	for i := range actions {
		actions[i](route.Action, out)
	}
	if out.Route == nil {
		out.Route = []*networking.HTTPRouteDestination{{Destination: destination(view.Host, port, "")}}
	}
	return retryRoutes(route.Match, route.Action, out)
}

func destination(host string, port uint32, subset string) *networking.Destination {
	return &networking.Destination{Host: host, Subset: subset, Port: &networking.PortSelector{Number: port}}
}

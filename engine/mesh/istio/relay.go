package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file renders services that are federated with limited trust (snapshot.RelayedSNI):
// callers know the gateways of their own mesh as the service, and every gateway ends one TLS
// session and begins another. Gateways read no requests: each SNI is one TCP route.

// relays makes a service known in each mesh that it is federated to, to callers and to
// gateways, and to the gateways of its own mesh.
func (r *builder) relays(f *snapshot.Federation, service *discoveryv1.KubeService, ports []*networking.ServicePort) {
	parents := []snapshot.Ref{f.Origin.Ref}
	entry, rule := r.nextHop(f, service)
	next := related(r.content(entry, true, parents), nil, hostNames(entry))
	nextRule := related(r.content(rule, true, parents), nil, subsetNames(rule))
	for _, mesh := range f.To {
		if r.written(mesh) {
			continue
		}
		callers := &networking.ServiceEntry{
			Hosts: []string{f.Hostname}, Addresses: []string{f.Address},
			Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC, Ports: ports,
		}
		for _, gw := range mesh.Gateways {
			pods := gw
			pods.Addresses, pods.Port = gw.Pods, gw.ContainerPort
			callers.Endpoints = append(callers.Endpoints, gatewayEndpoints(service, ports, []snapshot.GatewayPlan{pods})...)
			callers.SubjectAltNames = append(callers.SubjectAltNames, gw.Identities...)
		}
		r.add(entryRef(f, mesh), related(r.content(callers, true, parents), nil, hostNames(callers)))
		if !slices.ContainsFunc(r.plan.Views, func(v *snapshot.View) bool { return v.Mesh == mesh }) {
			r.destinationRule(&snapshot.View{Mesh: mesh, Host: f.Hostname}, true) // it names the service to gateways
		}
		host := entry.Hosts[0]
		r.add(snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: host}, next)
		r.add(snapshot.Ref{Kind: snapshot.DestinationRule, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: host}, nextRule)
		r.relay(mesh, host, &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_ISTIO_MUTUAL})
		r.admitted(mesh, false)
	}
	r.homeEntry(f, service, ports)
	callers := make([]string, len(f.To))
	for i, mesh := range f.To {
		callers[i] = snapshot.GatewayIdentity(f.Origin.Ref, mesh)
	}
	r.relay(r.plan.Mesh, f.Hostname, &networking.ServerTLSSettings{
		Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: snapshot.GatewaySecret, SubjectAltNames: callers,
	})
	r.admitted(r.plan.Mesh, true)
}

// nextHop is how the gateways of callers connect to those of the service.
func (r *builder) nextHop(f *snapshot.Federation, service *discoveryv1.KubeService) (*networking.ServiceEntry, *networking.DestinationRule) {
	var ports []*networking.ServicePort
	for _, p := range servicePorts(service) {
		ports = append(ports, &networking.ServicePort{Number: p.Number, Name: p.Name, Protocol: "TLS"})
	}
	entry := &networking.ServiceEntry{
		Hosts:    []string{snapshot.RelayedHost(f.Hostname, r.plan.Mesh.HostnameSuffix)},
		Location: networking.ServiceEntry_MESH_EXTERNAL, Ports: ports, ExportTo: []string{sameNamespace},
		Endpoints: gatewayEndpoints(service, ports, r.plan.Mesh.Gateways),
	}
	entry.Resolution = resolution(entry.Endpoints)
	rule := &networking.DestinationRule{Host: entry.Hosts[0], ExportTo: entry.ExportTo, Subsets: subsetsOf(r.remoteSubsets())}
	if f.KeepAlive != nil {
		rule.TrafficPolicy = &networking.TrafficPolicy{ConnectionPool: connectionPool(f.KeepAlive)}
	}
	r.nameToGateways(rule, &networking.ClientTLSSettings{
		Mode: networking.ClientTLSSettings_MUTUAL, CredentialName: snapshot.GatewaySecret,
		SubjectAltNames: []string{snapshot.GatewayIdentity(f.Origin.Ref, r.plan.Mesh)},
	})
	return entry, rule
}

// remoteSubsets are those of all views of other meshes.
func (r *builder) remoteSubsets() []snapshot.Subset {
	for _, view := range r.plan.Views {
		if r.plan.ThroughGateways(view.Mesh) {
			return view.Subsets
		}
	}
	return nil
}

// nameToGateways sets the TLS of all ports and subsets of a rule. Settings of a port replace
// those of all ports, and settings of a subset's port those of both (istio.io:
// TrafficPolicy.portLevelSettings).
func (r *builder) nameToGateways(rule *networking.DestinationRule, tls *networking.ClientTLSSettings) {
	var pool *networking.ConnectionPoolSettings
	if rule.TrafficPolicy != nil {
		pool = rule.TrafficPolicy.ConnectionPool
	}
	policy := func(subset string) *networking.TrafficPolicy {
		out := &networking.TrafficPolicy{}
		for _, p := range servicePorts(r.plan.Destination.Spec.KubeService) {
			named := tls.DeepCopy()
			named.Sni = snapshot.RelayedSNI(r.plan.Federation.Hostname, p.Number, subset)
			out.PortLevelSettings = append(out.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
				Port: &networking.PortSelector{Number: p.Number}, Tls: named, ConnectionPool: pool,
			})
		}
		return out
	}
	rule.TrafficPolicy = policy("")
	for _, s := range rule.Subsets {
		s.TrafficPolicy = policy(s.Name)
	}
}

// relay makes the gateways of a mesh pass on to a host what arrives for each port and subset.
func (r *builder) relay(mesh *snapshot.MeshPlan, host string, tls *networking.ServerTLSSettings) {
	f, parents := r.plan.Federation, r.parents(true)
	subsets := append([]snapshot.Subset{{}}, r.remoteSubsets()...)
	for _, gw := range mesh.Gateways {
		if gw.Shared {
			continue
		}
		name := snapshot.Sanitize(relayName(f.Hostname, gw)) // it must be a DNS label
		gateway := &networking.Gateway{Selector: gw.Selector}
		var passes []snapshot.Name
		for _, p := range servicePorts(r.plan.Destination.Spec.KubeService) {
			for _, s := range subsets {
				sni := snapshot.RelayedSNI(f.Hostname, p.Number, s.Name)
				gateway.Servers = append(gateway.Servers, &networking.Server{
					Port:  &networking.Port{Number: gw.ContainerPort, Name: "tls-" + strings.TrimSuffix(sni, "."+f.Hostname), Protocol: "TLS"},
					Hosts: []string{"./" + sni}, Tls: tls, // a VirtualService of another namespace must not take it over
				})
				route := &networking.VirtualService{
					Hosts: []string{sni}, Gateways: []string{name}, ExportTo: []string{sameNamespace},
					Tcp: []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: &networking.Destination{
						Host: host, Subset: s.Name, Port: &networking.PortSelector{Number: p.Number},
					}}}}},
				}
				relayed := []snapshot.Name{{Name: sni, Local: true}}
				if mesh == r.plan.Mesh {
					relayed = wayTo(relayed)
				}
				passes = append(passes, relayed...)
				r.add(snapshot.Ref{Kind: snapshot.VirtualService, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: relayName(sni, gw)},
					related(r.content(route, true, parents), reach(host, snapshot.PlaceElsewhere, s.Name), relayed))
			}
		}
		r.add(snapshot.Ref{Kind: snapshot.Gateway, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: name},
			related(r.content(gateway, true, parents), nil, passes))
	}
}

// relayName is the name of an object for one gateway.
func relayName(host string, gw snapshot.GatewayPlan) string { return host + "." + gw.Service.Name }

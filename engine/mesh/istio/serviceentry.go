package istio

import (
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// tlsModeLabel on an endpoint says that it accepts mutual TLS. Istio assumes plain
	// text for endpoints of ServiceEntries without it: callers would not encrypt, and
	// gateways that pass connections on would leave these endpoints out.
	tlsModeLabel  = "security.istio.io/tlsMode"
	tlsModeMutual = "istio"
	// sameNamespace in exportTo is the object's own namespace.
	sameNamespace = "."
)

// serviceEntries makes a federated service known: in each mesh that it is federated to,
// with the gateways of its own mesh as endpoints (or its pods, in a flat network), and
// in its own mesh, so that gateways can pass on what arrives for the federated name.
func (r *builder) serviceEntries() {
	f := r.plan.Federation
	if f == nil {
		return
	}
	service := r.plan.Destination.Spec.KubeService
	ports := servicePorts(service)
	if f.Limited {
		r.relays(f, service, ports)
		return
	}
	remote := &networking.ServiceEntry{
		Hosts: []string{f.Hostname}, Addresses: []string{f.Address},
		Location: networking.ServiceEntry_MESH_INTERNAL, Ports: ports,
	}
	if f.Flat {
		remote.Endpoints = podEndpoints(service)
	} else {
		remote.Endpoints = gatewayEndpoints(service, ports, r.plan.Mesh.Gateways)
	}
	remote.Resolution = resolution(remote.Endpoints)
	content := r.remoteContent(remote, service)
	backing := make([]snapshot.Object, len(f.To))
	for i, mesh := range f.To {
		if r.written(mesh) {
			continue
		}
		backing[i] = snapshot.Object{Ref: entryRef(f, mesh), Content: content(mesh)}
		r.objects = append(r.objects, &backing[i])
	}
	if !f.Flat {
		r.homeEntry(f, service, ports)
	}
}

// remoteContent names in an entry who may answer, and returns the content of the entry in
// each mesh.
//
// Istio has callers compare the certificate with subjectAltNames wherever they use mutual
// TLS of the mesh: by default, with a DestinationRule of mode ISTIO_MUTUAL that has no
// names of its own, and for each of its subsets (pilot/pkg/networking/core,
// buildUpstreamTLSSettings). It is the certificate of the pod also behind gateways, which
// pass connections on and verify nothing: their clusters have no TLS settings
// (SniDnatClusterMode). With mode SIMPLE the names would be compared, too, but with a
// certificate of the application, so callers with another mode get an entry without.
func (r *builder) remoteContent(entry *networking.ServiceEntry, service *discoveryv1.KubeService) func(*snapshot.MeshPlan) *snapshot.Content {
	parents := []snapshot.Ref{r.plan.Federation.Origin.Ref}
	provides := hostNames(entry)
	var anyone, named *snapshot.Content
	if answers := r.plan.Mesh.Identities(service); len(answers) > 0 {
		named = related(r.content(&networking.ServiceEntry{
			Hosts: entry.Hosts, Addresses: entry.Addresses, Location: entry.Location, Ports: entry.Ports,
			Endpoints: entry.Endpoints, Resolution: entry.Resolution, SubjectAltNames: answers,
		}, true, parents), nil, provides)
	}
	unidentified := map[*snapshot.MeshPlan]bool{}
	for _, view := range r.plan.Views {
		if view.WithoutIdentity() != nil {
			unidentified[view.Mesh] = true
		}
	}
	return func(mesh *snapshot.MeshPlan) *snapshot.Content {
		if named != nil && !unidentified[mesh] {
			return named
		}
		if anyone == nil {
			anyone = related(r.content(entry, true, parents), nil, provides)
		}
		return anyone
	}
}

func entryRef(f *snapshot.Federation, mesh *snapshot.MeshPlan) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: f.Hostname}
}

// homeEntry gives the gateways of the service's own mesh the clusters that the
// SNI of passed-through connections names (outbound_.<port>_.<subset>_.<host>).
func (r *builder) homeEntry(f *snapshot.Federation, service *discoveryv1.KubeService, ports []*networking.ServicePort) {
	home := &networking.ServiceEntry{
		Hosts: []string{f.Hostname}, Location: networking.ServiceEntry_MESH_INTERNAL, Ports: ports,
		Endpoints: podEndpoints(service), ExportTo: gatewayNamespaces(r.plan.Mesh),
	}
	home.Resolution = resolution(home.Endpoints)
	if f.Limited {
		home.SubjectAltNames = r.plan.Mesh.Identities(service)
	}
	r.add(entryRef(f, r.plan.Mesh), related(r.content(home, true, []snapshot.Ref{f.Origin.Ref}), nil, wayTo(hostNames(home))))

	var gateway snapshot.View
	for _, view := range r.plan.Views {
		if r.plan.ThroughGateways(view.Mesh) {
			gateway.Subsets = view.Subsets // those of all remote views are the same
			if gateway.Outlier == nil {
				gateway.Outlier = view.Outlier
			}
		}
	}
	policy := trafficPolicy(&gateway)
	switch {
	case f.Limited:
		if policy == nil {
			policy = &networking.TrafficPolicy{}
		}
		policy.Tls = &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL}
	// No TLS mode: a gateway that passes connections on does not encrypt them, and with
	// any mode but mutual TLS it would leave out all endpoints.
	case len(gateway.Subsets) == 0 && policy == nil:
		return
	}
	spec := &networking.DestinationRule{Host: f.Hostname, Subsets: subsetsOf(gateway.Subsets), TrafficPolicy: policy, ExportTo: home.ExportTo}
	r.add(snapshot.Ref{Kind: snapshot.DestinationRule, Cluster: r.plan.Mesh.Cluster, Namespace: r.plan.Mesh.Namespace, Name: f.Hostname},
		related(r.content(spec, true, r.parents(true, r.ruleOrigins(&gateway)...)), nil, wayTo(subsetNames(spec))))
}

// gatewayNamespaces are the namespaces to which the mesh's own entry is exported: those
// of the gateways. If there are several, the mesh's own namespace is written by its
// name: Istio does not look for the dot in a list of several.
func gatewayNamespaces(mesh *snapshot.MeshPlan) []string {
	var out []string
	for _, gw := range mesh.Gateways {
		if namespace := gw.Service.Namespace; !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	if len(out) == 1 && out[0] == mesh.Namespace {
		return []string{sameNamespace}
	}
	slices.Sort(out)
	return out
}

// gatewayEndpoints has every address of every gateway as an endpoint, once for each set
// of labels of the pods behind it and weighted by their number: subsets work, and the
// list stays short.
func gatewayEndpoints(service *discoveryv1.KubeService, ports []*networking.ServicePort, gateways []snapshot.GatewayPlan) []*networking.WorkloadEntry {
	var labels []map[string]string
	for _, part := range service.EndpointSubsets {
		if snapshot.StaysLocal(&part) {
			continue
		}
		for i := range part.Endpoints {
			labels = append(labels, part.Endpoints[i].Labels)
		}
	}
	groups := groupByLabels(labels, 1)
	if len(groups) == 1 {
		groups[0].weight = 0 // it needs none
	}
	for i := range groups {
		groups[i].labels = mutual(groups[i].labels)
	}
	var out []*networking.WorkloadEntry
	for _, gw := range gateways {
		to := make(map[string]uint32, len(ports))
		for _, p := range ports {
			to[p.Name] = gw.Port
		}
		for _, address := range gw.Addresses {
			for _, g := range groups {
				out = append(out, &networking.WorkloadEntry{Address: address, Ports: to, Labels: g.labels, Weight: g.weight})
			}
		}
	}
	return out
}

// labelGroup are pods with the same labels.
type labelGroup struct {
	labels map[string]string
	weight uint32
}

// groupByLabels counts pods by their labels, in order of appearance; weight is that of
// one pod.
func groupByLabels(pods []map[string]string, weight uint32) []labelGroup {
	var groups []labelGroup
	at := map[string]int{}
	for _, labels := range pods {
		key := labelKey(labels)
		g, ok := at[key]
		if !ok {
			g = len(groups)
			at[key] = g
			groups = append(groups, labelGroup{labels: labels})
		}
		groups[g].weight += weight
	}
	return groups
}

func labelKey(labels map[string]string) string {
	var keys [8]string
	sorted := keys[:0]
	for k := range labels {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	var b strings.Builder
	for _, k := range sorted {
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(labels[k])
		b.WriteByte(',')
	}
	return b.String()
}

// mutual adds the label that turns mutual TLS on.
func mutual(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+1)
	for k, v := range labels {
		out[k] = v
	}
	out[tlsModeLabel] = tlsModeMutual
	return out
}

// podEndpoints are the pods themselves, at the ports where they listen: those with a proxy, as callers of the entry come with mutual
// TLS. Istio leaves all others out behind gateways that pass connections on, too (xds/endpoints, EndpointsWithMTLSFilter). A pod with two
// IP families is one endpoint, at its first address: proxies take each endpoint for another pod, and do not choose by family.
func podEndpoints(service *discoveryv1.KubeService) []*networking.WorkloadEntry {
	var out []*networking.WorkloadEntry
	for _, part := range service.EndpointSubsets {
		if snapshot.StaysLocal(&part) {
			continue
		}
		ports := map[string]uint32{}
		for _, p := range part.Ports {
			if name, ok := endpointPortName(service, p); ok {
				ports[name] = p.Port
			}
		}
		for i := range part.Endpoints {
			e := &part.Endpoints[i]
			out = append(out, &networking.WorkloadEntry{Address: e.IpAddress, Ports: ports, Labels: mutual(e.Labels)})
		}
	}
	return out
}

// resolution is DNS if an endpoint is a host name.
func resolution(endpoints []*networking.WorkloadEntry) networking.ServiceEntry_Resolution {
	for _, e := range endpoints {
		if isName(e.Address) {
			return networking.ServiceEntry_DNS
		}
	}
	return networking.ServiceEntry_STATIC
}

// isName reports whether DNS has to resolve an address.
func isName(address string) bool {
	_, err := netip.ParseAddr(address)
	return err != nil
}

package proof

import (
	"slices"
	"strings"
	"time"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// federationMutations are about what meshes see of each other, and which services
// proxies know.
func federationMutations() map[string]mutation {
	federation := func(change func(*snapshot.Federation) bool) func(*snapshot.DestinationPlan) bool {
		return func(d *snapshot.DestinationPlan) bool { return d.Federation != nil && change(d.Federation) }
	}
	return map[string]mutation{
		"seen by others":  {fact: "services that it knows", destination: federation(func(f *snapshot.Federation) bool { f.To = nil; return true })},
		"virtual address": {fact: "address of ", destination: federation(func(f *snapshot.Federation) bool { f.Address = "240.0.0.1"; return true })},
		"virtual address of connections": {fact: "connections pass to ", destination: federation(func(f *snapshot.Federation) bool {
			f.Address = "240.0.0.1"
			return true
		})},
		"zones of pods": {fact: "endpoints of ", destination: func(d *snapshot.DestinationPlan) bool {
			d.Destination = d.Destination.DeepCopy()
			had := false
			for _, part := range d.Destination.Spec.KubeService.EndpointSubsets {
				for i := range part.Endpoints {
					had = had || part.Endpoints[i].SubLocality != nil
					part.Endpoints[i].SubLocality = &discoveryv1.SubLocality{Zone: "elsewhere"}
				}
			}
			return had
		}},
		"IPv6 of a pod": {fact: "endpoints of ", destination: endpoint(func(e *discoveryv1.Endpoint) bool {
			had := slices.ContainsFunc(e.OtherAddresses, func(a string) bool { return strings.Contains(a, ":") })
			e.OtherAddresses = []string{"2001:db8::99"}
			return had
		})},
		"asked of gateways": {fact: "requested from gateways for ", destination: federation(func(f *snapshot.Federation) bool {
			f.Hostname = "x" + f.Hostname
			return true
		})},
		"default TLS mode": {fact: "connections to ", view: func(v *snapshot.View) bool {
			return v.TLS != nil && v.TLS.Origin.Ref.Kind == snapshot.Settings &&
				owned(func(v *snapshot.View) **snapshot.WithOrigin[networkingv1.TLSMode] { return &v.TLS }, func(m *networkingv1.TLSMode) { *m = networkingv1.TLSModeSimple })(v)
		}},
		"flat network": {fact: "endpoints of ", destination: federation(func(f *snapshot.Federation) bool { f.Flat = !f.Flat; return true })},
		"keep-alive": {fact: "connections to ", view: owned(func(v *snapshot.View) **snapshot.WithOrigin[snapshot.KeepAlive] { return &v.KeepAlive }, func(k *snapshot.KeepAlive) {
			k.Time += time.Second
		})},
		"one gateway less": {fact: "endpoints of ", mesh: func(m *snapshot.MeshPlan) bool {
			had := len(m.Gateways) > 1
			if had {
				m.Gateways = m.Gateways[1:]
			}
			return had
		}},
		"host name of a gateway": {fact: "endpoints of ", mesh: gatewayAddress(func(a string) bool { return strings.HasSuffix(a, ".com") })},
		"IPv6 of a gateway":      {fact: "endpoints of ", mesh: gatewayAddress(func(a string) bool { return strings.Contains(a, ":") })},
		"port of a gateway's pods": {fact: "names that the gateway accepts", mesh: func(m *snapshot.MeshPlan) bool {
			for i := range m.Gateways {
				m.Gateways[i].ContainerPort++
			}
			return len(m.Gateways) > 0
		}},
		"open gateway": {fact: "who may not pass", mesh: func(m *snapshot.MeshPlan) bool {
			had := len(m.OpenGateways) > 0
			m.OpenGateways = nil
			return had
		}},
		"denied by default": {fact: "who may call ", mesh: func(m *snapshot.MeshPlan) bool {
			had := m.DenyByDefault != nil
			m.DenyByDefault = nil
			return had
		}},
		"connections of callers": {fact: "who may connect to ", destination: rule(func(r *snapshot.AccessRule) bool { was := r.Ports; r.Ports = nil; return was != nil })},
		"dependency": {fact: "services that it knows", plan: func(p *snapshot.Plan) bool {
			had := len(p.Sidecars) > 0
			p.Sidecars = nil
			return had
		}},
		"caller's labels": {fact: "routes to ", route: func(r *snapshot.Route) bool {
			was := r.Match.SourceLabels
			r.Match.SourceLabels = nil
			return was != nil
		}},
		"caller's namespace": {fact: "routes to ", route: func(r *snapshot.Route) bool {
			was := r.Match.SourceNamespace
			r.Match.SourceNamespace = ""
			return was != ""
		}},
	}
}

// endpoint changes a copy of the first endpoint that has the value.
func endpoint(change func(*discoveryv1.Endpoint) bool) func(*snapshot.DestinationPlan) bool {
	return func(d *snapshot.DestinationPlan) bool {
		changed := d.Destination.DeepCopy()
		for _, part := range changed.Spec.KubeService.EndpointSubsets {
			for i := range part.Endpoints {
				one := part.Endpoints[i]
				if change(&one) {
					part.Endpoints[i], d.Destination = one, changed
					return true
				}
			}
		}
		return false
	}
}

// gatewayAddress changes the addresses of gateways that match.
func gatewayAddress(is func(string) bool) func(*snapshot.MeshPlan) bool {
	return func(m *snapshot.MeshPlan) bool {
		changed := false
		for i := range m.Gateways {
			addresses := append([]string(nil), m.Gateways[i].Addresses...)
			for j, a := range addresses {
				if is(a) {
					addresses[j], changed = "192.0.2.99", true
				}
			}
			m.Gateways[i].Addresses = addresses
		}
		return changed
	}
}

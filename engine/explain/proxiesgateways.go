package explain

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxGateways is how many gateways a connection goes through at most: with limited trust, one of the callers' mesh and one of the other.
const maxGateways = 2

// gatewayAt finds the east-west gateway that has an address: one of another mesh, or, with limited trust, the pods of one of a cluster.
func (t *trace) gatewayAt(cluster string, e envoy.Endpoint) (*snapshot.MeshPlan, *snapshot.GatewayPlan) {
	for _, m := range t.state.Plan.Meshes {
		for i := range m.Gateways {
			gw := &m.Gateways[i]
			if gw.Port == e.Port && slices.Contains(gw.Addresses, e.Address) ||
				m.Limited && m.Cluster == cluster && gw.ContainerPort == e.Port && slices.Contains(gw.Pods, e.Address) {
				return m, gw
			}
		}
	}
	return nil, nil
}

// throughGateway follows a connection through a gateway, which does not read what it carries. With limited trust it ends the TLS session
// and begins another: what comes next sees the gateway instead of the callers. Left is how many gateways may follow.
func (t *trace) throughGateway(o ProxyOutcome, mesh *snapshot.MeshPlan, gw *snapshot.GatewayPlan, c envoy.Connection, request envoy.Request, left int) {
	end := func(verdict Verdict, reason string) {
		o.Verdict, o.Reason = verdict, clip(reason)
		t.out.Outcomes = append(t.out.Outcomes, o)
	}
	pods, err := t.proxies.Pods(mesh.Cluster, gw.Service.Namespace, gw.Selector)
	switch {
	case left == 0:
		end(Unknown, fmt.Sprintf("connections go through more than %d gateways", maxGateways))
		return
	case err != nil:
		end(Unknown, err.Error())
		return
	case len(pods) == 0:
		end(Unreachable, "no pod of gateway "+shortName(gw.Service)+" of "+mesh.Cluster+" runs")
		return
	}
	config, err := t.read(&pods[0])
	if err != nil {
		end(Unknown, err.Error())
		return
	}
	o.Gateway = &pods[0]
	passed := config.PassOn(envoy.Incoming{Port: gw.ContainerPort, TLS: c.TLS, SNI: c.SNI, ALPN: c.ALPN, Principal: request.Principal})
	switch {
	case passed.Passage.Answer == envoy.No:
		o.by(t.policyOf(passed.Passage.Decision.Policy, mesh))
		verdict := Refused
		if said := t.saidOf(&o); said != nil && said.Verdict == Unreachable {
			verdict = Unreachable // objects say that of what users wrote for gateways
		}
		end(verdict, "gateway pod "+pods[0].String()+" refuses the connection"+prefixed(": policy ", passed.Passage.Decision.Policy))
		return
	case passed.Stopped != "":
		end(Unreachable, "gateway pod "+pods[0].String()+": "+passed.Stopped)
		return
	case len(passed.Passage.Doubts) > 0:
		end(Unknown, "not evaluated at gateway pod "+pods[0].String()+": "+firstOf(passed.Passage.Doubts))
		return
	}
	next, reason := config.Connect(passed.Cluster)
	if reason != "" {
		end(Unreachable, "gateway pod "+pods[0].String()+": "+reason)
		return
	}
	seen := map[string]bool{}
	for _, n := range next[:min(len(next), maxEndpoints)] {
		if !passed.EndsTLS {
			t.toPod(o, mesh.Cluster, n.Endpoint, c, request, seen)
			continue
		}
		further, at := t.gatewayAt(mesh.Cluster, n.Endpoint)
		o.Identity = t.gatewayIdentity(o.Host, mesh, gw, n, at != nil)
		request.Principal = o.Identity
		switch {
		case at == nil:
			t.toPod(o, mesh.Cluster, n.Endpoint, n, request, seen)
		case !seen[at.Service.String()]:
			seen[at.Service.String()] = true
			t.throughGateway(o, further, at, n, request, left-1)
		}
	}
}

// gatewayIdentity is what a gateway that begins a TLS session of its own presents: to other gateways the identity that the VirtualMesh
// gives it, and to pods that of its own mesh; empty if it presents none.
func (t *trace) gatewayIdentity(host string, mesh *snapshot.MeshPlan, gw *snapshot.GatewayPlan, c envoy.Connection, toGateway bool) string {
	if !c.TLS || !c.Certificate {
		return ""
	}
	if !toGateway {
		if len(gw.Identities) == 0 {
			return ""
		}
		return gw.Identities[0]
	}
	for _, ref := range t.hosts(t.mesh, nil, host) {
		if d := t.destinations[ref]; d != nil && d.Federation != nil {
			return snapshot.GatewayIdentity(d.Federation.Origin.Ref, mesh)
		}
	}
	return ""
}

package explain

import (
	"cmp"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connectionOf is how a workload of a mesh connects to a port of a Destination, or of a subset of it: as policies say, or as an object
// does that users wrote.
func connectionOf(x *Index, workload *discoveryv1.Workload, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan, port uint32, subset string) connection {
	out := connectionTo(d, mesh)
	switch {
	case modeOf(workload).IsAmbient():
		out.by = byZtunnel
		return out // neither policies nor users' objects of that kind are for it
	case isGateway(workload):
		out.by = byGateway
	}
	of := &snapshot.HostQuery{Host: hostFrom(mesh, d), Mesh: mesh, Home: mesh.Namespace, Port: port}
	if k := d.Destination.Spec.KubeService; k != nil && mesh.Ref == d.Mesh.Ref {
		of.Home = k.Ref.Namespace
	}
	out.byHand(x, of, workload, subset)
	return out
}

// intoPolicy is what helps where users' settings are beside generated ones.
const intoPolicy = "; move its settings into a TrafficPolicy, and delete it"

// byHand takes what users wrote about a host, where their object is the one that callers use.
func (c *connection) byHand(x *Index, of *snapshot.HostQuery, workload *discoveryv1.Workload, subset string) {
	hand, k := x.outside.byHand[of.Mesh], workload.Spec.Kubernetes
	if hand == nil || k == nil {
		return
	}
	h, found := hand.ConnectionFor(of, &snapshot.PodQuery{Mesh: of.Mesh, Namespace: k.Controller.Namespace, Pods: []map[string]string{k.PodLabels}}, subset)
	if !found {
		return
	}
	says := byHandName(h.Ref) + " sets " + h.Mode
	generated := x.outside.connections[clusterHost{of.Mesh.Cluster, of.Host}]
	if generated && h.Place == snapshot.HandBehind {
		return
	}
	c.named = prefixed(byHandName(h.Ref)+" ", h.Named)
	setTLS := c.policy != nil || c.mutual() // by policies
	switch text := cmp.Or(h.Astray, h.Prefix); {
	case text != "":
		c.unknown = byHandName(h.Ref) + " " + text
		return
	case generated && h.Place == snapshot.HandBeside && h.TLS != snapshot.ClientUnset:
		c.unknown = says + ", beside a generated object in the same namespace: of what both say, the mesh uses one" + intoPolicy
		return
	case generated && h.Place == snapshot.HandBeside && h.Settings && setTLS:
		c.unknown = byHandName(h.Ref) + " has settings, none of TLS, beside a generated object in the same namespace: of the settings of both, the mesh uses those of one" + intoPolicy
		return
	case generated && h.Place == snapshot.HandBeside && h.Apart && (setTLS || subset != ""):
		c.unknown = byHandName(h.Ref) + " is beside a generated object in the same namespace, and not for the same callers: the mesh uses one of them" + intoPolicy
		return
	case generated && h.Place == snapshot.HandBeside:
		return
	}
	c.instead = ""
	if generated {
		c.instead = byHandName(h.Ref) + " is used instead of the generated one"
	}
	if h.TLS == snapshot.ClientUnset {
		if generated { // what that says is not used
			if c.policy != nil {
				c.policy, c.plain = nil, ""
			}
			c.plain, c.mutualBy = cmp.Or(c.plain, of.Mesh.PlainBy), ""
		}
		return
	}
	c.policy, c.plain, c.mutualBy = nil, "", ""
	switch h.TLS {
	case snapshot.ClientPlain:
		c.plain = says
	case snapshot.ClientMesh:
		c.mutualBy = says
	case snapshot.ClientOther:
		c.other = says
	}
}

// refusedByGateways sets the verdict if gateways do not pass such connections on, and reports whether it did. Policies have callers of
// other clusters use mutual TLS nevertheless.
func (c *connection) refusedByGateways(out *Outcome) bool {
	says := cmp.Or(c.plain, c.other)
	if says == "" || c.policy != nil {
		return false
	}
	out.Verdict, out.Reason = Unreachable, "gateways pass on mutual TLS of the mesh only, and "+says
	return true
}

// generatedConnections are the hosts of which generated objects say how callers connect to them.
func generatedConnections(out *snapshot.Output) map[clusterHost]bool {
	hosts := map[clusterHost]bool{}
	for o := range out.Written {
		if spec, ok := o.Content.Spec.(interface{ GetHost() string }); ok {
			hosts[clusterHost{o.Ref.Cluster, spec.GetHost()}] = true
		}
	}
	return hosts
}

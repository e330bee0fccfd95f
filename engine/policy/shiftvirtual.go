package policy

import (
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// virtualTargets are the VirtualDestinations to which a policy sends requests.
func virtualTargets(p *networkingv1.Policy) []*networkingv1.VirtualDestinationRef {
	if p == nil || p.TrafficShift == nil {
		return nil
	}
	var out []*networkingv1.VirtualDestinationRef
	for i := range p.TrafficShift.Destinations {
		if v := p.TrafficShift.Destinations[i].VirtualDestination; v != nil {
			out = append(out, v)
		}
	}
	return out
}

func virtualRef(v *networkingv1.VirtualDestinationRef) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.VirtualDestination, Namespace: v.Namespace, Name: v.Name}
}

// connectionsOnly are the protocols of VirtualDestinations to which no HTTP route can
// lead.
var connectionsOnly = []string{"HTTPS", "TLS", "MONGO"}

// virtualNotFound is the issue for a VirtualDestination that does not exist.
func virtualNotFound(field string, at snapshot.Ref) []snapshot.Issue {
	return []snapshot.Issue{snapshot.Errorf(snapshot.DestinationNotFound,
		"correct the reference; `meshctl describe virtualdestination` lists those there are",
		"%s: there is no VirtualDestination %s.%s", field, at.Name, at.Namespace).At(field)}
}

// resolveVirtual finds a VirtualDestination as seen from the viewer's mesh.
func (c *fieldContext) resolveVirtual(field string, v *networkingv1.VirtualDestinationRef) (snapshot.Target, []snapshot.Issue) {
	at := virtualRef(v)
	plan := c.env.virtualDestinations[at]
	name := at.Name + "." + at.Namespace
	switch {
	case plan == nil:
		return snapshot.Target{}, virtualNotFound(field, at)
	case !plan.Sees(c.viewer):
		return snapshot.Target{Destination: at}, []snapshot.Issue{snapshot.Errorf(snapshot.NotFederated,
			"export it to that mesh (`meshctl describe virtualdestination "+at.Name+"` shows what prevents that), or restrict sourceSelector to clusters that see it",
			"%s: mesh %s does not see VirtualDestination %s", field, c.viewer.Ref.Name, name).At(field)}
	case slices.Contains(connectionsOnly, plan.Protocol):
		return snapshot.Target{Destination: at}, []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid,
			"shift to one whose port.protocol is HTTP, HTTP2 or GRPC",
			"%s: VirtualDestination %s has protocol %s, to which HTTP requests cannot be routed", field, name, plan.Protocol).At(field)}
	}
	return snapshot.Target{Destination: at, Host: plan.Hostname, Port: plan.Port, Place: snapshot.PlaceVirtual}, nil
}

// requirementsOn are the subsets of a VirtualDestination that the policies in force
// on a Destination require.
func requirementsOn(at snapshot.Ref, from int, accepted *acceptance) []subsetRequirement {
	if accepted == nil {
		return nil
	}
	var out []subsetRequirement
	for _, a := range accepted.applied {
		for _, t := range virtualTargets(a.Spec.Policy) {
			if len(t.Subset) > 0 && virtualRef(t) == at {
				out = append(out, subsetRequirement{from: from, applied: a, labels: t.Subset})
			}
		}
	}
	return out
}

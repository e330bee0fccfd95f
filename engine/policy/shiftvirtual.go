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

// connectionsOnly are the protocols of VirtualDestinations that no HTTP route
// can lead to: the caller's own TLS, or another protocol, is expected there.
var connectionsOnly = []string{"HTTPS", "TLS", "MONGO"}

// resolveVirtual finds a VirtualDestination to which the viewer's requests go.
func (s *setting) resolveVirtual(field string, v *networkingv1.VirtualDestinationRef) (snapshot.Target, []snapshot.Issue) {
	at := virtualRef(v)
	plan := s.world.virtuals[at]
	name := at.Name + "." + at.Namespace
	switch {
	case plan == nil:
		return snapshot.Target{}, []snapshot.Issue{snapshot.Errorf(snapshot.DestinationNotFound,
			"correct the reference; `meshctl describe virtualdestination` lists those there are",
			"%s: there is no VirtualDestination %s", field, name)}
	case !plan.Sees(s.viewer):
		return snapshot.Target{Destination: at}, []snapshot.Issue{snapshot.Errorf(snapshot.NotFederated,
			"export it to that mesh (`meshctl describe virtualdestination "+at.Name+"` says what keeps it away), or restrict sourceSelector to clusters that see it",
			"%s: mesh %s does not see VirtualDestination %s", field, s.viewer.Ref.Name, name)}
	case slices.Contains(connectionsOnly, plan.Protocol):
		return snapshot.Target{Destination: at}, []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid,
			"shift to one whose port.protocol is HTTP, HTTP2 or GRPC",
			"%s: VirtualDestination %s takes %s, to which requests cannot be sent", field, name, plan.Protocol)}
	}
	target := snapshot.Target{Destination: at, Host: plan.Hostname, Port: plan.Port}
	if len(v.Subset) == 0 {
		return target, nil
	}
	target.Subset = subsetName(v.Subset)
	for _, b := range plan.Backing {
		if hasLabels(b.Destination, v.Subset) {
			return target, nil
		}
	}
	return target, []snapshot.Issue{noSuchPods(field, v.Subset)}
}

// requirementsOn are the subsets of a VirtualDestination to which the policies
// in force on a Destination send requests.
func requirementsOn(at snapshot.Ref, from int, accepted *acceptance) []requirement {
	if accepted == nil {
		return nil
	}
	var out []requirement
	for _, a := range accepted.applied {
		for _, t := range virtualTargets(a.Spec.Policy) {
			if len(t.Subset) > 0 && virtualRef(t) == at {
				out = append(out, requirement{from: from, applied: a, labels: t.Subset})
			}
		}
	}
	return out
}

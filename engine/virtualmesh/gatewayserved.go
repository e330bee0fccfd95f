package virtualmesh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	endpointv1 "k8s.io/api/discovery/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says which gateway is at fault if none serves: the one through which other clusters reached the mesh until
// now, as the status of the Mesh has it. The fault is never that another Service is no gateway.

// servedGateways are those of the status of a Mesh: in use, or the last that were.
type servedGateways struct {
	mesh    commonv1.ObjectRef
	applied []discoveryv1.AppliedEastWestIngressGateway
	// sliced are those whose EndpointSlices are known, by the name of the Destination. Without one, as in files, nothing is known
	// of the pods; a cluster has one for each Service, also for one without pods.
	sliced map[string]bool
}

func newServedGateways(in *snapshot.Input) []servedGateways {
	var out []servedGateways
	for _, o := range in.Management.Meshes {
		_, at := snapshot.MeshType(&o.Spec)
		i, known := slices.BinarySearchFunc(in.Clusters, at.Cluster, func(c *snapshot.Cluster, name string) int { return strings.Compare(c.Name, name) })
		if !known || len(o.Status.AppliedEastWestIngressGateways) == 0 {
			continue
		}
		s := servedGateways{commonv1.ObjectRef{Name: o.Name, Namespace: o.Namespace}, o.Status.AppliedEastWestIngressGateways, map[string]bool{}}
		for j := range s.applied {
			of := s.applied[j].DestinationRef
			if service, namespace := serviceOfGateway(in.Management, of, at.Namespace, at.Cluster); service != "" && hasSlice(in.Clusters[i], namespace, service) {
				s.sliced[of.Name] = true
			}
		}
		out = append(out, s)
	}
	return out
}

// serviceOfGateway is the Service of a gateway's Destination: by its name, if it is where gateways usually are, or as it is stored; empty
// if it is not.
func serviceOfGateway(m *snapshot.Management, of commonv1.ObjectRef, namespace, cluster string) (service, in string) {
	if service, usual := strings.CutSuffix(of.Name, "-"+namespace+"-"+cluster); usual {
		return service, namespace
	}
	ref := snapshot.Ref{Kind: snapshot.Destination, Namespace: of.Namespace, Name: of.Name}
	i, known := slices.BinarySearchFunc(m.Destinations, ref, func(d *discoveryv1.Destination, at snapshot.Ref) int {
		return cmp.Or(strings.Compare(d.Namespace, at.Namespace), strings.Compare(d.Name, at.Name))
	})
	if !known || m.Destinations[i].Spec.KubeService == nil {
		return "", ""
	}
	k := m.Destinations[i].Spec.KubeService.Ref
	return k.Name, k.Namespace
}

// hasSlice reports whether a Service has an EndpointSlice.
func hasSlice(c *snapshot.Cluster, namespace, service string) bool {
	at, _ := slices.BinarySearchFunc(c.EndpointSlices, namespace, func(s *endpointv1.EndpointSlice, namespace string) int {
		return strings.Compare(s.Namespace, namespace)
	})
	for _, s := range c.EndpointSlices[at:] {
		if s.Namespace != namespace {
			break
		}
		if s.Labels[endpointv1.LabelServiceName] == service {
			return true
		}
	}
	return false
}

// served are the gateways of a mesh.
func (f TrustFacts) served(mesh *snapshot.MeshPlan) servedGateways {
	for _, s := range f.gateways {
		if s.mesh.Name == mesh.Ref.Name && s.mesh.Namespace == mesh.Ref.Namespace {
			return s
		}
	}
	return servedGateways{}
}

// find is how other clusters reached a gateway; nil if they did not.
func (s servedGateways) find(d *discoveryv1.Destination) *discoveryv1.AppliedEastWestIngressGateway {
	for i := range s.applied {
		if of := s.applied[i].DestinationRef; of.Name == d.Name && of.Namespace == d.Namespace {
			return &s.applied[i]
		}
	}
	return nil
}

// lost are the gateways that served and are no candidates any more.
func (s servedGateways) lost(inv *inventory.Inventory, mesh *snapshot.MeshPlan, candidates []gatewayCandidate) []snapshot.Issue {
	var issues []snapshot.Issue
	for i := range s.applied {
		of := s.applied[i].DestinationRef
		is := func(d *discoveryv1.Destination) bool { return d.Name == of.Name && d.Namespace == of.Namespace }
		if slices.ContainsFunc(candidates, func(c gatewayCandidate) bool { return is(c.destination) }) {
			continue
		}
		what, hint := "is gone: there is no Service of this name", "create the Service again, or name another gateway in federation.eastWestIngressGatewaySelectors"
		if slices.ContainsFunc(inv.Destinations, is) {
			what, hint = "is no gateway any more: its Service was changed", "restore the selector of the Service, or name it in federation.eastWestIngressGatewaySelectors"
		}
		issues = append(issues, snapshot.Errorf(snapshot.GatewayNotReady, hint, "gateway %s, through which other clusters reached the mesh until now, %s",
			gatewayName(of.Name, mesh), what).At("federation").CausedBy(snapshot.Ref{Kind: snapshot.Destination, Namespace: of.Namespace, Name: of.Name}))
	}
	return issues
}

// gatewayName is the name of a gateway's Service by that of its Destination, if it is where gateways usually are.
func gatewayName(destination string, mesh *snapshot.MeshPlan) string {
	if service, usual := strings.CutSuffix(destination, "-"+mesh.Namespace+"-"+mesh.Cluster); usual {
		return inventory.ServiceName(commonv1.ClusterObjectRef{Name: service, Namespace: mesh.Namespace, ClusterName: mesh.Cluster})
	}
	return destination
}

// portUntilNow says on which port a candidate served.
func (c *gatewayCandidate) portUntilNow() string {
	if c.served == nil || c.served.DestinationPort == 0 {
		return ""
	}
	return fmt.Sprintf(" any more, which was port %d until now", c.served.DestinationPort)
}

// addressUntilNow says where a candidate served.
func (c *gatewayCandidate) addressUntilNow() string {
	if c.served == nil || len(c.served.ExternalAddresses) == 0 {
		return ""
	}
	return " any more; until now, it was " + c.served.ExternalAddresses[0]
}

const noReadyPod = "has no ready pod"

// startPods is what to do about a gateway without ready pods.
func startPods(service *discoveryv1.KubeService) string {
	return "see why in cluster " + service.Ref.ClusterName + ": kubectl -n " + service.Ref.Namespace + " get deployments,pods"
}

// hasReadyPods reports whether a pod is ready behind a Service.
func hasReadyPods(service *discoveryv1.KubeService) bool {
	return slices.ContainsFunc(service.EndpointSubsets, func(part discoveryv1.EndpointSubset) bool { return !part.Machines && len(part.Endpoints) > 0 })
}

// preferReady leaves out gateways without ready pods where another one has some. Where none has, all stay: a restart must not
// change what callers know. It is an issue if other clusters used the gateway until now; else, as in files, the
// pods may just not be known.
func preferReady(gateways []snapshot.GatewayPlan, served servedGateways) ([]snapshot.GatewayPlan, []snapshot.Issue) {
	ready := slices.IndexFunc(gateways, func(gw snapshot.GatewayPlan) bool { return !gw.NoPods })
	var left []snapshot.GatewayPlan
	var issues []snapshot.Issue
	for _, gw := range gateways {
		if gw.NoPods {
			gw.NoPods = served.sliced[gw.Destination.Name] || ready >= 0
		}
		if !gw.NoPods {
			left = append(left, gw)
			continue
		}
		name := gw.Service.Name + "." + gw.Service.Namespace + "." + gw.Service.Cluster
		issue := snapshot.Errorf(snapshot.GatewayNotReady, startPods(&discoveryv1.KubeService{Ref: commonv1.ClusterObjectRef{Namespace: gw.Service.Namespace, ClusterName: gw.Service.Cluster}}),
			"gateway %s %s: requests that come through it from other clusters fail", name, noReadyPod)
		if ready >= 0 {
			instead := gateways[ready].Service
			issue.Severity = snapshot.Warning
			issue.Message = fmt.Sprintf("gateway %s %s; requests from other clusters come through %s.%s", name, noReadyPod, instead.Name, instead.Namespace)
		} else {
			left = append(left, gw)
		}
		issues = append(issues, issue.At("federation").CausedBy(gw.Destination))
	}
	return left, issues
}

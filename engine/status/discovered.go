package status

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// specBudget bounds the specs of policies in one status, in bytes of JSON, so that
// the object stays far below the size limit of API servers.
const specBudget = 128 << 10

// The lengths of the lists in the status of a discovered object.
const (
	maxFederated = 500
	maxAddresses = 200
	maxGateways  = 10
)

func meshStatus(o observedMesh, _ *snapshot.Status) *snapshot.Status {
	plan := o.source
	status := &discoveryv1.MeshStatus{ObservedGeneration: o.generation}
	if vm := plan.VirtualMesh; vm != nil {
		status.AppliedVirtualMesh = &discoveryv1.AppliedVirtualMesh{
			Ref: objectRef(vm), ObservedGeneration: vm.Generation,
		}
		if size(vm.Spec) <= specBudget {
			status.AppliedVirtualMesh.Spec = vm.Spec
		}
	}
	if o.visible != nil {
		status.AppliedVirtualDestinations = o.visible.list
	}
	for _, gw := range plan.Gateways[:min(len(plan.Gateways), maxGateways)] {
		status.AppliedEastWestIngressGateways = append(status.AppliedEastWestIngressGateways, discoveryv1.AppliedEastWestIngressGateway{
			DestinationRef:    commonv1.ObjectRef{Name: gw.Destination.Name, Namespace: gw.Destination.Namespace},
			ExternalAddresses: gw.Addresses[:min(len(gw.Addresses), maxAddresses)], DestinationPort: gw.Port, ContainerPort: gw.ContainerPort,
		})
	}
	if len(plan.Gateways) == 0 {
		status.AppliedEastWestIngressGateways = plan.Served
	}
	return &snapshot.Status{Ref: plan.Ref, Value: status}
}

func destinationStatus(o observed[*snapshot.DestinationPlan], _ *snapshot.Status) *snapshot.Status {
	plan := o.source
	status := &discoveryv1.DestinationStatus{ObservedGeneration: o.generation, LocalFqdn: plan.LocalFQDN, NotFederated: clip(plan.NotFederated())}
	budget := specBudget
	for _, a := range plan.Traffic {
		if budget -= size(a.Spec); budget < 0 {
			break
		}
		status.AppliedTrafficPolicies = append(status.AppliedTrafficPolicies, discoveryv1.AppliedTrafficPolicy{
			Ref: objectRef(a.Policy), ClusterName: a.Policy.InCluster, ObservedGeneration: a.Generation, Spec: *a.Spec,
		})
	}
	if f := plan.Federation; f != nil {
		status.AppliedFederation = federationStatus(f)
	}
	for _, p := range plan.RequiredSubsets {
		if budget -= size(p.Spec.Policy); budget < 0 {
			break
		}
		required := discoveryv1.RequiredSubsets{TrafficPolicyRef: objectRef(p.Policy), ClusterName: p.Policy.InCluster, ObservedGeneration: p.Generation}
		if p.Spec.Policy != nil {
			required.TrafficShift = p.Spec.Policy.TrafficShift
		}
		status.RequiredSubsets = append(status.RequiredSubsets, required)
	}
	for _, rule := range plan.AccessInForce() {
		policy, ok := rule.Policy.(*networkingv1.AccessPolicy)
		if !ok {
			continue
		}
		if budget -= size(&policy.Spec); budget < 0 {
			break
		}
		status.AppliedAccessPolicies = append(status.AppliedAccessPolicies, discoveryv1.AppliedAccessPolicy{
			Ref: objectRef(policy), ClusterName: policy.InCluster, ObservedGeneration: policy.Generation, Spec: policy.Spec,
		})
	}
	return &snapshot.Status{Ref: plan.Ref, Value: status}
}

func federationStatus(f *snapshot.Federation) *discoveryv1.AppliedFederation {
	out := &discoveryv1.AppliedFederation{
		FederatedHostname: f.Hostname, Address: f.Address, FlatNetwork: f.Flat,
		VirtualMeshRef: commonv1.ObjectRef{Name: f.Origin.Ref.Name, Namespace: f.Origin.Ref.Namespace},
	}
	for _, issue := range f.Issues {
		out.Errors = append(out.Errors, clip(issue.Text()))
	}
	for _, m := range f.To[:min(len(f.To), maxFederated)] {
		out.FederatedToMeshes = append(out.FederatedToMeshes, commonv1.ObjectRef{Name: m.Ref.Name, Namespace: m.Ref.Namespace})
	}
	if f.KeepAlive != nil {
		k := f.KeepAlive.Value
		out.TcpKeepalive = &commonv1.TCPKeepalive{
			Probes: k.Probes, Time: &metav1.Duration{Duration: k.Time}, Interval: &metav1.Duration{Duration: k.Interval},
		}
	}
	return out
}

// size is what a value adds to a status, in bytes of JSON.
func size(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return specBudget // leave out what does not marshal
	}
	return len(text)
}

func objectRef(o metav1.Object) commonv1.ObjectRef {
	return commonv1.ObjectRef{Name: o.GetName(), Namespace: o.GetNamespace()}
}

package virtualmesh

import (
	"net/netip"
	"slices"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// isLimited reports whether only the gateways of a VirtualMesh's members trust each other.
func isLimited(vm *networkingv1.VirtualMesh) bool {
	return vm.Spec.MtlsConfig != nil && vm.Spec.MtlsConfig.Limited != nil
}

// isFlat reports whether callers connect to pods of other members.
func isFlat(vm *networkingv1.VirtualMesh) bool {
	return vm.Spec.Federation != nil && vm.Spec.Federation.FlatNetwork && !isLimited(vm)
}

// usageOf is what a VirtualMesh's certificates are for.
func usageOf(vm *networkingv1.VirtualMesh) certificatesv1.TrustUsage {
	if isLimited(vm) {
		return certificatesv1.TrustUsageGateway
	}
	return certificatesv1.TrustUsageCA
}

// gatewayCertificateSpec is what is asked of the agent of a member: a certificate for its
// gateways. Nothing has to restart.
func gatewayCertificateSpec(plan *snapshot.VirtualMeshPlan, member *snapshot.MeshPlan, signs *snapshot.Root, roots []*snapshot.Root) *certificatesv1.IssuedCertificateSpec {
	spec := &certificatesv1.IssuedCertificateSpec{
		Hosts:                   []string{snapshot.GatewayIdentity(plan.Ref, member)},
		Org:                     member.Dialect.Name,
		IssuedCertificateSecret: &commonv1.ObjectRef{Name: snapshot.GatewaySecret, Namespace: member.Namespace},
		CertOptions:             intermediateOptions(nil, member.Dialect.Name),
		Trust:                   &certificatesv1.TrustRequest{Usage: certificatesv1.TrustUsageGateway, Root: signs.Fingerprint, Bundle: bundle(roots)},
	}
	if signs.Secret != (snapshot.Ref{}) {
		secret := commonv1.ObjectRef{Name: signs.Secret.Name, Namespace: signs.Secret.Namespace}
		spec.SigningCertificateSecret = &secret
		spec.GlooMeshCa = &certificatesv1.GlooMeshCA{SigningCertificateSecret: &secret}
	}
	return spec
}

// limitGateways keeps the gateways of a Limited member that can have its certificate, and
// notes where callers of the mesh find them: they connect to the pods.
func (t *Topology) limitGateways(member *snapshot.MeshPlan) []snapshot.Issue {
	if !member.Limited {
		return nil
	}
	var issues []snapshot.Issue
	var left []snapshot.GatewayPlan
	for _, gw := range member.Gateways {
		if gw.Service.Namespace != member.Namespace {
			issues = append(issues, snapshot.Errorf(snapshot.GatewayUnusable, "install a gateway in namespace "+member.Namespace,
				"gateway %s is not in the namespace of the control plane of mesh %s, where the certificate of its gateways is",
				gw.Service.Name+"."+gw.Service.Namespace, member.Ref.Name).At("mtlsConfig.limited").CausedBy(gw.Destination))
			continue
		}
		at := slices.IndexFunc(t.inv.Destinations, func(d *discoveryv1.Destination) bool { return inventory.DestinationRef(d) == gw.Destination })
		service := t.inv.Destinations[at].Spec.KubeService
		for _, part := range service.EndpointSubsets {
			if snapshot.StaysLocal(&part) {
				continue
			}
			for _, e := range part.Endpoints {
				for _, address := range append([]string{e.IpAddress}, e.OtherAddresses...) {
					if _, err := netip.ParseAddr(address); err == nil {
						gw.Pods = append(gw.Pods, address)
					}
				}
			}
		}
		slices.Sort(gw.Pods)
		gw.Pods = slices.Compact(gw.Pods)
		gw.Identities = member.Identities(service)
		if len(gw.Identities) == 0 {
			issues = append(issues, snapshot.Errorf(snapshot.GatewayNotReady, "start its pods, under a service account of the mesh; and set trustDomain in the meshConfig of the mesh",
				"the identity of gateway %s is not known, so services cannot let in what comes from it", gw.Service.Name+"."+gw.Service.Namespace).
				At("mtlsConfig.limited").CausedBy(gw.Destination))
			continue
		}
		left = append(left, gw)
	}
	member.Gateways = left
	return issues
}

// limitedIssues say what limited trust has no effect on.
func limitedIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	if f := plan.VirtualMesh.Spec.Federation; isLimited(plan.VirtualMesh) && f != nil && f.FlatNetwork {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "remove federation.flatNetwork, or use mtlsConfig.shared",
			"federation.flatNetwork has no effect: with limited trust only gateways of other members can be connected to").
			At("federation.flatNetwork").On(plan.Ref, snapshot.Ref{})}
	}
	return nil
}

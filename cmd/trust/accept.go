package trust

import (
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// accept makes claims count: those that are named, or the trust domains that the members have now.
func accept(vm *networkingv1.VirtualMesh, meshes []*discoveryv1.Mesh, claims []string) (*decision, error) {
	if err := shared(vm); err != nil {
		return nil, err
	}
	if len(claims) == 0 {
		if s := vm.Spec.MtlsConfig.Shared; s == nil || !s.TrustDomainPerMesh {
			return nil, refuse(vm, "it does not tell its members apart by trust domains (mtlsConfig.shared.trustDomainPerMesh), so there are none to accept; to accept a root, name its fingerprint")
		}
		for _, m := range meshes {
			if claim := claimOf(m); claim != "" && slices.Contains(vm.Spec.Meshes, commonv1.ObjectRef{Name: m.Name, Namespace: m.Namespace}) {
				claims = append(claims, claim)
			}
		}
	}
	roots, pins, problem := snapshot.AcceptedClaims(strings.Join(claims, " "))
	switch {
	case problem != "":
		return nil, refuse(vm, "%s", problem)
	case len(roots)+len(pins) == 0:
		return nil, refuse(vm, "no member says which trust domain it has; set trustDomain in the settings of its control plane")
	}
	for _, p := range pins {
		if !slices.ContainsFunc(vm.Spec.Meshes, func(m commonv1.ObjectRef) bool { return m.Name == p.Mesh }) {
			return nil, refuse(vm, "mesh %s is not a member; `meshctl describe virtualmesh %s` lists the members", p.Mesh, vm.Name)
		}
		for _, o := range pins {
			if o.Mesh != p.Mesh && slices.ContainsFunc(o.Domains, p.Has) {
				return nil, refuse(vm, "meshes %s and %s have a trust domain in common; name the one that is to have it, as MESH=TRUSTDOMAIN", p.Mesh, o.Mesh)
			}
		}
	}
	value := merge(vm.Annotations[snapshot.TrustAcceptAnnotation], roots, pins)
	if value == vm.Annotations[snapshot.TrustAcceptAnnotation] {
		return &decision{done: name(vm) + ": these were accepted before; nothing to do"}, nil
	}
	return &decision{
		annotations: map[string]*string{snapshot.TrustAcceptAnnotation: &value},
		done:        name(vm) + ": accepted " + strings.Join(claims, ", "),
	}, nil
}

// claimOf is what a mesh says of its trust domain, as MESH=DOMAIN,ALIAS; empty if nothing.
func claimOf(m *discoveryv1.Mesh) string {
	if m.Spec.Istio == nil || m.Spec.Istio.TrustDomain == "" {
		return ""
	}
	return m.Name + "=" + strings.Join(append([]string{m.Spec.Istio.TrustDomain}, m.Spec.Istio.TrustDomainAliases...), ",")
}

// merge adds claims to those of an annotation. Each mesh has one, and each trust domain one mesh.
func merge(before string, roots []string, pins []snapshot.TrustPin) string {
	hadRoots, hadPins, _ := snapshot.AcceptedClaims(before)
	all := slices.Compact(slices.Sorted(slices.Values(append(hadRoots, roots...))))
	for _, p := range hadPins {
		p.Domains = slices.DeleteFunc(p.Domains, func(domain string) bool {
			return slices.ContainsFunc(pins, func(o snapshot.TrustPin) bool { return o.Has(domain) })
		})
		if len(p.Domains) > 0 && snapshot.PinOf(pins, p.Mesh) == nil {
			pins = append(pins, p)
		}
	}
	slices.SortFunc(pins, snapshot.TrustPin.Compare)
	for _, p := range pins {
		all = append(all, p.Mesh+"="+strings.Join(p.Domains, ","))
	}
	return strings.Join(all, " ")
}

// acceptPlan says what accepting does.
func acceptPlan(vm *networkingv1.VirtualMesh, would *decision) string {
	return fmt.Sprintf("%s: the management plane is to believe this, whoever has written it:\n  %s\n"+
		"A mesh gets a CA for the trust domains that are accepted, and a root with a key may sign for all members.\n",
		name(vm), strings.ReplaceAll(*would.annotations[snapshot.TrustAcceptAnnotation], " ", "\n  "))
}

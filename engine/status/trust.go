package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxMemberTrusts bounds the members whose trust a status describes.
const maxMemberTrusts = 100

// trustStatus says where the trust of a VirtualMesh stands; nil if it has none.
func trustStatus(trust *snapshot.TrustPlan) *networkingv1.TrustStatus {
	switch {
	case trust == nil:
		return nil
	case !trust.RootsRead:
		return trust.Stored
	}
	out := &networkingv1.TrustStatus{Usage: trust.Usage, Stage: trust.Stage, Message: clip(trust.Message), Paused: trust.Paused}
	if trust.Root != nil {
		out.Root = trust.Root.Fingerprint
	}
	for _, root := range trust.Roots {
		expires := metav1.NewTime(root.NotAfter.UTC())
		out.Roots = append(out.Roots, networkingv1.TrustedRoot{Fingerprint: root.Fingerprint, NotAfter: &expires})
	}
	members := slices.Clone(trust.Members)
	slices.SortStableFunc(members, func(a, b *snapshot.MemberTrust) int { return rank(a) - rank(b) })
	for _, m := range members[:min(len(members), maxMemberTrusts)] {
		member := networkingv1.MemberTrust{Mesh: refOf(m.Mesh), State: string(m.State), Message: clip(m.Message)}
		if m.Report != nil && m.Report.Issuer != nil {
			member.Root, member.NotAfter = m.Report.Issuer.Root, m.Report.Issuer.NotAfter
		}
		out.Members = append(out.Members, member)
	}
	for _, ref := range trust.Established {
		out.Established = append(out.Established, refOf(ref))
	}
	for _, pin := range trust.Pins {
		out.TrustDomains = append(out.TrustDomains, networkingv1.MemberTrustDomains(pin))
	}
	return out
}

// rank is lower for a member that is waited for.
func rank(m *snapshot.MemberTrust) int {
	switch {
	case m.Message != "":
		return 0
	case !m.Established:
		return 1
	default:
		return 2
	}
}

func refOf(ref snapshot.Ref) commonv1.ObjectRef {
	return commonv1.ObjectRef{Name: ref.Name, Namespace: ref.Namespace}
}

// pendingTrust reports whether members do not trust each other yet.
func pendingTrust(vm *snapshot.VirtualMeshPlan) bool {
	return slices.ContainsFunc(vm.Issues, func(i snapshot.Issue) bool { return i.Code == snapshot.TrustPending }) ||
		vm.Trust != nil && vm.Trust.Stage == networkingv1.TrustWaiting && vm.Trust.RootsRead
}

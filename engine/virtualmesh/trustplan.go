package virtualmesh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file decides what the members of a VirtualMesh are to trust, and with which root
// each signs. Nothing is stored about how far a rotation has come: it follows from what the
// agents report, each time again. Two rules make it safe from any state, also if a part of
// it is out of date, or an agent or the management plane dies half-way:
//
//   - A member signs with another root than before only when all members trust that root.
//   - A root leaves the bundle only when all members say that they do not present it.
//
// A member whose agent does not answer, or whose cluster cannot be read, holds both back. What
// an agent says is without the namespaces that it leaves out (TrustReport.Behind).

// trustee is a member with what is known of its agent.
type trustee struct {
	*snapshot.MemberTrust
	mesh  *snapshot.MeshPlan
	facts clusterFacts
	// asked is what was asked of it last; nil if nothing was.
	asked *certificatesv1.IssuedCertificateSpec
	// takesPart: its certificates are, or were, of the VirtualMesh.
	takesPart bool
	// stored is the root of its certificates, as the status of the VirtualMesh says; empty if it does not.
	stored string
}

// trustPlanner plans the common trust of one VirtualMesh.
type trustPlanner struct {
	plan  *snapshot.VirtualMeshPlan
	facts TrustFacts
	// roots are those of the trust model that it asks for; nil if they are not known.
	roots    *snapshot.VirtualMeshRoots
	settings *settingsv1.Settings
	inv      *inventory.Inventory
	meshes   map[commonv1.ObjectRef]*snapshot.MeshPlan
}

// trust is nil if the VirtualMesh asks for none.
func (t *trustPlanner) trust(pins []snapshot.TrustPin) *snapshot.TrustPlan {
	plan, facts := t.plan, t.facts
	if plan.VirtualMesh.Spec.MtlsConfig.Issued() == nil {
		return nil
	}
	roots, unused := rootsFor(plan.VirtualMesh, facts.rootsOf(plan.Ref))
	t.roots = roots
	trust := &snapshot.TrustPlan{Usage: usageOf(plan.VirtualMesh), Paused: plan.VirtualMesh.Annotations[snapshot.TrustPauseAnnotation] == "true", Unused: unused, Pins: pins}
	members := t.trustees()
	if roots == nil {
		for _, m := range members {
			m.keep()
		}
		trust.Stored = facts.storedTrust(plan.Ref)
	} else {
		trust.Root, trust.Problem, trust.RootsRead = roots.Find(roots.Signs), roots.Problem, true
		t.ask(trust, members)
		trust.Stage, trust.Message = stageOf(trust, roots, members)
	}
	for _, m := range members {
		trust.Members = append(trust.Members, m.MemberTrust)
		m.mesh.Trust = m.MemberTrust
		if m.Established && isDistinct(plan, m.mesh) || facts.wasEstablished(plan, m.Mesh) {
			trust.Established = append(trust.Established, m.Mesh)
		}
	}
	return trust
}

// rootsFor leaves out the roots of the other trust model, and lists them as unused: gateways
// never trust a root of which members have CAs, and the other way round. The store learns
// later than the engine that the VirtualMesh asks for another model.
func rootsFor(vm *networkingv1.VirtualMesh, all *snapshot.VirtualMeshRoots) (roots *snapshot.VirtualMeshRoots, unused []string) {
	if all == nil {
		return nil, nil
	}
	roots = &snapshot.VirtualMeshRoots{VirtualMesh: all.VirtualMesh, Signs: all.Signs, Problem: all.Problem, Pins: all.Pins}
	for _, root := range all.Roots {
		if root.Gateways == isLimited(vm) {
			roots.Roots = append(roots.Roots, root)
		} else {
			unused = append(unused, root.Fingerprint)
		}
	}
	if slices.Contains(unused, roots.Signs) {
		roots.Signs, roots.Problem = "", cmp.Or(roots.Problem, snapshot.RootPending)
	}
	return roots, unused
}

// trustees are the members that have certificates of their own. Revisions of a control
// plane share those of the first.
func (t *trustPlanner) trustees() []*trustee {
	plan, facts, roots := t.plan, t.facts, t.roots
	var out []*trustee
	for _, mesh := range plan.Members {
		if ok, _ := mesh.Dialect.Supports(snapshot.VirtualMesh, "mtlsConfig"); !ok || mesh.SharesNamespace || mesh.Dialect.CA == nil && !isLimited(plan.VirtualMesh) {
			continue
		}
		m := &trustee{
			MemberTrust: &snapshot.MemberTrust{Mesh: mesh.Ref}, mesh: mesh, facts: facts.cluster(mesh.Cluster),
			stored: facts.storedRoot(plan.Ref, mesh.Ref),
		}
		handsOut := slices.ContainsFunc(mesh.Roots, func(root string) bool { return roots.Find(root) != nil })
		m.takesPart = handsOut || roots.Find(m.stored) != nil || facts.wasEstablished(plan, mesh.Ref)
		m.Ref = snapshot.Ref{Kind: snapshot.IssuedCertificate, Cluster: mesh.Cluster, Namespace: m.facts.agents, Name: mesh.Ref.Name}
		if isLimited(plan.VirtualMesh) {
			m.Ref.Name = snapshot.GatewayCertificateName(mesh.Ref.Name)
		}
		if o := m.facts.certificate(m.Ref.Name); o != nil {
			m.asked = &o.Spec
			m.State, m.Error, m.Report = o.Status.State, o.Status.Error, o.Status.Trust
			m.Current = m.Report != nil && m.facts.synced && o.Status.ObservedGeneration == o.Generation
			// Who may edit it on the cluster cannot name a root that is not the VirtualMesh's.
			m.takesPart = m.takesPart || o.Spec.Trust != nil && roots.Find(o.Spec.Trust.Root) != nil
		}
		out = append(out, m)
	}
	return out
}

// keep leaves what was asked as it is. Nothing is signed for it: who administers the cluster may
// have written it.
func (m *trustee) keep() {
	m.Spec = m.asked
	if m.asked != nil && m.asked.Trust != nil {
		m.Signs = m.asked.Trust.Root
	}
}

// ask decides what is asked of the members.
func (t *trustPlanner) ask(trust *snapshot.TrustPlan, members []*trustee) {
	plan, roots := t.plan, t.roots
	for _, m := range members {
		m.Signs = signs(m, trust, roots, members)
	}
	for _, root := range roots.Roots {
		if root == trust.Root || trust.Paused || trust.Root == nil || slices.ContainsFunc(members, func(m *trustee) bool { return m.needs(root) }) {
			trust.Roots = append(trust.Roots, root)
		} else {
			trust.Unused = append(trust.Unused, root.Fingerprint)
		}
	}
	for _, m := range members {
		root := roots.Find(m.Signs)
		if root == nil {
			m.keep() // there is no root, or the store has lost it
			continue
		}
		granted := true
		switch {
		case isLimited(plan.VirtualMesh):
			m.Spec = gatewayCertificateSpec(plan, m.mesh, root, trust.Roots)
		case !asksForTrustDomains(plan):
			m.Spec = t.certificateSpec(m, root, trust.Roots)
		default:
			pin := snapshot.PinOf(trust.Pins, m.mesh.Ref.Name)
			if pin == nil {
				m.keep()
				continue
			}
			m.Spec = t.certificateSpec(m, root, trust.Roots)
			m.Spec.Trust.TrustDomains = slices.Sorted(slices.Values(pin.Domains))
			granted = snapshot.PinOf(roots.Pins, m.mesh.Ref.Name) != nil
		}
		if granted {
			m.Grant = grantOf(m.Spec)
		}
		if m.Spec.PodBounceDirective != nil {
			m.Restart = t.restarts(m.mesh)
		}
	}
}

// signs is the root that is to sign for a member: the one that the VirtualMesh asks for, as
// soon as all who may verify it trust it.
func signs(m *trustee, trust *snapshot.TrustPlan, roots *snapshot.VirtualMeshRoots, members []*trustee) string {
	before := ""
	if m.asked != nil && m.asked.Trust != nil && roots.Find(m.asked.Trust.Root) != nil {
		before = m.asked.Trust.Root
	} else if m.asked == nil && m.takesPart {
		before = m.former(roots, members)
	}
	switch {
	case trust.Root == nil || trust.Paused || before == trust.Root.Fingerprint:
		return before
	case before == "" && !m.takesPart:
		return trust.Root.Fingerprint // nobody verifies it yet but its own mesh, of which the agent takes care
	}
	for _, other := range members {
		if other.takesPart && !other.trusts(trust.Root) {
			return before
		}
	}
	return trust.Root.Fingerprint
}

// former is the root that signs for a member of which nothing is asked any more, although it has certificates of the
// VirtualMesh: somebody deleted the request, or its agent has moved. It is the one that the status says, or else that of
// another member, or one that the control planes of all hand out; empty if there is none. As long as a member is asked for
// nothing, nobody can get another root.
func (m *trustee) former(roots *snapshot.VirtualMeshRoots, members []*trustee) string {
	known := []string{m.stored}
	for _, other := range members {
		if other.takesPart && other.asked != nil && other.asked.Trust != nil {
			known = append(known, other.asked.Trust.Root)
		}
	}
	for _, other := range members {
		known = append(known, other.stored)
	}
	for _, root := range roots.Roots {
		if !slices.ContainsFunc(members, func(o *trustee) bool { return o.takesPart && !slices.Contains(o.mesh.Roots, root.Fingerprint) }) {
			known = append(known, root.Fingerprint)
		}
	}
	for _, root := range known {
		if roots.Find(root) != nil {
			return root
		}
	}
	return ""
}

// trusts reports whether all of a member trusts a root and will go on to: it says so, and it
// is asked to.
func (m *trustee) trusts(root *snapshot.Root) bool {
	return m.Current && slices.Contains(m.Report.Trusted, root.Fingerprint) && m.isAskedToTrust(root)
}

// isAskedToTrust reports whether a root is in the bundle that was asked of a member last.
func (m *trustee) isAskedToTrust(root *snapshot.Root) bool {
	return m.asked.Trust != nil && strings.Contains(m.asked.Trust.Bundle, strings.TrimRight(root.PEM, "\n"))
}

// needs reports whether a root has to stay trusted because of a member: it presents it, is
// asked to, or may do so for all that is known. A root that has left the bundle of a member
// did so when nobody needed it; that the agent has not answered to that yet does not bring it back,
// or the answer would never be awaited.
func (m *trustee) needs(root *snapshot.Root) bool {
	switch {
	case m.Signs == root.Fingerprint || m.asked != nil && m.asked.Trust != nil && m.asked.Trust.Root == root.Fingerprint:
		return true
	case !m.takesPart && m.asked == nil:
		return false
	case m.Report == nil || !m.Current && m.isAskedToTrust(root):
		return true
	}
	return slices.Contains(m.Report.Presented, root.Fingerprint) || m.Report.Issuer != nil && m.Report.Issuer.Root == root.Fingerprint
}

// stageOf says where the trust stands, and sets what each member waits for.
func stageOf(trust *snapshot.TrustPlan, roots *snapshot.VirtualMeshRoots, members []*trustee) (networkingv1.TrustStage, string) {
	if trust.Root == nil {
		return networkingv1.TrustWaiting, roots.Problem
	}
	var distributing, issuing, retiring []*trustee
	for _, m := range members {
		switch {
		case m.Report == nil || !slices.Contains(m.Report.Trusted, trust.Root.Fingerprint):
			distributing = append(distributing, m)
		case !slices.Equal(m.Report.Presented, []string{trust.Root.Fingerprint}):
			issuing = append(issuing, m)
		case len(m.Report.Trusted) > 1:
			retiring = append(retiring, m)
		}
		m.Established = m.Report != nil && slices.Equal(m.Report.Presented, []string{m.Signs}) && trustsAll(m.Report, trust.Roots)
		m.Message = m.waitsFor(trust.Root)
	}
	switch {
	case len(distributing) > 0:
		return networkingv1.TrustDistributing, waiting("trust the root", distributing)
	case len(issuing) > 0:
		return networkingv1.TrustIssuing, waiting("present certificates of the root", issuing)
	case len(retiring) > 0:
		return networkingv1.TrustRetiring, waiting("trust no other root any more", retiring)
	case len(roots.Roots) > 1:
		return networkingv1.TrustRetiring, "no member uses any other root; its key is deleted soon, and until then the rotation can be rolled back"
	}
	return networkingv1.TrustEstablished, ""
}

func trustsAll(report *certificatesv1.TrustReport, roots []*snapshot.Root) bool {
	return !slices.ContainsFunc(roots, func(r *snapshot.Root) bool { return !slices.Contains(report.Trusted, r.Fingerprint) })
}

// waiting says what a stage waits for.
func waiting(what string, members []*trustee) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Mesh.Name
	}
	text := fmt.Sprintf("%s must %s: %s", snapshot.Count(len(members), "member"), what, firstOf(names, maxWaiting))
	if first := members[0]; first.Message != "" {
		text += "; " + first.Mesh.Name + ": " + first.Message
	}
	return text
}

// maxWaiting bounds the members that a message names.
const maxWaiting = 3

// waitsFor says what one member waits for; empty if for nothing.
func (m *trustee) waitsFor(root *snapshot.Root) string {
	switch {
	case !m.facts.read:
		return "cluster " + m.facts.name + " has not been read yet"
	case !m.facts.synced:
		return "cluster " + m.facts.name + " cannot be read now, so nothing changes in the trust of the others that it would have to follow"
	case m.Report == nil && m.Error != "":
		return m.Error
	case m.Report == nil:
		return fmt.Sprintf("its agent has not answered: `meshctl agent` has to run for namespace %s of cluster %s", m.facts.agents, m.facts.name)
	case m.Error != "":
		return m.Error
	case m.Signs != root.Fingerprint:
		return strings.TrimSpace("it keeps its certificate until all members trust the new root. " + m.Report.WaitingFor)
	default:
		return m.Report.WaitingFor
	}
}

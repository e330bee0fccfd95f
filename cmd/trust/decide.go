package trust

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// decision is what a command does to a VirtualMesh.
type decision struct {
	// annotations to set, or to remove if nil; empty if there is nothing to do.
	annotations map[string]*string
	// done says what was done, or why there was nothing to do.
	done string
	// from is the root that signs before, and to the one that is to sign after; empty if
	// that is not known yet.
	from, to string
	// leftOut are the namespaces that are not waited for, and underWay says that nothing else is
	// asked for.
	leftOut  []string
	underWay bool
}

// rotationBegins is how long after it was asked for a rotation has begun for sure, and cannot
// have ended: the former root is kept for as long after its last use.
const rotationBegins = 5 * time.Minute

// name is how a VirtualMesh is called.
func name(vm *networkingv1.VirtualMesh) string {
	return "VirtualMesh " + vm.Namespace + "/" + vm.Name
}

// refuse is an error about a VirtualMesh; the format ends with the next step.
func refuse(vm *networkingv1.VirtualMesh, format string, args ...any) error {
	return fmt.Errorf("%s: %s", name(vm), fmt.Sprintf(format, args...))
}

// shared is an error if a VirtualMesh gives its members no common root.
func shared(vm *networkingv1.VirtualMesh) error {
	if vm.Spec.MtlsConfig.Issued() == nil {
		return refuse(vm, "its meshes have no shared trust; set spec.mtlsConfig.shared to give them one")
	}
	return nil
}

// generated is an error if the root is not made by meshctl, and says how such a root changes.
func generated(vm *networkingv1.VirtualMesh) error {
	if err := shared(vm); err != nil {
		return err
	}
	s := vm.Spec.MtlsConfig.Issued()
	if s.IntermediateCertificateAuthority != nil {
		return refuse(vm, "Vault signs for it; exchange the root in Vault")
	}
	if ca := s.RootCertificateAuthority; ca != nil && ca.Secret != nil {
		return refuse(vm, "its root is your own; put another root and its key into Secret %s/%s, or name another Secret in spec.mtlsConfig.shared.rootCertificateAuthority.secret. "+
			"The exchange follows by itself: the certificate of the former root is kept until no member needs it", ca.Secret.Namespace, ca.Secret.Name)
	}
	return nil
}

// status is an error if no server has written where the trust stands.
func status(vm *networkingv1.VirtualMesh) (*networkingv1.TrustStatus, error) {
	if vm.Status.Trust == nil || vm.Status.Trust.Stage == "" {
		return nil, refuse(vm, "no server has written where its trust stands; check that one runs: meshctl serve")
	}
	return vm.Status.Trust, nil
}

func paused(vm *networkingv1.VirtualMesh) bool {
	return vm.Annotations[snapshot.TrustPauseAnnotation] == "true"
}

// pinned is the root that an annotation names, as a fingerprint; empty if none does.
func pinned(vm *networkingv1.VirtualMesh) string {
	return fingerprint(vm.Annotations[snapshot.TrustRootAnnotation])
}

// fingerprint is what people write of one, in the form of the status.
func fingerprint(text string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(text), ":", ""))
}

// rotate asks for another root, and leaves out namespaces; or it does so in the rotation that is under way.
func rotate(vm *networkingv1.VirtualMesh, meshes []*discoveryv1.Mesh, leaveOut []string, now time.Time) (*decision, error) {
	if err := shared(vm); err != nil {
		return nil, err
	}
	if err := mayLeaveOut(vm, meshes, leaveOut); err != nil {
		return nil, err
	}
	if len(leaveOut) > 0 && underWay(vm) {
		return goOn(vm, leaveOut), nil // whoever makes the root
	}
	if err := generated(vm); err != nil {
		return nil, err
	}
	trust, err := status(vm)
	if err != nil {
		return nil, err
	}
	if underWay(vm) {
		return nil, refuse(vm, "a rotation, or the entry of a member, is under way (%s%s); wait until it is ESTABLISHED: meshctl trust show %s. "+
			"If a namespace holds it up, go on without it: meshctl trust rotate %[3]s --leave-out NAMESPACE",
			trust.Stage, prefixed(": ", trust.Message), vm.Name)
	}
	if paused(vm) {
		return nil, refuse(vm, "its trust is paused, so that no root is made; first: meshctl trust resume %s", vm.Name)
	}
	out := &decision{from: trust.Root, leftOut: leaveOut}
	if at, err := time.Parse(time.RFC3339, vm.Annotations[snapshot.TrustRotateAnnotation]); err == nil && pinned(vm) == "" &&
		now.Sub(at) < rotationBegins && at.Sub(now) < rotationBegins {
		if len(leaveOut) > 0 {
			return goOn(vm, leaveOut), nil
		}
		out.done = fmt.Sprintf("%s: a new root was already asked for at %s, and comes soon.", name(vm), at.UTC().Format(time.RFC3339))
		return out, nil
	}
	value := now.UTC().Format(time.RFC3339)
	out.annotations = map[string]*string{snapshot.TrustRotateAnnotation: &value}
	if _, ok := vm.Annotations[snapshot.TrustRootAnnotation]; ok {
		out.annotations[snapshot.TrustRootAnnotation] = nil
	}
	out.done = fmt.Sprintf("%s: a new root was asked for.", name(vm))
	before := vm.Annotations[snapshot.TrustLeaveOutAnnotation]
	switch {
	case len(leaveOut) > 0:
		text := strings.Join(leaveOut, " ")
		out.annotations[snapshot.TrustLeaveOutAnnotation] = &text
		out.done += fmt.Sprintf(" It does not wait for %s.", strings.Join(leaveOut, ", "))
	case before != "":
		out.annotations[snapshot.TrustLeaveOutAnnotation] = nil
		out.done += fmt.Sprintf(" It waits for %s, which the rotation before left out.", strings.Join(strings.Fields(before), ", "))
	}
	return out, nil
}

// underWay reports whether a root is being exchanged, or members join.
func underWay(vm *networkingv1.VirtualMesh) bool {
	trust := vm.Status.Trust
	return trust != nil && !slices.Contains([]networkingv1.TrustStage{"", networkingv1.TrustEstablished, networkingv1.TrustWaiting}, trust.Stage)
}

// goOn leaves namespaces out of what is under way, beside those that are left out of it.
func goOn(vm *networkingv1.VirtualMesh, leaveOut []string) *decision {
	all := append(strings.Fields(vm.Annotations[snapshot.TrustLeaveOutAnnotation]), leaveOut...)
	slices.Sort(all)
	text := strings.Join(slices.Compact(all), " ")
	out := &decision{from: vm.Status.Trust.Root, leftOut: leaveOut, underWay: true}
	if underWay(vm) {
		out.from, out.to = "", vm.Status.Trust.Root
	}
	if text == vm.Annotations[snapshot.TrustLeaveOutAnnotation] {
		out.done = fmt.Sprintf("%s: %s are left out already; nothing changed.", name(vm), strings.Join(leaveOut, ", "))
		return out
	}
	out.annotations = map[string]*string{snapshot.TrustLeaveOutAnnotation: &text}
	out.done = fmt.Sprintf("%s: the rotation does not wait for %s any more.", name(vm), strings.Join(leaveOut, ", "))
	return out
}

// mayLeaveOut is an error for what no rotation can be without, and for what is nowhere.
func mayLeaveOut(vm *networkingv1.VirtualMesh, meshes []*discoveryv1.Mesh, leaveOut []string) error {
	if len(leaveOut) > 0 && vm.Spec.MtlsConfig.Limited != nil {
		return refuse(vm, "only gateways have certificates of its root (mtlsConfig.limited), so that no namespace is waited for; run the command without --leave-out")
	}
	for _, one := range leaveOut {
		if _, problem := snapshot.LeftOut(one, "any"); problem != "" || len(strings.Fields(one)) != 1 {
			return refuse(vm, "--leave-out %.80q is neither NAMESPACE nor CLUSTER/NAMESPACE", one)
		}
	}
	clusters := map[string]bool{}
	for _, m := range meshes {
		if m.Spec.Istio == nil || !slices.Contains(vm.Spec.Meshes, commonv1.ObjectRef{Name: m.Name, Namespace: m.Namespace}) {
			continue
		}
		at := m.Spec.Istio.Installation
		clusters[at.Cluster] = true
		if all, _ := snapshot.LeftOut(strings.Join(leaveOut, " "), at.Cluster); slices.Contains(all, at.Namespace) {
			return refuse(vm, "namespace %s of cluster %s cannot be left out: it has the control plane of mesh %s; if the whole mesh is to be, take it out of the VirtualMesh",
				at.Namespace, at.Cluster, m.Name)
		}
	}
	for _, one := range leaveOut {
		if cluster, _, isOne := strings.Cut(one, "/"); isOne && !clusters[cluster] {
			return refuse(vm, "no member is in cluster %.80q; the clusters of its members: %s", cluster, strings.Join(slices.Sorted(maps.Keys(clusters)), ", "))
		}
	}
	return nil
}

func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// pause holds the trust where it stands.
func pause(vm *networkingv1.VirtualMesh) (*decision, error) {
	if err := shared(vm); err != nil {
		return nil, err
	}
	if paused(vm) {
		return &decision{done: name(vm) + ": its trust was paused before; nothing changed."}, nil
	}
	yes := "true"
	return &decision{
		annotations: map[string]*string{snapshot.TrustPauseAnnotation: &yes},
		done:        fmt.Sprintf("%s: its trust is paused. Certificates are still renewed. To go on: meshctl trust resume %s", name(vm), vm.Name),
	}, nil
}

// resume lets the trust go on. It also works where there is none any more.
func resume(vm *networkingv1.VirtualMesh) (*decision, error) {
	if _, ok := vm.Annotations[snapshot.TrustPauseAnnotation]; !ok {
		return &decision{done: name(vm) + ": its trust was not paused; nothing changed."}, nil
	}
	return &decision{
		annotations: map[string]*string{snapshot.TrustPauseAnnotation: nil},
		done:        name(vm) + ": its trust goes on.",
	}, nil
}

// rollback lets a root sign that did so before. wanted is the beginning of its fingerprint;
// without one, it is the only other root that there is.
func rollback(vm *networkingv1.VirtualMesh, wanted string) (*decision, error) {
	if err := generated(vm); err != nil {
		return nil, err
	}
	trust, err := status(vm)
	if err != nil {
		return nil, err
	}
	to, err := target(vm, trust, fingerprint(wanted))
	if err != nil {
		return nil, err
	}
	out := &decision{from: trust.Root, to: to}
	switch pin := pinned(vm); {
	case pin == to:
		out.done = fmt.Sprintf("%s: root %s was chosen to sign before; nothing changed.", name(vm), digits(to))
		return out, nil
	case pin == "" && to == trust.Root:
		out.done = fmt.Sprintf("%s: root %s signs already; nothing changed.", name(vm), digits(to))
		return out, nil
	}
	out.annotations = map[string]*string{snapshot.TrustRootAnnotation: &to}
	if _, ok := vm.Annotations[snapshot.TrustRotateAnnotation]; ok {
		out.annotations[snapshot.TrustRotateAnnotation] = nil // or it would ask for another root once this one is let go
	}
	ifThere := ""
	if !slices.ContainsFunc(trust.Roots, func(r networkingv1.TrustedRoot) bool { return r.Fingerprint == to }) {
		ifThere = ", if its key is still there"
	}
	out.done = fmt.Sprintf("%s: root %s is to sign again%s. It stays, also past its options, until the next: meshctl trust rotate %s", name(vm), digits(to), ifThere, vm.Name)
	if paused(vm) {
		out.done += fmt.Sprintf("\nIts trust is paused, so that nothing changes before: meshctl trust resume %s", vm.Name)
	}
	return out, nil
}

// target is the root that a rollback leads to.
func target(vm *networkingv1.VirtualMesh, trust *networkingv1.TrustStatus, wanted string) (string, error) {
	var all, others []string
	for _, r := range trust.Roots {
		all = append(all, r.Fingerprint)
		if r.Fingerprint != trust.Root {
			others = append(others, r.Fingerprint)
		}
	}
	if wanted != "" {
		return pick(vm, trust, all, wanted)
	}
	if pin := pinned(vm); slices.Contains(all, pin) {
		return pin, nil // a rollback that is under way, or complete
	}
	switch {
	case len(others) == 1:
		return others[0], nil
	case len(others) > 1:
		return "", refuse(vm, "it has several former roots; choose one with --root: %s", list(others))
	case trust.Stage == networkingv1.TrustRetiring:
		return "", refuse(vm, "no member needs the former root any more, and its key is deleted within minutes; until then, name it with --root and all 64 digits of its fingerprint")
	}
	return "", refuse(vm, "there is no former root to return to: it has only root %s. To exchange it for a new one: meshctl trust rotate %s", digits(trust.Root), vm.Name)
}

// pick is the root whose fingerprint begins as wanted. While the former root is about to be
// deleted, the status no longer names it.
func pick(vm *networkingv1.VirtualMesh, trust *networkingv1.TrustStatus, all []string, wanted string) (string, error) {
	var found []string
	for _, f := range all {
		if strings.HasPrefix(f, wanted) {
			found = append(found, f)
		}
	}
	whole := len(wanted) == 64 && strings.Trim(wanted, "0123456789abcdef") == ""
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", refuse(vm, "several roots begin with %s; give more digits to --root: %s", wanted, list(found))
	case whole && trust.Stage == networkingv1.TrustRetiring:
		return wanted, nil
	}
	return "", refuse(vm, "no root begins with %.64q; choose one with --root: %s", wanted, cmp.Or(list(all), "there is none"))
}

// digits shortens a fingerprint for a sentence.
func digits(f string) string { return f[:min(len(f), 16)] }

func list(fingerprints []string) string {
	short := snapshot.ShortFingerprintsFrom(16, fingerprints)
	out := make([]string, len(fingerprints))
	for i, f := range fingerprints {
		out[i] = short(f)
	}
	return strings.Join(out, ", ")
}

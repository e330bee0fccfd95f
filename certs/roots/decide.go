package roots

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// facts are what is known of the roots of a VirtualMesh.
type facts struct {
	// record is what is recorded; nil if nothing is. recordProblem says why it cannot be read.
	record        *Record
	recordProblem string
	vm            *networkingv1.VirtualMesh
	ref           snapshot.Ref
	// have are its Secrets in the management plane's namespace.
	have []*stored
	// user is the user's Secret; nil if the root is generated, or that of a Vault.
	user *userSecret
	// vault is what the Vault says that signs; nil if none does.
	vault *vaultRoot
	// before is what the engine was told last; nil if nothing was.
	before *snapshot.VirtualMeshRoots
	// dropped are fingerprints of roots whose Secrets were deleted because nobody uses them.
	dropped map[string]bool
	now     time.Time
}

// userSecret is the Secret with a user's root.
type userSecret struct {
	// pending: it was not read yet.
	pending bool
	// stored is nil if it cannot be used; problem says why.
	*stored
	problem string
}

// decision follows from facts.
type decision struct {
	// roots are for the engine; nil if there is nothing to tell yet.
	roots *snapshot.VirtualMeshRoots
	// authorities have the keys, by the fingerprint of their roots.
	authorities map[string]*pki.Authority
	// make is a root to be generated; nil for none.
	make *order
	// keep are certificates to be kept, and record the fingerprints of roots to be recorded.
	keep   []*x509.Certificate
	record []string
	// made: one of these was made here.
	made bool
}

// decider collects a decision.
type decider struct {
	facts
	decision
	roots map[string]*snapshot.Root
	// newest is the newest usable generated root; nil if there is none. unrecorded is how many
	// there are that do not count.
	newest     *stored
	unrecorded int
	problems   []string
}

// decide is a function of the facts.
func decide(f facts) decision {
	d := &decider{facts: f, roots: map[string]*snapshot.Root{}, decision: decision{authorities: map[string]*pki.Authority{}}}
	slices.SortFunc(d.have, func(a, b *stored) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.ref.Name, b.ref.Name))
	})
	if d.recordProblem != "" { // nothing changes until it can be read
		out := snapshot.VirtualMeshRoots{VirtualMesh: d.ref}
		if d.before != nil {
			out = *d.before
		}
		out.Problem = d.recordProblem
		d.decision.roots = &out
		return d.decision
	}
	if _, _, problem := snapshot.AcceptedClaims(d.vm.Annotations[snapshot.TrustAcceptAnnotation]); problem != "" {
		d.problems = append(d.problems, "annotation "+snapshot.TrustAcceptAnnotation+": "+problem)
	}
	d.addStored()
	if d.user != nil && d.user.pending || d.vault != nil && d.vault.pending {
		d.decision.roots = d.before
		return d.decision
	}
	var signs string
	switch {
	case d.user != nil:
		signs = d.addUser()
		d.keepMissing()
	case d.vault != nil:
		signs = d.addVault()
		d.keepMissing()
		signs = d.vaultSigns(signs)
	default:
		d.keepMissing()
		signs = d.generated()
	}
	signs = d.pinned(signs)
	if len(d.roots) == 0 && len(d.problems) == 0 {
		return d.decision
	}
	out := &snapshot.VirtualMeshRoots{VirtualMesh: d.ref, Signs: signs, Problem: strings.Join(d.problems, "; also, "), Pins: d.facts.record.clone().Pins}
	for _, root := range d.roots {
		out.Roots = append(out.Roots, root)
	}
	slices.SortFunc(out.Roots, func(a, b *snapshot.Root) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	if signs == "" && out.Problem == "" {
		out.Problem = snapshot.RootPending
	}
	d.decision.roots = out
	return d.decision
}

// addStored lists the roots in the store. A key that signs is preferred to a certificate alone.
func (d *decider) addStored() {
	for _, o := range d.have {
		switch {
		case o.problem != "":
			if d.user == nil && d.vault == nil {
				d.problems = append(d.problems, o.problem)
			}
		case d.dropped[pki.Fingerprint(o.root)]:
		case !d.isMade(o) && !d.isRecorded(pki.Fingerprint(o.root)):
			if d.unrecorded++; d.unrecorded > 1 {
				continue // one is enough to say
			}
			d.problems = append(d.problems, fmt.Sprintf("%s has root %s, which this management plane has neither made nor recorded, so that it does not count; "+
				"if it is to: `meshctl trust accept %s %[2]s`; if not, delete the Secret", describe(o.ref), pki.Fingerprint(o.root), d.vm.Name))
		case o.authority == nil:
			d.add(o.root, nil, snapshot.Ref{})
		default:
			d.add(o.root, o.authority, o.ref)
			if o.expired(d.now) == "" {
				d.newest = o
			}
		}
	}
}

// isMade reports whether a root was made here and is not recorded yet.
func (d *decider) isMade(o *stored) bool {
	if !o.ours || o.making == "" || d.facts.record == nil || o.making != d.facts.record.Making {
		return false
	}
	d.decision.record, d.decision.made = append(d.decision.record, pki.Fingerprint(o.root)), true
	return true
}

// isRecorded reports whether a root counts. Who may create a Secret may not make it a root by that. What
// a management plane before there were records has written into the status counts, and is recorded.
func (d *decider) isRecorded(fingerprint string) bool {
	if d.facts.record != nil && len(d.facts.record.Roots) > 0 {
		return slices.Contains(d.facts.record.Roots, fingerprint)
	}
	trust := d.vm.Status.Trust
	if trust == nil || trust.Root != fingerprint && !slices.ContainsFunc(trust.Roots, func(r networkingv1.TrustedRoot) bool { return r.Fingerprint == fingerprint }) {
		return false
	}
	d.decision.record = append(d.decision.record, fingerprint)
	return true
}

// add lists a root. A key replaces none.
func (d *decider) add(cert *x509.Certificate, authority *pki.Authority, secret snapshot.Ref) string {
	fingerprint := pki.Fingerprint(cert)
	if d.roots[fingerprint] == nil || authority != nil {
		d.roots[fingerprint] = &snapshot.Root{
			Fingerprint: fingerprint, PEM: string(pki.Chain{cert}.PEM()), NotAfter: cert.NotAfter, Secret: secret, Gateways: d.user == nil && d.vault == nil && forGateways(cert),
		}
	}
	if authority != nil {
		d.authorities[fingerprint] = authority
	}
	return fingerprint
}

// addUser lists the user's root, if its certificate is kept, and returns its fingerprint.
func (d *decider) addUser() string {
	problem := d.user.problem
	if problem == "" {
		if problem = d.user.expired(d.now); problem != "" {
			problem += "; put a valid root into it"
		}
	}
	if problem != "" {
		d.problems = append(d.problems, problem)
		return ""
	}
	if !d.kept(d.user.root) {
		return signer(d.before)
	}
	if left := d.user.root.NotAfter.Sub(d.now); left < leastLife(d.vm, d.user.root) {
		d.problems = append(d.problems, fmt.Sprintf("%s: its certificate expires at %s; put another root into it, or another Secret into the VirtualMesh",
			describe(d.user.ref), d.user.root.NotAfter.UTC().Format(time.RFC3339)))
	}
	return d.add(d.user.root, d.user.authority, d.user.ref)
}

// kept reports whether the certificate of a root that was made elsewhere is kept here. Until it is, the former root signs.
func (d *decider) kept(root *x509.Certificate) bool {
	fingerprint := pki.Fingerprint(root)
	if d.roots[fingerprint] != nil {
		return true
	}
	d.keep = append(d.keep, root)
	d.decision.record = append(d.decision.record, fingerprint)
	return d.before.Find(fingerprint) != nil
}

func signer(roots *snapshot.VirtualMeshRoots) string {
	if roots == nil {
		return ""
	}
	return roots.Signs
}

// keepMissing keeps roots whose Secret somebody else deleted: members may still present
// certificates of them.
func (d *decider) keepMissing() {
	if d.before == nil {
		return
	}
	for _, root := range d.before.Roots {
		if d.roots[root.Fingerprint] != nil || d.dropped[root.Fingerprint] || !d.isRecorded(root.Fingerprint) {
			continue
		}
		certs, err := pki.ReadCertificates([]byte(root.PEM))
		if err != nil {
			continue // it was written by add
		}
		d.add(certs[0], nil, snapshot.Ref{})
		d.keep = append(d.keep, certs[0])
	}
}

// generated chooses the generated root that signs, and orders another if one is due.
func (d *decider) generated() string {
	if d.newest == nil {
		d.orderFirst()
		return ""
	}
	if !d.fits(d.newest.root) { // who has a CA of a shared root must not speak for gateways
		d.orderNext(d.newest, "the VirtualMesh asks for another trust model")
		if d.make == nil && len(d.problems) == 0 {
			d.problems = append(d.problems, fmt.Sprintf("a root for its trust model is not made while annotation %s or %s is set; remove it",
				snapshot.TrustPauseAnnotation, snapshot.TrustRootAnnotation))
		}
		return ""
	}
	d.orderNext(d.newest, due(d.vm, d.newest, d.now))
	return pki.Fingerprint(d.newest.root)
}

// limited: the root is for gateways only.
func (d *decider) limited() bool { return d.vm.Spec.MtlsConfig.Limited != nil }

// fits reports whether a root is for what the VirtualMesh asks for.
func (d *decider) fits(root *x509.Certificate) bool { return forGateways(root) == d.limited() }

// orderFirst orders a root for a VirtualMesh that has none to sign with. One that cannot be used
// is replaced only if that is asked for.
func (d *decider) orderFirst() {
	var unusable *stored
	for _, o := range d.have {
		if o.authority != nil && !d.isMade(o) && !d.isRecorded(pki.Fingerprint(o.root)) {
			continue
		}
		if o.authority != nil && !d.dropped[pki.Fingerprint(o.root)] {
			d.problems = append(d.problems, o.expired(d.now))
		}
		if o.authority != nil || o.problem != "" {
			unusable = o
		}
	}
	if unusable == nil && d.unrecorded > 0 {
		return // it may be the one
	}
	if unusable == nil {
		d.make = &order{name: firstName(d.ref), cause: "the VirtualMesh has no root", options: generatedOptions(d.vm)}
		return
	}
	d.problems[len(d.problems)-1] += fmt.Sprintf("; to have another root generated, annotate the VirtualMesh with %s and the time now", snapshot.TrustRotateAnnotation)
	d.orderNext(unusable, "")
}

// orderNext orders a root that follows another, if there is a cause or the user asks for it.
func (d *decider) orderNext(before *stored, cause string) {
	at, problem := rotateAsked(d.vm, d.now)
	if problem != "" {
		d.problems = append(d.problems, problem)
	}
	value := ""
	if at.After(before.created) && before.rotate != d.vm.Annotations[snapshot.TrustRotateAnnotation] {
		value = d.vm.Annotations[snapshot.TrustRotateAnnotation]
		cause = "annotation " + snapshot.TrustRotateAnnotation + "=" + value
	}
	held := d.vm.Annotations[snapshot.TrustPauseAnnotation] == "true" || d.vm.Annotations[snapshot.TrustRootAnnotation] != ""
	if cause == "" || held {
		return
	}
	if len(d.roots) >= maxRoots {
		d.problems = append(d.problems, fmt.Sprintf("no new root is generated (%s), because there are %d already; wait until members have left the former ones", cause, len(d.roots)))
		return
	}
	d.make = &order{name: laterName(d.ref, "after", string(before.uid)), cause: cause, rotate: value, options: generatedOptions(d.vm)}
}

// pinned is the root that an annotation names, or else the one that would sign without.
func (d *decider) pinned(signs string) string {
	value := d.vm.Annotations[snapshot.TrustRootAnnotation]
	if value == "" {
		return signs
	}
	named := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(value), ":", ""))
	if d.vault != nil {
		if named != signs {
			d.problems = append(d.problems, fmt.Sprintf("annotation %s=%.80q cannot be followed: a Vault signs with the root that it has; "+
				"change its issuer back in Vault, or name that issuer in caPath, and remove the annotation", snapshot.TrustRootAnnotation, value))
		}
		return signs
	}
	why := "the VirtualMesh has no such root"
	if root := d.roots[named]; root != nil {
		switch {
		case root.Gateways != d.limited():
			why = "it was made for another trust model"
		case d.authorities[named] != nil:
			return named
		default:
			why = "its private key is gone"
		}
	}
	d.problems = append(d.problems, fmt.Sprintf("annotation %s=%.80q cannot be followed: %s; name one of those that have a key (%s), or remove the annotation",
		snapshot.TrustRootAnnotation, value, why, strings.Join(slices.Sorted(maps.Keys(d.authorities)), ", ")))
	if before := signer(d.before); d.authorities[before] != nil {
		return before
	}
	return signs
}

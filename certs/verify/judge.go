package verify

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// Judge says what follows from a look. It is pure.
func Judge(req Request, o Observed) Result {
	earlier := req.Earlier
	if earlier == nil {
		earlier = &certificatesv1.TrustReport{}
	}
	all, blind := answers(o)
	r := Result{Blind: blind, MultiRoot: multiRoot(o.ControlPlane)}
	if blind { // nothing new begins
		r.Signing, r.HandedOut = earlier.Signing, earlier.HandedOut
	} else {
		r.Signing, r.HandedOut = signing(all, earlier, o.Now), handedOut(all, earlier, o.Now)
	}
	d := newWorld(req, o, &r, all, earlier)
	r.judgeControlPlane(req, o)
	r.Behind = r.judgeBehind(req, o, d, earlier)
	o = r.withoutLeftOut(req, o, d)
	r.judgeNamespaces(req, o)
	r.judgeWorkloads(req, o, d)
	if blind { // nothing is better than it was
		r.Trusted = intersect(r.Trusted, earlier.Trusted)
		r.Presented = set(r.Presented, earlier.Presented)
		r.NeedsWorkloads = nil
	}
	return r
}

func multiRoot(replicas []Replica) bool {
	return len(replicas) > 0 && !slices.ContainsFunc(replicas, func(r Replica) bool { return !r.MultiRoot })
}

func newWorld(req Request, o Observed, r *Result, all []*Answer, earlier *certificatesv1.TrustReport) *world {
	d := &world{now: o.Now, skew: req.Skew, multiRoot: r.MultiRoot, handedOut: map[string]time.Time{}, leftOut: map[string][]string{}}
	for _, a := range all {
		d.signers = set(d.signers, []string{a.Root})
	}
	for _, h := range r.HandedOut {
		if h.Since != nil {
			d.handedOut[h.Root] = h.Since.Time
		}
	}
	if r.Signing != nil && r.Signing.Since != nil {
		d.signs, d.since = r.Signing.Root, r.Signing.Since.Time
		d.signers = set(d.signers, []string{d.signs})
	}
	known := knownRoots(req, o, all)
	d.former = set(earlier.Presented, d.signers)
	for _, b := range earlier.Behind {
		d.leftOut[b.Namespace] = b.Presented
	}
	if req.Earlier == nil { // what workloads got before the first look is among what is left of it
		d.former = set(d.former, known.Fingerprints())
	}
	d.subjects = uniqueSubjects(known)
	d.pushedAsOne = tookUpAsOne(o.ControlPlane, all, d)
	return d
}

// tookUpAsOne reports whether there is one pod of the control plane, which runs since before its signer's root was handed
// out, which was before it signed: then it took up both while it ran, and told the workloads when it had them. With several
// pods, a workload that is told by one may ask another that still has the former signer; the same while a pod replaces
// another. The text of the roots must have changed with the signer; it has if the signer's root is the first, as the agent
// writes it.
func tookUpAsOne(replicas []Replica, all []*Answer, d *world) bool {
	if len(replicas) != 1 || len(all) != 1 || replicas[0].Started.IsZero() || d.signs == "" {
		return false
	}
	root, ok := d.handedOut[d.signs]
	return ok && root.Before(d.since) && replicas[0].Started.Before(root.Add(-nodeClock)) && all[0].FirstRoot == d.signs
}

// knownRoots are all roots that are in sight.
func knownRoots(req Request, o Observed, all []*Answer) pki.Bundle {
	roots := req.Bundle.Union(req.Secret.Roots)
	for _, a := range all {
		roots = roots.Union(a.Bundle, pki.NewBundle(a.Chain.Root()))
	}
	for _, b := range o.Namespaces {
		roots = roots.Union(b)
	}
	return roots
}

func uniqueSubjects(roots pki.Bundle) map[string]string {
	count := map[string]int{}
	for _, cert := range roots.Certificates() {
		count[string(cert.RawSubject)]++
	}
	out := map[string]string{}
	for _, cert := range roots.Certificates() {
		if count[string(cert.RawSubject)] == 1 {
			out[pki.Fingerprint(cert)] = string(cert.RawSubject)
		}
	}
	return out
}

func (r *Result) judgeControlPlane(req Request, o Observed) {
	var t tally
	for i := range o.ControlPlane {
		replica := &o.ControlPlane[i]
		done := replica.Answer != nil && (req.Secret.Authority == nil || tookUp(replica.Answer, req.Secret))
		t.add(replica.Name, done, false)
		if reason := needsRestart(replica, req, o.Now); reason != "" && r.NeedsControlPlane == "" {
			r.NeedsControlPlane = reason
		}
		if replica.Err != nil {
			r.problem(fmt.Sprintf("control plane %s: %v", replica.Name, replica.Err))
		}
	}
	if t.Total == 0 {
		r.problem("control plane: no pod runs; nothing is signed until one does")
	}
	r.ControlPlane = t.TrustProgress
}

func (r *Result) problem(text string) {
	if len(r.Problems) < maxListed {
		r.Problems = append(r.Problems, text)
	}
}

func (r *Result) judgeNamespaces(req Request, o Observed) {
	var t tally
	for _, namespace := range namespaces(o.Workloads) {
		roots, exists := o.Namespaces[namespace]
		t.add(namespace, exists && roots.Covers(req.Secret.Roots), false)
	}
	r.Namespaces = t.TrustProgress
}

// namespaces are those with workloads, ascending.
func namespaces(workloads []Workload) []string {
	out := make([]string, 0, len(workloads))
	for i := range workloads {
		out = append(out, workloads[i].Namespace)
	}
	return set(out)
}

func (r *Result) judgeWorkloads(req Request, o Observed, d *world) {
	wanted := req.Bundle.Fingerprints()
	trusted := d.candidates(o)
	var trusting, presenting tally
	for i := range o.Workloads {
		w := &o.Workloads[i]
		trusted = slices.DeleteFunc(trusted, func(root string) bool { ok, _ := d.trusts(w, root); return !ok })
		roots, seen := d.presents(w)
		r.Presented = set(r.Presented, roots)
		all, allSeen := d.trustsAll(w, wanted)
		trusting.add(w.String(), all, !allSeen)
		one := len(roots) == 1
		presenting.add(w.String(), one && roots[0] == req.Root, !seen)
		r.restart(req, w, d)
	}
	r.Presented = set(r.Presented, d.signers)
	r.Trusted, r.Trusting, r.Presenting = trusted, trusting.TrustProgress, presenting.TrustProgress
}

// ready reports whether the control plane gives workloads all that the Secret has: who does not have it could have it.
func (r *Result) ready(d *world) bool {
	return r.ControlPlane.Total > 0 && r.ControlPlane.Done == r.ControlPlane.Total && r.NeedsControlPlane == "" && d.settled()
}

// isBehind reports whether a workload does not have what the Secret has; what it does not have yet, nobody can.
func isBehind(req Request, w *Workload, d *world) bool {
	roots, _ := d.presents(w)
	has, _ := d.trustsAll(w, req.Secret.Roots.Fingerprints())
	return !has || len(roots) != 1
}

// restart lists a workload if it has to restart.
func (r *Result) restart(req Request, w *Workload, d *world) {
	if r.ready(d) && !w.Ending && isBehind(req, w, d) {
		r.NeedsWorkloads = append(r.NeedsWorkloads, Pod{w.Namespace, w.Name, w.UID, w.Gateway})
	}
}

// candidates are the roots that are handed out, and that each namespace with workloads has.
func (d *world) candidates(o Observed) []string {
	var out []string
	for root := range d.handedOut {
		out = append(out, root)
	}
	for _, namespace := range namespaces(o.Workloads) {
		out = intersect(out, o.Namespaces[namespace].Fingerprints())
	}
	return set(out)
}

// settled reports whether a pod that is created from now on certainly counts as started after everything that the
// control plane has taken up. Restarts that come sooner might have to be made twice.
func (d *world) settled() bool {
	settle := func(at time.Time) bool { return d.now.After(at.Add(2*clocks + time.Second)) }
	for _, at := range d.handedOut {
		if !settle(at) {
			return false
		}
	}
	return d.signs != "" && settle(d.since)
}

func (d *world) trustsAll(w *Workload, roots []string) (all, seen bool) {
	all, seen = true, true
	for _, root := range roots {
		trusts, was := d.trusts(w, root)
		all, seen = all && trusts, seen && was
	}
	return all, seen
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// rootOf is the root of a chain that a workload presents, which may have been left out of it. If it is not known, the last
// certificate stands for it: whoever trusts the known roots does not trust that one.
func rootOf(chain []*x509.Certificate, known pki.Bundle) string {
	ordered, err := pki.NewChain(chain[0], append(slices.Clone(chain[1:]), known.Certificates()...)...)
	if err != nil {
		return pki.Fingerprint(chain[len(chain)-1])
	}
	return pki.Fingerprint(ordered.Root())
}

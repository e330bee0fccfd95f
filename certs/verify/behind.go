package verify

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// This file bounds what one namespace can hold up. Who may create pods in a namespace, or edit its ConfigMaps, could
// otherwise keep a root in use for ever that everybody else wants to be rid of.

// maxBehind bounds the namespaces in a report, and maxPresented the roots of each; the API has the same bounds. What does not
// fit in is waited for.
const (
	maxBehind    = 1000
	maxPresented = 64
)

// judgeBehind lists the namespaces that are behind, and leaves out those whose time is over. Time counts from when the
// control plane gave them all there is. While some of it cannot be asked, nothing changes.
func (r *Result) judgeBehind(req Request, o Observed, d *world, earlier *certificatesv1.TrustReport) []certificatesv1.NamespaceBehind {
	if r.Blind {
		return earlier.Behind
	}
	found := map[string]*certificatesv1.NamespaceBehind{}
	behind := func(namespace string) *certificatesv1.NamespaceBehind {
		if found[namespace] == nil {
			found[namespace] = &certificatesv1.NamespaceBehind{Namespace: namespace}
		}
		return found[namespace]
	}
	for _, namespace := range namespaces(o.Workloads) {
		if roots, exists := o.Namespaces[namespace]; !exists || !roots.Covers(req.Secret.Roots) {
			behind(namespace)
		}
	}
	for i := range o.Workloads {
		if w := &o.Workloads[i]; isBehind(req, w, d) {
			b := behind(w.Namespace)
			b.First = cmp.Or(b.First, w.String())
			b.Workloads++
		}
	}
	var out []certificatesv1.NamespaceBehind
	for namespace, b := range found {
		if i := slices.IndexFunc(earlier.Behind, func(e certificatesv1.NamespaceBehind) bool { return e.Namespace == namespace }); i >= 0 {
			b.Since = earlier.Behind[i].Since
		}
		if b.Since == nil || b.Since.After(o.Now) {
			if !r.ready(d) {
				continue // it could not be otherwise
			}
			b.Since = new(metav1.NewTime(roundUp(o.Now)))
		}
		late := req.Timeout > 0 && o.Now.Sub(b.Since.Time) >= req.Timeout
		b.LeftOut = namespace != req.Namespace && (late || slices.Contains(req.LeaveOut, namespace))
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b certificatesv1.NamespaceBehind) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out[:min(len(out), maxBehind)]
}

// withoutLeftOut is what was observed of those that are waited for. The others are restarted if they can be.
func (r *Result) withoutLeftOut(req Request, o Observed, d *world) Observed {
	presented := map[string][]string{}
	all := o.Workloads
	o.Workloads = nil
	for i := range all {
		w := &all[i]
		if !LeftOut(r.Behind, w.Namespace) {
			o.Workloads = append(o.Workloads, *w)
			continue
		}
		roots, _ := d.presents(w)
		presented[w.Namespace] = set(presented[w.Namespace], roots)
		r.restart(req, w, d)
	}
	if !r.Blind {
		for i := range r.Behind {
			roots := presented[r.Behind[i].Namespace]
			r.Behind[i].Presented = roots[:min(len(roots), maxPresented)]
		}
	}
	return o
}

package verify

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// liveUpdate is how long a control plane may take to see a Secret that it takes up by itself: the kubelet writes the
// volume within its sync period and the life of its cache, a minute each.
const liveUpdate = 3 * time.Minute

// answers are those of the replicas that sign. It is blind if one that may sign did not answer.
func answers(o Observed) (out []*Answer, blind bool) {
	for i := range o.ControlPlane {
		r := &o.ControlPlane[i]
		switch {
		case r.Answer != nil:
			out = append(out, r.Answer)
		case !r.Down:
			blind = true
		}
	}
	return out, blind || len(out) == 0
}

// since is when something began that is so now: as it was known, or from now on. Times in reports have no fractions of
// a second; they are rounded up, so that nothing seems to have begun too early.
func since(earlier *certificatesv1.RootSince, root string, now time.Time) certificatesv1.RootSince {
	if earlier != nil && earlier.Root == root && earlier.Since != nil && !earlier.Since.After(now) {
		return *earlier
	}
	at := metav1.NewTime(roundUp(now))
	return certificatesv1.RootSince{Root: root, Since: &at}
}

// roundUp is the next full second.
func roundUp(at time.Time) time.Time {
	if full := at.Truncate(time.Second); full.Before(at) {
		return full.Add(time.Second)
	}
	return at
}

// signing is the root that all sign with, since when; nil if they differ.
func signing(all []*Answer, earlier *certificatesv1.TrustReport, now time.Time) *certificatesv1.RootSince {
	for _, a := range all {
		if a.Root != all[0].Root {
			return nil
		}
	}
	out := since(earlier.Signing, all[0].Root, now)
	return &out
}

// handedOut are the roots that all hand out, since when.
func handedOut(all []*Answer, earlier *certificatesv1.TrustReport, now time.Time) []certificatesv1.RootSince {
	var out []certificatesv1.RootSince
	for _, root := range all[0].Bundle.Fingerprints() {
		if slices.ContainsFunc(all, func(a *Answer) bool { return !slices.Contains(a.Bundle.Fingerprints(), root) }) {
			continue
		}
		var before *certificatesv1.RootSince
		if i := slices.IndexFunc(earlier.HandedOut, func(r certificatesv1.RootSince) bool { return r.Root == root }); i >= 0 {
			before = &earlier.HandedOut[i]
		}
		out = append(out, since(before, root, now))
	}
	return out
}

// tookUp reports whether a replica signs with what is in the Secret, and hands out its roots.
func tookUp(a *Answer, secret pki.CACerts) bool {
	return secret.Authority != nil && a.Signer == pki.Fingerprint(secret.Authority.Chain()[0]) && a.Bundle.Equal(secret.Roots)
}

// needsRestart says why a replica cannot take up the Secret by itself; empty if it can or has. See handleEvent in Istio's
// pilot/pkg/bootstrap/istio_ca.go. What signs with a key of its own does not watch the Secret at all (createIstioCA).
func needsRestart(r *Replica, req Request, now time.Time) string {
	a := r.Answer
	if a == nil || req.Secret.Authority == nil || tookUp(a, req.Secret) {
		return ""
	}
	texts := len(req.SecretRoots) > 0
	same := texts && string(a.BundlePEM) == string(req.SecretRoots) || !texts && a.Bundle.Equal(req.Secret.Roots)
	subset := a.Bundle.Covers(req.Secret.Roots) || req.Secret.Roots.Covers(a.Bundle)
	switch {
	case a.Signer == a.Root && len(a.Bundle.Certificates()) == 1: // one that was put into the Secret hands out other roots, too
		return fmt.Sprintf("%s signs with a key of its own, and reads the Secret only when it starts", r.Name)
	case !same && !r.MultiRoot:
		return fmt.Sprintf("%s takes up other roots only when it starts (ISTIO_MULTIROOT_MESH is not set)", r.Name)
	case !same && !subset:
		return fmt.Sprintf("%s takes up roots while it runs only if it adds or removes some, not both", r.Name)
	case !req.SecretWritten.IsZero() && now.Sub(req.SecretWritten) > liveUpdate:
		return fmt.Sprintf("%s has not taken up the Secret within %s", r.Name, liveUpdate)
	}
	return ""
}

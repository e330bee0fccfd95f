package agent

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// defaultSettleAfter is how long after a change of their Secret gateways are taken to have loaded it. What they have loaded
// cannot be seen: istiod watches the Secret, waits up to 10 s for more changes (PILOT_DEBOUNCE_MAX), and pushes it; a large push
// takes seconds, and an Envoy that is starting or warming uses it some seconds later. A minute is several times that.
const defaultSettleAfter = time.Minute

// loaded is what gateways may have loaded besides what their Secret has, as an annotation of the Secret. Who may edit it may
// exchange the certificate, too: it is believed as far as the Secret is.
type loaded struct {
	// Since is when the Secret was to be written with its content, in seconds by the agent's clock.
	Since int64 `json:"since"`
	// Trusted are the roots that all gateways trusted until then, and Presented those whose certificates any of them may have
	// presented.
	Trusted   []string `json:"trusted"`
	Presented []string `json:"presented"`
}

func (l loaded) text() string {
	text, err := json.Marshal(l)
	if err != nil { // strings and numbers only
		panic(err)
	}
	return string(text)
}

// loaded reads the annotation; nil if there is none that can be believed: somebody else changed the Secret, or the time is one
// that the agent's clock will not reach soon, because it was set back. Then it is written again, with the time that it is now.
func (f *facts) loaded() *loaded {
	var l loaded
	if f.holder != ours || f.edited || json.Unmarshal([]byte(f.cacerts.Annotations[loadedAnnotation]), &l) != nil || l.Since <= 0 ||
		time.Unix(l.Since, 0).After(f.now.Add(f.settleAfter)) {
		return nil
	}
	return &l
}

// held are the roots that all gateways trust now, and those whose certificates any of them may present.
func (f *facts) held() (trusted, presented []string) {
	l := f.loaded()
	if l == nil {
		// What was reported last was safe, and what is there now may have been loaded since.
		l = &loaded{Since: f.now.Unix()}
		if last := f.lastReport(); last != nil {
			l.Trusted, l.Presented = last.Trusted, last.Presented
		}
	}
	trusted, presented = l.Trusted, l.Presented
	if f.holder != ours {
		return trusted, presented
	}
	settled := f.now.Sub(f.since(l)) >= f.settleAfter
	// Gateways refuse roots that cannot be read, and keep those that they have.
	if roots, err := pki.ReadBundle(f.cacerts.Data[pki.TLSRootKey]); err == nil {
		trusted = slices.DeleteFunc(roots.Fingerprints(), func(root string) bool { return !settled && !slices.Contains(l.Trusted, root) })
	}
	if f.gateways != nil {
		root := pki.Fingerprint(f.gateways.Chain.Root())
		presented = slices.DeleteFunc(slices.Clone(l.Presented), func(string) bool { return settled })
		presented = sorted(append(presented, root))
	}
	return trusted, presented
}

// since is when the Secret got its content: a write may have taken long. What the API server says counts if its clock can be
// right, and only for what the agent wrote: others may write labels without an end.
func (f *facts) since(l *loaded) time.Time {
	since := time.Unix(l.Since, 0)
	if written := writtenAt(f.cacerts, f.skew, FieldManager); written.After(since) && !written.After(f.now) {
		return written
	}
	return since
}

// loading is what gateways may have loaded when the Secret gets other content now, with these roots. While there has been
// none, nobody can be cut off, and there is nothing to wait for: no gateway has a listener or a cluster with it before it is
// reported.
func (f *facts) loading(roots pki.Bundle) loaded {
	l := loaded{Since: f.now.Unix()}
	if last := f.lastReport(); f.cacerts == nil && (last == nil || len(last.Presented) == 0) {
		l.Trusted = roots.Fingerprints()
		return l
	}
	l.Trusted, l.Presented = f.held()
	return l
}

func (f *facts) lastReport() *certificatesv1.TrustReport { return f.certificate.Status.Trust }

// loadedByAll: all gateways present a certificate of the root that is to sign, and none of another, and trust all roots that are
// asked for.
func (r *request) loadedByAll() bool {
	trusted, presented := r.held()
	return slices.Equal(presented, []string{pki.Fingerprint(r.root)}) &&
		!slices.ContainsFunc(r.bundle.Fingerprints(), func(root string) bool { return !slices.Contains(trusted, root) })
}

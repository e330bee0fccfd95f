package restart

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// selecting is the first entry that selects a pod; -1 if none does, 0 if there are none. An entry without labels selects
// all pods of the mesh in its namespace.
func selecting(entries []certificatesv1.PodSelector, pod metav1.Object) int {
	if len(entries) == 0 {
		return 0
	}
	return slices.IndexFunc(entries, func(e certificatesv1.PodSelector) bool {
		return e.Namespace == pod.GetNamespace() && labels.SelectorFromSet(e.Labels).Matches(labels.Set(pod.GetLabels()))
	})
}

// maxBounced bounds the names in a status, of each entry.
const maxBounced = 100

// Bounced adds the pods of a controller that is about to restart to a directive's status, unless they are there. It is
// written before the restart: after a crash in between, the restart is made by whoever goes on. It reports whether the
// status changed.
func Bounced(directive *certificatesv1.PodBounceDirective, c Controller) bool {
	status := &directive.Status
	changed := status.ObservedGeneration != directive.Generation
	status.ObservedGeneration = directive.Generation
	for len(status.PodsBounced) <= c.Entry {
		status.PodsBounced = append(status.PodsBounced, certificatesv1.BouncedPodSet{})
		changed = true
	}
	set := &status.PodsBounced[c.Entry]
	for _, pod := range c.Pods {
		if len(set.BouncedPods) < maxBounced && !slices.Contains(set.BouncedPods, pod) {
			set.BouncedPods = append(set.BouncedPods, pod)
			changed = true
		}
	}
	return changed
}

// Cause names what is in the Secret cacerts, without its key: pods restart once for each. A Secret that was deleted and
// created again is another one, also if it has the same: when a mesh leaves its VirtualMesh and comes back, its pods have
// taken up something else meanwhile.
func Cause(secret types.UID, cacerts map[string][]byte) string {
	h := sha256.New()
	h.Write([]byte(secret))
	for _, key := range []string{pki.CACertKey, pki.CAChainKey, pki.RootCertKey, pki.TLSCertKey, pki.TLSRootKey} {
		sum := sha256.Sum256(cacerts[key])
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))[:causeLength]
}

const causeLength = 16

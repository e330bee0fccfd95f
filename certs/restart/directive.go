package restart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
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

// Follow does a Step for a directive, whose status remembers what rolls. The status is saved before each restart, so that
// whoever goes on after a crash knows of it, and when something in it changed. Without save, the Roller remembers.
func (r *Roller) Follow(ctx context.Context, directive *certificatesv1.PodBounceDirective, plan Plan,
	save func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error,
) (Progress, error) {
	if save == nil {
		r.Before = nil // it was another directive's
		return r.Step(ctx, plan)
	}
	saved, status := &directive.Status, directive.Status.DeepCopy()
	store := func(ctx context.Context) error {
		status.ObservedGeneration, status.Rolling = directive.Generation, slices.Clone(r.Rolling)
		if equality.Semantic.DeepEqual(saved, status) {
			return nil
		}
		if err := save(ctx, status); err != nil {
			return err
		}
		saved = status.DeepCopy()
		return nil
	}
	r.Rolling = slices.Clone(status.Rolling)
	r.Before = func(ctx context.Context, c Controller) error {
		bounced(status, c)
		return store(ctx)
	}
	p, err := r.Step(ctx, plan)
	return p, errors.Join(err, store(ctx))
}

// bounced adds the pods of a controller that is about to restart to a status, unless they are there.
func bounced(status *certificatesv1.PodBounceDirectiveStatus, c Controller) {
	for len(status.PodsBounced) <= c.Entry {
		status.PodsBounced = append(status.PodsBounced, certificatesv1.BouncedPodSet{})
	}
	set := &status.PodsBounced[c.Entry]
	for _, pod := range c.Pods {
		if len(set.BouncedPods) < maxBounced && !slices.Contains(set.BouncedPods, pod) {
			set.BouncedPods = append(set.BouncedPods, pod)
		}
	}
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

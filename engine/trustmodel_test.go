package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRootOfAnotherTrustModel: while the VirtualMesh asks for another trust model, the store still has the root of the one
// before. Nothing is asked with it, and what was asked with it is asked anew.
func TestRootOfAnotherTrustModel(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"nothing was asked": false, "the former root was asked for": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTrustWorld(t, 2, rand.New(rand.NewPCG(1, 0)))
			shared := w.roots.Find(w.roots.Signs)
			w.in.Management.VirtualMeshes[0].Spec.MtlsConfig = &networkingv1.MTLSConfig{Limited: &networkingv1.LimitedTrust{}}
			if before {
				for _, a := range w.agents {
					a.write(&certificatesv1.IssuedCertificateSpec{
						GlooMeshCa: &certificatesv1.GlooMeshCA{SigningCertificateSecret: &commonv1.ObjectRef{Name: shared.Secret.Name, Namespace: shared.Secret.Namespace}},
						Trust:      &certificatesv1.TrustRequest{Usage: certificatesv1.TrustUsageGateway, Root: shared.Fingerprint},
					})
				}
			}
			w.translate()
			assert.Equal(t, networkingv1.TrustWaiting, w.trust().Stage)
			assert.NotEmpty(t, w.trust().Message)
			if !before {
				for _, a := range w.agents {
					assert.Nil(t, a.asked)
				}
			}

			w.rotate()
			root := *w.roots.Find(w.roots.Signs)
			root.Gateways = true
			w.roots.Roots = []*snapshot.Root{shared, &root}
			w.translate()
			for _, a := range w.agents {
				assert.Equal(t, root.Fingerprint, a.asked.Trust.Root)
				assert.Equal(t, root.PEM, a.asked.Trust.Bundle)
			}
			assert.Equal(t, []string{shared.Fingerprint}, w.trust().Unused)
		})
	}
}

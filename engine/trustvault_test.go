package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestVaultIssues: what is said of a VirtualMesh whose intermediates a Vault signs.
func TestVaultIssues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*certificatesv1.VaultCA)
		problem string
		lost    bool
		want    []string
		state   commonv1.ApprovalState
	}{
		"nothing":   {state: commonv1.ApprovalStateAccepted},
		"csrPath":   {change: func(ca *certificatesv1.VaultCA) { ca.CsrPath = "pki_int/intermediate/generate/exported" }, want: []string{"csrPath has no effect"}, state: commonv1.ApprovalStateAccepted},
		"plain":     {change: func(ca *certificatesv1.VaultCA) { ca.Server = "http://vault:8200" }, want: []string{"is not encrypted"}, state: commonv1.ApprovalStateAccepted},
		"is down":   {problem: "Vault is sealed", want: []string{"Vault is sealed"}, state: commonv1.ApprovalStateAccepted},
		"never was": {problem: "Vault is sealed", lost: true, want: []string{"there is no root to sign with: Vault is sealed"}, state: commonv1.ApprovalStateInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTrustWorld(t, 2, rand.New(rand.NewPCG(1, 0)))
			ca := *aVault
			if c.change != nil {
				c.change(&ca)
			}
			w.signedBy(&ca)
			w.rotate()
			w.translate()
			w.settle()
			next := *w.roots
			if next.Problem = c.problem; c.lost {
				next.Roots, next.Signs = nil, ""
			}
			w.roots = &next
			w.translate()
			var said []string
			for _, issue := range w.state.Plan.VirtualMeshes[0].Issues {
				if strings.HasPrefix(issue.Field, "mtlsConfig.shared") {
					said = append(said, issue.Message)
					assert.True(t, strings.HasPrefix(issue.Field, "mtlsConfig.shared.intermediateCertificateAuthority"), issue.Field)
				}
			}
			require.Len(t, said, len(c.want), "%v", said)
			for i, want := range c.want {
				assert.Contains(t, said[i], want)
			}
			for s := range w.state.Output.Statuses.All() {
				if s.Ref.Kind == snapshot.VirtualMesh {
					assert.Equal(t, c.state, s.Value.(*networkingv1.VirtualMeshStatus).State, "%+v", s.Value)
				}
			}
		})
	}
}

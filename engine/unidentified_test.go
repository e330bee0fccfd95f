package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestIdentityIsLostAndRegained: the issues with callers without an identity come and go
// with every object that they follow from, although the policies that have them are the
// same objects as before.
func TestIdentityIsLostAndRegained(t *testing.T) {
	t.Parallel()
	base, _, err := offline.Load(offline.Dir("../testdata/translate/tls-without-identity/in"))
	require.NoError(t, err)
	plain := &settingsv1.Settings{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "gloo-mesh"}}
	plain.Spec.Mtls = &networkingv1.MTLS{Istio: &networkingv1.IstioMTLS{TlsMode: networkingv1.TLSModeDisable}}
	open := base.Management.VirtualMeshes[0].DeepCopy()
	open.Spec.GlobalAccessPolicy = networkingv1.GlobalAccessPolicyDisabled
	open.Generation++
	type step struct {
		name   string
		change func(*snapshot.Management)
		want   int
	}
	steps := []step{
		{"all", func(*snapshot.Management) {}, 3},
		{"without AccessPolicies", func(m *snapshot.Management) { m.AccessPolicies = nil }, 3},
		{"all again", func(*snapshot.Management) {}, 3},
		{"without TrafficPolicies", func(m *snapshot.Management) { m.TrafficPolicies = nil }, 0},
		{"with Settings instead of them", func(m *snapshot.Management) {
			m.TrafficPolicies, m.Settings = nil, []*settingsv1.Settings{plain}
		}, 1},
		{"open by default, without AccessPolicies", func(m *snapshot.Management) {
			m.AccessPolicies, m.VirtualMeshes = nil, []*networkingv1.VirtualMesh{open}
		}, 0},
		{"open by default", func(m *snapshot.Management) { m.VirtualMeshes = []*networkingv1.VirtualMesh{open} }, 2},
	}
	for _, from := range steps {
		translator := engine.New(engine.Options{})
		for _, to := range [...]step{from, steps[0], from} {
			management := *base.Management
			to.change(&management)
			in := *base
			in.Management = &management
			got := translator.Translate(&in).Output
			count := 0
			for _, issue := range got.Issues {
				if issue.Code == snapshot.CallersUnidentified {
					count++
				}
			}
			assert.Equal(t, to.want, count, to.name)
			require.Equal(t, text(t, engine.Translate(&in).Output), text(t, got), "%s, after %s", to.name, from.name)
		}
	}
}

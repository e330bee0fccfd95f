package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestReleasesThatHeedBackendTLS: what is not a release of Istio 1.x is taken for a new one.
func TestReleasesThatHeedBackendTLS(t *testing.T) {
	t.Parallel()
	plain, ignored := snapshot.Ref{Name: "plain"}, snapshot.Ref{Name: "ignored"}
	rules := &backendRules{ignored: map[snapshot.Ref]bool{ignored: true}}
	for version, heeds := range map[string]struct{ plain, ignored bool }{
		"1.27.3":            {false, false},
		"1.28.0":            {true, true},
		"v1.30.1-distro":    {true, true},
		"1.31-alpha.abcdef": {true, false},
		"1.31.1":            {true, false},
		"2.1.0":             {true, false},
		"latest":            {true, false},
		"":                  {true, false},
	} {
		mesh := &discoveryv1.Mesh{}
		mesh.Spec.Istio = &discoveryv1.IstioMesh{Installation: discoveryv1.MeshInstallation{Version: version}}
		plan := &snapshot.MeshPlan{Mesh: mesh}
		assert.Equal(t, heeds.plain, rules.heeds(plan, plain), version)
		assert.Equal(t, heeds.ignored, rules.heeds(plan, ignored), version)
	}
}

package wizards_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// TestDeclaredIsProposed where each proxy would hold more than is usual, and nowhere else.
func TestDeclaredIsProposed(t *testing.T) {
	t.Parallel()
	ask := func(services int, meshes []string, script *wizardtest.Script) []string {
		t.Helper()
		input := enginetest.World(enginetest.Size{Services: services, Clusters: 3})
		input.Management.VirtualMeshes = nil
		s := &wizards.Session{
			Prompter: script, Form: wizards.VirtualMesh(), Catalog: wizards.NewCatalog(input, time.Now()), Namespace: "gloo-mesh", Name: "vm",
			Answers: wizards.Answers{"mesh": meshes, "trust": {"shared"}, "global-access": {"DISABLED"}},
		}
		require.NoError(t, s.Ask(nil))
		return s.Answers["federation-mode"]
	}
	all := []string{"gloo-mesh/istiod-istio-system-cluster-01", "gloo-mesh/istiod-istio-system-cluster-02", "gloo-mesh/istiod-istio-system-cluster-03"}
	// With the gateway of each cluster, its services are one more.
	declared := ask(500, all, wizardtest.New(t).Picks("reachable from other meshes", "all").
		Presets("up to 1002 services of other meshes", "DECLARED"))
	require.Equal(t, []string{"DECLARED"}, declared)
	require.Empty(t, ask(499, all, wizardtest.New(t).Picks("reachable from other meshes", "all")))
	require.Empty(t, ask(500, all[:2], wizardtest.New(t).Picks("reachable from other meshes", "all")))
	require.Empty(t, ask(500, all, wizardtest.New(t).Picks("reachable from other meshes", "none")))
}

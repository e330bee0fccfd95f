package e2e

import (
	"os/exec"
	"regexp"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/demo/local"
)

// shown is how soon the dashboard must show an edit, also on a busy machine; a
// tenth of a second is typical.
const shown = 10 * time.Second

// screen is the dashboard of both clusters in a terminal.
func (w *environment) screen() *terminaltest.Terminal {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.binary, "dashboard", "--write", "--kubeconfig", w.kubeconfig, "--context", "cluster-1")
	cmd.Env = []string{"VISUAL=sed -i s/6543ms/7654ms/"}
	x := terminaltest.Start(w.t, cmd, 150, 50) // too narrow for the pane of details, which cuts what a row says
	x.Sees("[1 Fleet]", "2 clusters", "istiod-istio-system-cluster-2")
	return x
}

// updatesDashboard: the dashboard shows an edit at once, that a cluster cannot be
// read, and that it can be read again.
func (w *environment) updatesDashboard() {
	x := w.screen()
	x.Misses("unreachable")
	totals := total.FindString(x.String())
	require.NotEmpty(w.t, totals, x.String())

	x.Types(":reviews-bookinfo-cluster-1\r")
	x.Sees("Destination gloo-mesh/reviews-bookinfo-cluster-1", "gloo-mesh/reviews-shift", "ACCEPTED")
	began := time.Now()
	w.patchPolicy(`[{"op":"add","path":"/spec/policy/requestTimeout","value":"6543ms"}]`)
	applied := time.Now()
	x.Sees("6.543s")
	took := time.Since(applied)
	w.t.Logf("the dashboard showed the edit %s after it was sent, %s after it was applied", time.Since(began), took)
	assert.Less(w.t, took, shown)
	x.Types("6")
	x.Sees("[6 Changes]", "cluster-1", "reviews in cluster-1", "6.543s")

	// An edit with the dashboard itself: the editor changes a value.
	x.Types(":policies reviews-shift\r")
	x.Sees("TrafficPolicy gloo-mesh/reviews-shift", "Targets")
	x.Types("e")
	x.Sees("Write TrafficPolicy gloo-mesh/reviews-shift?", "What it does to traffic", "y write")
	x.Types("y")
	x.Sees("TrafficPolicy gloo-mesh/reviews-shift was written")
	w.awaitTimeout("7.654s")
	x.Types("1")
	x.Sees("[1 Fleet]")

	require.NoError(w.t, w.clusters[1].Kill(w.t.Context(), local.APIServer))
	gone := time.Now()
	x.Sees("unreachable")
	w.t.Logf("the dashboard showed that cluster-2 is away after %s", time.Since(gone))
	assert.Equal(w.t, totals, total.FindString(x.String()), "the objects of the cluster are still shown")
	x.Types("7")
	x.Sees("[7 Problems]", "KubernetesCluster", "cluster-2", "unreachable")
	x.Types("1")

	require.NoError(w.t, w.clusters[1].Restart(w.t.Context(), local.APIServer))
	back := time.Now()
	x.Misses("unreachable")
	w.t.Logf("the dashboard showed that cluster-2 is back after %s", time.Since(back))
	assert.Equal(w.t, totals, total.FindString(x.String()))
	x.Types("q")
	x.Ends(0)
	x.Restored()
}

// total matches the counts in the dashboard's header.
var total = regexp.MustCompile(`\d+ clusters  \d+ destinations  \d+ policies`)

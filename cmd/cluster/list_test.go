package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestListTable: what serve says stands beside what is seen from here, and the table fits a terminal of 100 columns but for
// its problems.
func TestListTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	healthy, away := now.Add(-3*time.Hour), now.Add(-5*time.Minute)
	issued, expires := now.Add(-7*time.Hour), now.Add(17*time.Hour)
	istio := []registration.MeshStatus{{Type: "istio", Version: "1.31.1"}}
	table := listTable([]registration.ClusterStatus{
		{Name: "cluster-1", Health: snapshot.Healthy, Since: &healthy, Serve: registration.ServeReaches, Server: "https://kubernetes.default.svc", Version: "v1.36.3",
			Latency: 123 * time.Millisecond, Meshes: istio, Issued: &issued, Expires: &expires},
		{Name: "cluster-2", Health: snapshot.HealthUnreachable, Serve: registration.ServeReaches, Server: "https://cluster-2-control-plane:6443",
			Meshes: istio, Issued: &issued, Expires: &expires, Reason: "meshctl serve reaches it; from here: no route"},
		{Name: "cluster-3", Health: snapshot.HealthDegraded, Since: &away, Serve: registration.ServeFails, Version: "v1.36.3", Latency: time.Millisecond,
			Reason: "meshctl serve does not reach it: no route"},
		{Name: "cluster-4", Health: snapshot.Healthy, Serve: registration.ServePending, Version: "v1.36.3", Latency: time.Millisecond},
		{Name: "cluster-5", Health: snapshot.HealthLeftover, Reason: "deregistered"},
		{Name: "cluster-6", Health: snapshot.HealthUnregistered, Reason: "nobody's"},
	}, now)
	var out bytes.Buffer
	require.NoError(t, table.Print(&out))
	assert.Equal(t, `NAME        HEALTH         SINCE   SERVE   VERSION   MESHES         LATENCY   EXPIRES   PROBLEM
cluster-1   healthy        3h      ok      v1.36.3   istio 1.31.1   123ms     17h       -
cluster-2   unreachable    -       ok      -         istio 1.31.1   -         17h       meshctl serve reaches it; from here: no route
cluster-3   degraded       5m      fails   v1.36.3   -              1ms       -         meshctl serve does not reach it: no route
cluster-4   healthy        -       waits   v1.36.3   -              1ms       -         -
cluster-5   leftover       -       -       -         -              -         -         deregistered
cluster-6   unregistered   -       -       -         -              -         -         nobody's
`, out.String())
	head, _, _ := strings.Cut(out.String(), "\n")
	assert.LessOrEqual(t, len(head), 100)
}

// TestListAgain: with --watch, clusters are printed again when something but a latency has changed, and without titles.
func TestListAgain(t *testing.T) {
	t.Parallel()
	streams, _, out, errs := cmdutil.TestStreams()
	o := &ListOptions{Streams: streams, Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	o.Output.Format = cmdutil.FormatTable
	one := registration.ClusterStatus{Name: "cluster-1", Health: snapshot.Healthy, Version: "v1.36.3", Latency: time.Millisecond}
	two := registration.ClusterStatus{Name: "cluster-2", Health: snapshot.Healthy, Version: "v1.36.3", Latency: time.Millisecond}
	for _, step := range []struct {
		change func()
		found  int
		out    string
		errs   string
	}{
		{func() {}, 2, `\ANAME +HEALTH .*\ncluster-1 +healthy .*\ncluster-2 +healthy .*\n\z`, ""},
		{func() { one.Latency = time.Second }, 2, `\A\z`, ""},
		{func() { two.Health, two.Reason = snapshot.HealthUnreachable, "no route" }, 2, `\Acluster-2 +unreachable .* no route\n\z`, ""},
		{func() {}, 1, `\A\z`, "Gone: cluster-2\n"},
	} {
		step.change()
		out.Reset()
		errs.Reset()
		require.NoError(t, o.print([]registration.ClusterStatus{one, two}[:step.found]))
		assert.Regexp(t, step.out, out.String())
		assert.Equal(t, step.errs, errs.String())
	}

	o = &ListOptions{Streams: streams, Now: o.Now}
	cmd := newCmdList(cmdutil.NewFactory(streams), nil)
	output, ok := cmd.Flags().Lookup("output").Value.(*cmdutil.OutputFlag)
	require.True(t, ok)
	require.NoError(t, output.Set("name"))
	o.Output = *output
	out.Reset()
	require.NoError(t, o.print([]registration.ClusterStatus{one, two}))
	assert.Equal(t, "kubernetescluster.multicluster.solo.io/cluster-1\nkubernetescluster.multicluster.solo.io/cluster-2\n", out.String())
}

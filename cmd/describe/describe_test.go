package describe

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		want    Options
		wantErr string
	}{
		"destination":                      {want: Options{Kind: snapshot.Destination, Source: cmdutil.Source{Namespace: "gloo-mesh"}}},
		"tt reviews -n mesh":               {want: Options{Kind: snapshot.Destination, Name: "reviews", Source: cmdutil.Source{Namespace: "mesh"}}},
		"meshes -s a,b -s c":               {want: Options{Kind: snapshot.Mesh, List: ListOptions{Search: []string{"a", "b", "c"}}, Source: cmdutil.Source{Namespace: "gloo-mesh"}}},
		"vmesh --kubecontext x":            {want: Options{Kind: snapshot.VirtualMesh, Source: cmdutil.Source{Namespace: "gloo-mesh", Kube: cmdutil.KubeFlags{Context: "x"}}}},
		"workload w --dir d -o json":       {want: Options{Kind: snapshot.Workload, Name: "w", Source: cmdutil.Source{Dir: "d", Namespace: "gloo-mesh"}}},
		"mesh a b":                         {wantErr: "unexpected argument"},
		"mesh a -s b":                      {wantErr: "cannot be used together"},
		"mesh --dir d --kubeconfig f":      {wantErr: "none of the others can be"},
		"mesh --dir d -n other -o nothing": {wantErr: "must be one of table, wide, json, yaml"},
	}
	for line, c := range cases {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			streams, _, _, _ := cmdutil.TestStreams()
			var got *Options
			cmd := NewCmd(cmdutil.NewFactory(streams), func(_ context.Context, o *Options) error { got = o; return nil })
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(line))
			err := cmd.Execute()
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				assert.Nil(t, got, "nothing runs")
				return
			}
			require.NoError(t, err)
			got.Source.Factory = nil
			assert.Equal(t, c.want.Source, got.Source)
			assert.Equal(t, c.want.Kind, got.Kind)
			assert.Equal(t, c.want.Name, got.Name)
			assert.Equal(t, c.want.List.Search, got.List.Search)
		})
	}
}

// TestListFits: a terminal shows the columns for which there is room, and -o
// wide all of them.
func TestListFits(t *testing.T) {
	t.Parallel()
	ask := func(format cmdutil.Format, width int) string {
		streams, _, out, _ := cmdutil.TestStreams()
		streams.OutTTY, streams.Width = true, width
		opts := &Options{Streams: streams, Kind: snapshot.Destination, Source: cmdutil.Source{Dir: "../../testdata/translate/bookinfo/in"}, Now: noon}
		opts.Output.Format = format
		require.NoError(t, describeRun(t.Context(), opts))
		return out.String()
	}
	all := "SERVICE NAMESPACE CLUSTER PORTS TRAFFIC ACCESS ENDPOINTS FEDERATED AS NAME ISSUES"
	for _, c := range []struct {
		format cmdutil.Format
		width  int
		header string
	}{
		{cmdutil.FormatTable, 80, "SERVICE NAMESPACE CLUSTER TRAFFIC ACCESS ISSUES"},
		{cmdutil.FormatTable, 120, "SERVICE NAMESPACE CLUSTER PORTS TRAFFIC ACCESS ENDPOINTS ISSUES"},
		{cmdutil.FormatTable, 240, all},
		{cmdutil.FormatWide, 80, all},
	} {
		text := ask(c.format, c.width)
		header, _, _ := strings.Cut(text, "\n")
		assert.Equal(t, c.header, strings.Join(strings.Fields(header), " "))
		for line := range strings.Lines(text) {
			assert.True(t, c.format == cmdutil.FormatWide || len(line)-1 <= c.width, "%d columns: %s", c.width, line)
		}
	}
}

// TestDescribeRunNothing: an empty list is empty data; the table has a message instead.
func TestDescribeRunNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format    cmdutil.Format
		out, errs string
	}{
		{cmdutil.FormatTable, "", "No mesh found.\n"},
		{cmdutil.FormatJSON, "[]\n", ""},
		{cmdutil.FormatYAML, "[]\n", ""},
	} {
		streams, _, out, errs := cmdutil.TestStreams()
		opts := &Options{Streams: streams, Kind: snapshot.Mesh, List: ListOptions{Search: []string{"nothing"}}, Source: cmdutil.Source{Dir: "../../testdata/translate/bookinfo/in"}, Now: noon}
		opts.Output.Format = c.format
		require.NoError(t, describeRun(t.Context(), opts))
		assert.Equal(t, c.out, out.String())
		assert.Equal(t, c.errs, errs.String())
	}
}

// TestProblemsRunNothing: the same for problems.
func TestProblemsRunNothing(t *testing.T) {
	t.Parallel()
	for format, want := range map[cmdutil.Format]string{cmdutil.FormatTable: "", cmdutil.FormatJSON: "[]\n", cmdutil.FormatYAML: "[]\n"} {
		streams, _, out, _ := cmdutil.TestStreams()
		opts := &Options{Streams: streams, Source: cmdutil.Source{Dir: "../../testdata/translate/audit-global/in"}, Now: noon}
		opts.Output.Format = format
		require.NoError(t, problemsRun(t.Context(), opts))
		assert.Equal(t, want, out.String())
	}
}

// TestFailoverWithoutTargets: a list without elements is one as data, too.
func TestFailoverWithoutTargets(t *testing.T) {
	t.Parallel()
	out := ask(t, "../../testdata/translate/failover-mistakes/in", "destination-cart-shop-cluster-1.json")
	assert.NotContains(t, string(out), "null")
}

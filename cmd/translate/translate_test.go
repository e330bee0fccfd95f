package translate

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
		"d":                          {want: Options{Dir: "d", FailOn: failOnError}},
		"d --to t --fail-on warning": {want: Options{Dir: "d", To: "t", FailOn: failOnWarning}},
		"d --cluster c --statuses":   {want: Options{Dir: "d", Cluster: "c", Statuses: true, FailOn: failOnError}},
		"":                           {wantErr: "either --dir or --snapshot is required"},
		"d --fail-on x":              {wantErr: "must be one of error, warning, never"},
		"--dir d":                    {want: Options{Dir: "d", FailOn: failOnError}},
		"d --dir d":                  {wantErr: "leave one of them out"},
		"d --to t -o yaml":           {wantErr: "cannot be used together"},
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
				return
			}
			require.NoError(t, err)
			got.Streams, got.Output = nil, cmdutil.OutputFlag{}
			assert.Equal(t, &c.want, got)
		})
	}
}

func TestFailOn(t *testing.T) {
	t.Parallel()
	at := func(s snapshot.Severity) []snapshot.Issue { return []snapshot.Issue{{Severity: s}} }
	assert.True(t, failOnError.fails(at(snapshot.Error)))
	assert.False(t, failOnError.fails(at(snapshot.Warning)))
	assert.True(t, failOnWarning.fails(at(snapshot.Warning)))
	assert.False(t, failOnWarning.fails(at(snapshot.Info)))
	assert.False(t, failOnNever.fails(at(snapshot.Error)))
	assert.False(t, failOnWarning.fails(nil))
}

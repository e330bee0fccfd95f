package why

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// TestFlags: the clusters are read unless they are left out; the flag that once asked for them is still taken.
func TestFlags(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		noClusters  bool
		host, path  string
		port        uint32
		method, err string
	}{
		"a b":                          {host: "b"},
		"a b --clusters":               {host: "b"},
		"a b --clusters=true":          {host: "b"},
		"a b --clusters=false":         {host: "b", noClusters: true},
		"a b --no-clusters":            {host: "b", noClusters: true},
		"a b --no-clusters=false":      {host: "b"},
		"a b --clusters=maybe":         {err: "--clusters"},
		"a b --clusters --no-clusters": {err: "none of the others can be"},
		"a b --no-clusters --dir .":    {err: "none of the others can be"},
		"a b --clusters --snapshot x":  {err: "none of the others can be"},
		"a http://b:80/x":              {host: "b", port: 80, path: "/x"},
		"a b:80 POST /x":               {host: "b", port: 80, path: "/x", method: "POST"},
		"a b --port 80":                {host: "b", port: 80},
		"a grpc://b:80/a.B/C":          {host: "b", port: 80, path: "/a.B/C", method: "POST"},
		"a b:80 --port 80":             {err: "--port is given as well"},
		"a http://b/x /y":              {err: "has a path as well"},
		"a ftp://b":                    {err: "its scheme is not"},
		"a b:80/../x":                  {err: "proxies resolve it to"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			streams, _, _, _ := cmdutil.TestStreams()
			var got *Options
			cmd := NewCmd(cmdutil.NewFactory(streams), func(_ context.Context, o *Options) error { got = o; return nil })
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(line))
			err := cmd.Execute()
			if want.err != "" {
				require.ErrorContains(t, err, want.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want.noClusters, got.Source.NoClusters)
			assert.Equal(t, want.host, got.To)
			assert.Equal(t, want.port, got.Request.Port)
			assert.Equal(t, want.path, got.Request.Path)
			assert.Equal(t, want.method, got.Request.Method)
		})
	}
}

package why

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/seentest"
	"github.com/meshctl/meshctl/engine/enginetest"
)

// TestSeen: an answer has a line of evidence, where somebody is asked.
func TestSeen(t *testing.T) {
	t.Parallel()
	const folder = "../../testdata/translate/bookinfo/in"
	url := seentest.Serve(t, folder, enginetest.Bookinfo())
	ask := func(args ...string) (string, error) {
		streams, _, out, _ := cmdutil.TestStreams()
		cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
		cmd.SetArgs(append(args, "--dir", folder))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := ask("productpage-v1", "reviews", "--server", url)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^  Seen +in the last 15m: 10,000 requests, 30 failed$`, out)
	out, err = ask("details-v1", "ratings", "--server", url, "-o", "json")
	require.ErrorIs(t, err, cmdutil.ErrFindings)
	assert.Contains(t, out, `"verdict": "REFUSED"`)
	assert.Contains(t, out, `"refused": 1400`)
	out, err = ask("productpage-v1", "reviews")
	require.NoError(t, err)
	assert.NotContains(t, out, "Seen")
	out, err = ask("productpage-v1", "reviews", "--server", "http://127.0.0.1:1")
	require.NoError(t, err, "an answer does not need a server")
	assert.Regexp(t, `(?m)^  Seen +no data: meshctl serve: `, out)
}

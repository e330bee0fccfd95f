package why

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/offline"
)

// TestSeen: an answer has a line of evidence, where somebody is asked.
func TestSeen(t *testing.T) {
	t.Parallel()
	const folder = "../../testdata/translate/bookinfo/in"
	input, _, err := offline.Load(offline.Dir(folder))
	require.NoError(t, err)
	report := enginetest.Report(engine.Translate(input), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), enginetest.Bookinfo())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(report) }))
	defer server.Close()
	ask := func(args ...string) (string, error) {
		streams, _, out, _ := cmdutil.TestStreams()
		cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
		cmd.SetArgs(append(args, "--dir", folder))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := ask("productpage-v1", "reviews", "--server", server.URL)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^  Seen +in the last 15m: 10,000 requests, 30 failed$`, out)
	out, err = ask("details-v1", "ratings", "--server", server.URL, "-o", "json")
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

package graph

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/offline"
)

const bookinfo = "../../testdata/translate/bookinfo/in"

// serving answers as the meshctl serve of the case bookinfo does, once its proxies were read.
func serving(t *testing.T, sent []enginetest.Sent) string {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(bookinfo))
	require.NoError(t, err)
	report := enginetest.Report(engine.Translate(input), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), sent, "cluster-2")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(report)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func drawn(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	streams, _, o, e := cmdutil.TestStreams()
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
	cmd.SetArgs(append(args, "--dir", bookinfo))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// TestGoldenSeen: what was counted stands on the edges, in each format.
func TestGoldenSeen(t *testing.T) {
	t.Parallel()
	url := serving(t, enginetest.Bookinfo())
	for _, format := range []string{"text", "dot", "mermaid", "svg", "html", "json"} {
		out, errs, err := drawn(t, "--seen", "-o", format, "--server", url)
		require.NoError(t, err)
		assert.Empty(t, errs)
		golden.File(t, "testdata/seen."+format, out)
		if format == "svg" {
			decoder := xml.NewDecoder(strings.NewReader(out))
			for err = nil; err == nil; {
				_, err = decoder.Token()
			}
			require.ErrorIs(t, err, io.EOF)
		}
	}
	out, _, err := drawn(t, "reviews.bookinfo.cluster-1", "--server", url)
	require.NoError(t, err)
	golden.File(t, "testdata/reviews.text", out)
}

// TestUnseen: without numbers the graph is the same, and says why.
func TestUnseen(t *testing.T) {
	t.Parallel()
	plain, errs, err := drawn(t)
	require.NoError(t, err)
	assert.Empty(t, errs)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	out, errs, err := drawn(t, "--server", down.URL)
	require.NoError(t, err)
	assert.Equal(t, plain, out)
	assert.Contains(t, errs, "What requests do is not shown: meshctl serve: it answers 404")
	_, _, err = drawn(t, "--seen", "--server", down.URL)
	require.ErrorContains(t, err, "--seen: what requests do is not known: meshctl serve: it answers 404")
	_, _, err = drawn(t, "--seen")
	require.ErrorContains(t, err, "nobody counts the requests of a folder")
	var wrong *cmdutil.FlagError
	require.ErrorAs(t, err, &wrong)
	out, errs, err = drawn(t, "--seen", "--server", serving(t, nil))
	require.NoError(t, err)
	assert.Empty(t, out)
	assert.Contains(t, errs, "No request was counted in the last 15m.")
}

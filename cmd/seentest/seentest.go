// Package seentest answers for tests as a meshctl serve does that has read the counters of proxies.
package seentest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/offline"
)

// Serve answers until the test ends for the proxies of a folder, but for those of some clusters. It returns what --server takes.
func Serve(t testing.TB, folder string, sent []enginetest.Sent, unread ...string) (url string) {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(folder))
	require.NoError(t, err)
	report := enginetest.Report(engine.Translate(input), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), sent, unread...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(report) }))
	t.Cleanup(server.Close)
	return server.URL
}

package plan_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/seentest"
	"github.com/meshctl/meshctl/engine/enginetest"
)

// closing lets productpage call ratings, and nobody else.
const closing = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: reviews-calls, namespace: gloo-mesh}
spec:
  sourceSelector:
  - kubeServiceAccountRefs:
      serviceAccounts: [{name: bookinfo-productpage, namespace: bookinfo, clusterName: cluster-1}]
  destinationSelector:
  - kubeServiceMatcher: {namespaces: [bookinfo], labels: {app: ratings}}
`

// TestSeen: of callers that lose a service, it is said what they send.
func TestSeen(t *testing.T) {
	t.Parallel()
	const folder = "../../testdata/translate/bookinfo/in"
	file := filepath.Join(t.TempDir(), "closing.yaml")
	require.NoError(t, os.WriteFile(file, []byte(closing), 0o600))
	plan := func(sent []enginetest.Sent, unread []string, args ...string) string {
		url := seentest.Serve(t, folder, sent, unread...)
		streams, _, out, errs := cmdutil.TestStreams()
		assert.Equal(t, 2, cmd.Run(t.Context(), streams, append([]string{"plan", "-f", file, "--dir", folder, "--server", url}, args...)), errs)
		return out.String()
	}
	const sentence = "Of the callers that this closes, 2 sent 3,000 requests in the last 15m."
	assert.Contains(t, plan(enginetest.Bookinfo(), nil), "\n  "+sentence+"\n")
	assert.Contains(t, plan(enginetest.Bookinfo(), nil, "--summary"), "\n  "+sentence+"\n")
	assert.Contains(t, plan(enginetest.Bookinfo(), nil, "-o", "markdown"), "\n"+sentence+"\n")
	assert.Contains(t, plan(enginetest.Bookinfo(), nil, "-o", "github"), "title=requests are sent that will fail::"+sentence+"\n")
	assert.Contains(t, plan(enginetest.Bookinfo(), []string{"cluster-2"}), "in the last 15m; of 2 other workloads it is not known.")
	assert.Contains(t, plan(nil, nil), "Of the callers that this closes, none sent a request in the last 15m.")
	assert.NotContains(t, plan(nil, nil, "-o", "github"), "requests are sent")
	got := struct {
		Seen struct {
			Calls, Callers int
			Requests       uint64
			Sent           []struct{ From struct{ Name string } }
		}
	}{}
	require.NoError(t, json.Unmarshal([]byte(plan(enginetest.Bookinfo(), nil, "-o", "json")), &got))
	assert.Equal(t, 2, got.Seen.Callers)
	assert.Equal(t, uint64(3000), got.Seen.Requests)
	assert.Greater(t, got.Seen.Calls, 2)
	streams, _, out, _ := cmdutil.TestStreams()
	cmd.Run(t.Context(), streams, []string{"plan", "-f", file, "--dir", folder})
	assert.NotContains(t, out.String(), "that this closes", "nobody was asked")
}

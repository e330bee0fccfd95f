package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
)

// audited would deny the reviews of the second cluster the ratings of both.
const audited = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: audited, namespace: gloo-mesh}
spec:
  action: DENY
  enforcement: AUDIT
  sourceSelector:
  - kubeServiceAccountRefs:
      serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: cluster-2}]
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: ratings, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
`

// audits: what is audited refuses nothing, and what it would have refused is what was sent.
func audits(t *testing.T, e *environment) {
	t.Helper()
	const allowed, refused = 70, 40
	from, page := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-1", "productpage-v1")
	e.during(t, audited)
	waittest.NoError(t, "the policy is audited", func() error {
		_, err := e.audit(t)
		return err
	})
	e.seen(t).settled(t)
	before, err := e.audit(t)
	require.NoError(t, err)
	for sent, from := range map[int]proxies.Pod{allowed: page, refused: from} {
		all, err := e.send(t.Context(), from, app.Call{URL: "http://" + service{"cluster-1", "ratings"}.host(from.Cluster), Count: sent})
		require.NoError(t, err)
		require.Equal(t, sent, all.total())
		require.Empty(t, all.failed(), "nothing is refused")
	}
	waittest.NoError(t, "what would be refused is counted", func() error {
		now, err := e.audit(t)
		if err == nil && (now.Refused != before.Refused+refused || now.Requests != before.Requests+allowed+refused) {
			err = fmt.Errorf("before %+v, now %+v", before, now)
		}
		return err
	})
	now, err := e.audit(t)
	require.NoError(t, err)
	for _, call := range now.Calls {
		assert.Contains(t, call.From.Name, "reviews", "%+v", call)
		assert.Contains(t, call.From.Name, "cluster-2", "%+v", call)
	}
}

// audit is what describe says of the requests that the policy would have refused.
func (e *environment) audit(t *testing.T) (*explain.AuditSeen, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), e.options.Meshctl, "describe", "accesspolicy", "audited", "-o", "json", "--server", e.seen(t).url, "--kubeconfig", e.kubeconfig())
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderrOf(err))
	}
	var of struct {
		Audit *explain.Audit `json:"audit"`
	}
	if err := json.Unmarshal(out, &of); err != nil {
		return nil, err
	}
	if of.Audit == nil || of.Audit.Seen == nil || of.Audit.Seen.Unknown != "" {
		return nil, fmt.Errorf("nothing is counted: %+v", of.Audit)
	}
	return of.Audit.Seen, nil
}

// stderrOf is what a program that failed wrote to stderr.
func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
)

// audited would deny a service account of a cluster the ratings of both, or some requests of it.
const audited = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: audited, namespace: gloo-mesh}
spec:
  action: DENY
  enforcement: AUDIT
  sourceSelector:
  - kubeServiceAccountRefs:
      serviceAccounts: [{name: bookinfo-%s, namespace: bookinfo, clusterName: %s}]
%s  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: ratings, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
`

// audits: what is audited refuses nothing, and what it would have refused is what was sent: by who calls, and by method and path.
func audits(t *testing.T, e *environment) {
	t.Helper()
	reviews, page := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-1", "productpage-v1")
	at := func(from proxies.Pod, path string) string {
		return "http://" + service{"cluster-1", "ratings"}.host(from.Cluster) + path
	}

	e.during(t, fmt.Sprintf(audited, "reviews", "cluster-2", ""))
	e.wouldRefuse(t, "sa/bookinfo-reviews", 40, []auditedCall{
		{page, app.Call{URL: at(page, "/"), Count: 70}}, {reviews, app.Call{URL: at(reviews, "/"), Count: 40}},
	})
	now, err := e.audit(t)
	require.NoError(t, err)
	for _, call := range now.Calls {
		assert.Contains(t, call.From.Name, "reviews", "%+v", call)
		assert.Contains(t, call.From.Name, "cluster-2", "%+v", call)
	}

	e.apply(t, fmt.Sprintf(audited, "productpage", "cluster-1", "  allowedPaths: [/closed/*]\n  allowedMethods: [DELETE]\n"))
	e.wouldRefuse(t, "/closed/", 30, []auditedCall{
		{page, app.Call{URL: at(page, "/closed/1"), Method: "DELETE", Count: 30}}, {page, app.Call{URL: at(page, "/closed/1"), Count: 25}},
		{page, app.Call{URL: at(page, "/open/1"), Method: "DELETE", Count: 20}}, {reviews, app.Call{URL: at(reviews, "/closed/1"), Method: "DELETE", Count: 15}},
	})
	out, err := exec.CommandContext(t.Context(), e.options.Meshctl, "top", "workloads", "--server", e.seen(t).url, "--kubeconfig", e.kubeconfig()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "AUDITED")
}

// auditedCall are requests of a pod.
type auditedCall struct {
	from proxies.Pod
	call app.Call
}

// wouldRefuse sends what is all answered, and waits until exactly so many of the requests are counted as those that would have been
// refused, by the proxy of ratings. Has is a text of the policy.
func (e *environment) wouldRefuse(t *testing.T, has string, refused uint64, calls []auditedCall) {
	t.Helper()
	waittest.NoError(t, "the proxy of ratings tries the policy as it is", func() error {
		dump, err := e.plane.Admin(t.Context(), e.pod(t, "cluster-1", "ratings-v1"), "config_dump?resource=dynamic_listeners")
		if err == nil && !(strings.Contains(string(dump), "policy[ratings.deny.audit]") && strings.Contains(string(dump), has)) {
			err = fmt.Errorf("it has no shadow rules of ratings.deny.audit with %s", has)
		}
		return err
	})
	e.drained(t) // connections keep the rules with which they were opened
	e.seen(t).settled(t)
	before, err := e.audit(t)
	require.NoError(t, err)
	sent := uint64(0)
	for _, c := range calls {
		all, err := e.send(t.Context(), c.from, c.call)
		require.NoError(t, err)
		require.Equal(t, c.call.Count, all.total())
		require.Empty(t, all.failed(), "nothing is refused")
		sent += uint64(c.call.Count)
	}
	waittest.NoError(t, "what would be refused is counted", func() error {
		now, err := e.audit(t)
		if err == nil && (now.TriedRefused != before.TriedRefused+refused || now.TriedRequests != before.TriedRequests+sent || now.Tried == 0) {
			err = fmt.Errorf("before %+v, now %+v", before, now)
		}
		return err
	})
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

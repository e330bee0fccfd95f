package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
)

// toRatings is an AccessPolicy on ratings of both clusters that is about the reviews of the second one.
func toRatings(name, more string) string {
	return `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: ` + name + `, namespace: gloo-mesh}
spec:
  sourceSelector:
  - kubeServiceAccountRefs:
      serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: cluster-2}]
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: ratings, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
` + more
}

// denials: a DENY takes from what policies allow, for the callers, methods and paths that it names, in the cluster and through a gateway.
func denials(t *testing.T, e *environment) {
	t.Helper()
	get, del := app.Call{URL: "/admin/1", Method: "GET"}, app.Call{URL: "/admin/1", Method: "DELETE"}
	answers := func(from proxies.Pod, gets, deletes int) error {
		var all []error
		for _, to := range []service{{"cluster-1", "ratings"}, {"cluster-2", "ratings"}} {
			s := target{e, from, "http://" + to.host(from.Cluster)}
			if err := errors.Join(s.want(t.Context(), gets, get), s.want(t.Context(), deletes, del)); err != nil {
				all = append(all, fmt.Errorf("%s of %s to %v: %w", from.Workload, from.Cluster, to, err))
			}
		}
		return errors.Join(all...)
	}
	there, here, page := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-1", "reviews-v1"), e.pod(t, "cluster-1", "productpage-v1")
	others := func() error { return errors.Join(answers(here, 200, 200), answers(page, 200, 200)) }
	waittest.NoError(t, "the policies of the demo are in force", func() error { return errors.Join(answers(there, 200, 200), others()) })

	const denied = "  action: DENY\n"
	policy := toRatings("denied", denied+"  allowedPaths: [/admin/*]\n  allowedMethods: [DELETE]\n")
	e.apply(t, policy)
	t.Cleanup(func() {
		waittest.NoError(t, "nothing is denied", func() error { return answers(there, 200, 200) })
	})
	t.Cleanup(func() { e.remove(t, policy) })
	waittest.NoError(t, "one method is denied below a path", func() error { return answers(there, 200, 403) })
	require.NoError(t, others())
	require.NoError(t, target{e, there, "http://ratings:9080"}.want(t.Context(), 200, app.Call{URL: "/open", Method: "DELETE"}))
	e.apply(t, toRatings("denied", denied))
	waittest.NoError(t, "all is denied", func() error { return answers(there, 403, 403) })
	require.NoError(t, others())
}

// audits: what is audited refuses nothing, and what it would have refused is what was sent.
func audits(t *testing.T, e *environment) {
	t.Helper()
	const allowed, refused = 70, 40
	from, page := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-1", "productpage-v1")
	e.during(t, toRatings("audited", "  action: DENY\n  enforcement: AUDIT\n"))
	waittest.NoError(t, "the policy is audited", func() error {
		_, err := e.audit(t)
		return err
	})
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
	status, err := demo.Status(t.Context(), e.options)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), e.options.Meshctl, "describe", "accesspolicy", "audited", "-o", "json", "--server", "http://"+status.Metrics, "--kubeconfig", e.kubeconfig())
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

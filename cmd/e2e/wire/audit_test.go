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
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
)

// auditedDenial would deny a service account of a cluster the ratings of both, or some requests of it.
const auditedDenial = `apiVersion: networking.mesh.gloo.solo.io/v1
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

	denial := audited{"accesspolicy", "audited"}
	const rule = "policy[ratings.deny.audit]"
	e.during(t, fmt.Sprintf(auditedDenial, "reviews", "cluster-2", ""))
	e.wouldRefuse(t, denial, []string{rule, "sa/bookinfo-reviews"}, 40, []auditedCall{
		{page, app.Call{URL: at(page, "/"), Count: 70}}, {reviews, app.Call{URL: at(reviews, "/"), Count: 40}},
	})
	now, err := e.audit(t, denial)
	require.NoError(t, err)
	for _, call := range now.Calls {
		assert.Contains(t, call.From.Name, "reviews", "%+v", call)
		assert.Contains(t, call.From.Name, "cluster-2", "%+v", call)
	}

	e.apply(t, fmt.Sprintf(auditedDenial, "productpage", "cluster-1", "  allowedPaths: [/closed/*]\n  allowedMethods: [DELETE]\n"))
	e.wouldRefuse(t, denial, []string{rule, "/closed/"}, 30, []auditedCall{
		{page, app.Call{URL: at(page, "/closed/1"), Method: "DELETE", Count: 30}}, {page, app.Call{URL: at(page, "/closed/1"), Count: 25}},
		{page, app.Call{URL: at(page, "/open/1"), Method: "DELETE", Count: 20}}, {reviews, app.Call{URL: at(reviews, "/closed/1"), Method: "DELETE", Count: 15}},
	})
	out, err := exec.CommandContext(t.Context(), e.options.Meshctl, "top", "workloads", "--server", e.seen(t).url, "--kubeconfig", e.kubeconfig()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "AUDITED")
}

// auditedAllowance would let the page in only, and only to some paths.
const auditedAllowance = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: audited, namespace: gloo-mesh}
spec:
  enforcement: AUDIT
  sourceSelector:
  - kubeServiceAccountRefs:
      serviceAccounts: [{name: bookinfo-productpage, namespace: bookinfo, clusterName: cluster-1}]
  destinationSelector:
  - kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: cluster-1}]}
  allowedPaths: [/open/*]
`

// auditsAllowance: where all callers are let in, what is audited lets all of them in as before, and what it would have refused is what was
// sent: a policy by caller and path, and the VirtualMesh whatever no policy allows.
func auditsAllowance(t *testing.T, e *environment) {
	t.Helper()
	policies := string(manifests.Policies())
	t.Cleanup(func() { e.apply(t, policies+"\n---\n"+globally("ENABLED")) })
	e.apply(t, globally("DISABLED"))
	e.remove(t, policies)
	reviews, page := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-1", "productpage-v1")
	at := func(from proxies.Pod, path string) string {
		return "http://" + service{"cluster-1", "ratings"}.host(from.Cluster) + path
	}

	e.during(t, auditedAllowance)
	e.wouldRefuse(t, audited{"accesspolicy", "audited"}, []string{"policy[ratings.audit]", "/open/"}, 65, []auditedCall{
		{page, app.Call{URL: at(page, "/open/1"), Count: 70}}, {page, app.Call{URL: at(page, "/closed/1"), Count: 25}},
		{reviews, app.Call{URL: at(reviews, "/open/1"), Count: 40}},
	})
	e.remove(t, auditedAllowance)
	waittest.NoError(t, "the proxy of ratings tries nothing", func() error {
		rules, err := e.rulesOfRatings(t)
		if err == nil && strings.Contains(rules, ".audit]") {
			err = errors.New("it has shadow rules")
		}
		return err
	})

	e.apply(t, globally("AUDIT"))
	e.wouldRefuse(t, audited{"virtualmesh", "virtual-mesh"}, []string{"policy[global-access-control.audit]"}, 35, []auditedCall{
		{page, app.Call{URL: at(page, "/"), Count: 20}}, {reviews, app.Call{URL: at(reviews, "/"), Count: 15}},
	})
}

// globally is the VirtualMesh of the demo with a globalAccessPolicy.
func globally(access string) string {
	return strings.Replace(string(manifests.SharedVirtualMesh()), "globalAccessPolicy: ENABLED", "globalAccessPolicy: "+access, 1)
}

// audited is an object that is audited.
type audited struct{ kind, name string }

// auditedCall are requests of a pod.
type auditedCall struct {
	from proxies.Pod
	call app.Call
}

// wouldRefuse sends what is all answered, and waits until exactly so many of the requests are counted as those that would have been
// refused, by the proxy of ratings. Has is what its rules have by which those are known.
func (e *environment) wouldRefuse(t *testing.T, of audited, has []string, refused uint64, calls []auditedCall) {
	t.Helper()
	waittest.NoError(t, "the proxy of ratings tries what is audited as it is", func() error {
		rules, err := e.rulesOfRatings(t)
		for _, text := range has {
			if err == nil && !strings.Contains(rules, text) {
				err = fmt.Errorf("its rules lack %s", text)
			}
		}
		return err
	})
	e.drained(t) // connections keep the rules with which they were opened
	e.seen(t).settled(t)
	before, err := e.audit(t, of)
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
		now, err := e.audit(t, of)
		if err == nil && (now.TriedRefused != before.TriedRefused+refused || now.TriedRequests != before.TriedRequests+sent || now.Tried == 0) {
			err = fmt.Errorf("before %+v, now %+v", before, now)
		}
		return err
	})
}

// rulesOfRatings is the configuration of the listeners of the proxy of ratings.
func (e *environment) rulesOfRatings(t *testing.T) (string, error) {
	t.Helper()
	dump, err := e.plane.Admin(t.Context(), e.pod(t, "cluster-1", "ratings-v1"), "config_dump?resource=dynamic_listeners")
	return string(dump), err
}

// audit is what describe says of the requests that an object would have refused.
func (e *environment) audit(t *testing.T, of audited) (*explain.AuditSeen, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), e.options.Meshctl, "describe", of.kind, of.name, "-o", "json", "--server", e.seen(t).url, "--kubeconfig", e.kubeconfig())
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderrOf(err))
	}
	var described struct {
		Audit *explain.Audit `json:"audit"`
	}
	if err := json.Unmarshal(out, &described); err != nil {
		return nil, err
	}
	if described.Audit == nil || described.Audit.Seen == nil || described.Audit.Seen.Unknown != "" {
		return nil, fmt.Errorf("nothing is counted: %+v", described.Audit)
	}
	return described.Audit.Seen, nil
}

// stderrOf is what a program that failed wrote to stderr.
func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/shard"
)

// TestWizards takes a new user, at a terminal, from a kubeconfig to policies that
// are in force.
func TestWizards(t *testing.T) {
	shard.Only(t, shard.Clusters)
	w := newEnvironment(t, withBookinfo)
	w.initializes()
	w.startServe()
	w.takesEffect()
	w.asksOnlyForTheRest()
	w.createsFromLiveOptions()
	w.createsWithFlags()
	w.stopServe()
}

// terminal runs the binary at a terminal.
func (w *environment) terminal(env []string, args ...string) *terminaltest.Terminal {
	w.t.Helper()
	cmd := exec.Command(w.binary, args...)
	cmd.Dir = w.t.TempDir()
	cmd.Env = []string{"KUBECONFIG=" + w.kubeconfig, "ACCESSIBLE=", "TMPDIR=" + cmd.Dir}
	cmd.Env = append(cmd.Env, env...)
	return terminaltest.Start(w.t, cmd, 160, 60)
}

// initializes: no cluster is registered, and no management plane runs.
func (w *environment) initializes() {
	w.t.Helper()
	const enter, space = terminaltest.Enter, terminaltest.Space
	x := w.terminal(nil, "init")
	x.Answer("Which cluster is the management cluster?", enter)
	x.Answer("Which clusters do you want to register?", enter)
	x.Answer("context cluster-1?", enter)
	x.Answer("context cluster-2?", enter)
	x.Answer("Register cluster-1, cluster-2 now?", enter)
	x.Answer("Join meshes into a VirtualMesh?", enter)
	x.Answer("Which meshes do you want to join?", enter)
	x.Answer("How do they trust each other?", enter)
	x.Answer("Which services should be reachable from other meshes?", enter)
	x.Answer("May all workloads call each other?", enter)
	x.Answer("Name of the object?", enter)
	x.Answer("What next?", "apply", enter) // with two roots, requests fail, and cancel is proposed
	x.Answer("Create a first policy?", enter)
	x.Answer("Requests to which services?", enter)
	x.Answer("Which services?", "reviews.bookinfo.cluster-1", space, enter)
	x.Answer("Requests from which workloads?", enter)
	x.Answer("Which requests?", enter)
	x.Answer("What should happen to these requests?", "shift", space, enter)
	x.Answer("Target 1: which service?", "reviews.bookinfo.cluster-2", enter)
	x.Answer("Target 1: which of its pods?", "v3", enter)
	x.Answer("Add another target?", "yes", enter)
	x.Answer("Target 2: which service?", "reviews.bookinfo.cluster-1", enter)
	x.Answer("Target 2: which of its pods?", enter)
	x.Answer("Add another target?", enter)
	x.Answer("Which percentage for each", "\x15", "75 25", enter)
	x.Answer("Name of the object?", enter)
	x.Answer("What next?", enter)
	code := 0
	if w.root("cluster-1") != w.root("cluster-2") {
		code = cmdutil.ExitFindings
	}
	x.Ends(code)
	for _, want := range []string{
		"Found in cluster-1: 1 mesh (istiod-istio-system-cluster-1)", "Found in cluster-2: 1 mesh",
		"created ServiceEntry istio-system/reviews.bookinfo.svc.cluster-2.global", "VirtualMesh gloo-mesh/virtual-mesh created.",
		"created VirtualService bookinfo/reviews", "TrafficPolicy gloo-mesh/reviews-traffic created.",
		"Nothing serves: it takes effect when `meshctl serve` runs.",
		"meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1",
		"meshctl serve --context cluster-1",
	} {
		assert.Contains(w.t, x.Raw(), want)
	}
}

// asksOnlyForTheRest: a second run asks only for what is left; line by line, as for
// screen readers.
func (w *environment) asksOnlyForTheRest() {
	w.t.Helper()
	x := w.terminal([]string{"TERM=dumb"}, "init")
	x.AnswerLine("Which cluster is the management cluster?", "")
	x.AnswerLine("Found 1 policy. Create another one?", "")
	x.Ends(0)
	for _, want := range []string{
		"already manages 2 clusters", "Already registered: cluster-2 (context cluster-2)",
		"Already joined: VirtualMesh gloo-mesh/virtual-mesh has 2 meshes", "meshctl check --context cluster-1",
	} {
		assert.Contains(w.t, x.Raw(), want)
	}
	assert.NotContains(w.t, x.Raw(), "meshctl serve", "one leads")
	assert.NotContains(w.t, x.Raw(), "\x1b[", "no escape sequences")
}

// takesEffect: the created objects are accepted, and have the previewed effect.
func (w *environment) takesEffect() {
	w.t.Helper()
	w.awaitVirtualMesh()
	w.awaitState("trafficpolicies", "reviews-traffic", "ACCEPTED")
	w.awaitRoutes([]string{
		"reviews.bookinfo.svc.cluster-2.global/version-v3=75",
		"reviews.bookinfo.svc.cluster.local/=25",
	})
}

// createsFromLiveOptions: the options come from the management cluster, and the
// manifest can be edited.
func (w *environment) createsFromLiveOptions() {
	w.t.Helper()
	const enter, space = terminaltest.Enter, terminaltest.Space
	x := w.terminal([]string{"VISUAL=", "EDITOR=sed -i s/GET/POST/"}, "create", "accesspolicy", "--context", "cluster-1")
	x.Answer("What should it do?", enter)
	x.Answer("Who may call?", enter)
	x.Answer("Which service accounts?", "bookinfo-reviews.bookinfo.cluster-1", space, enter)
	x.Answer("Requests to which services?", enter)
	x.Answer("Which services?", "ratings.bookinfo.cluster-1", space, enter)
	x.Answer("Only with which HTTP methods?", "GET", enter)
	x.Answer("Only on which paths?", enter)
	x.Answer("Only on which ports", enter)
	x.Answer("Name of the object?", "who", enter)
	x.Answer("What next?", "edit", enter)
	x.Answer("- POST", "apply", enter)
	x.Ends(0)
	assert.Contains(w.t, x.Raw(), "AuthorizationPolicy bookinfo/ratings")
	assert.Contains(w.t, x.Raw(), "In force in cluster-1.", "it waits until it is")
	w.awaitState("accesspolicies", "who", "ACCEPTED")
	w.until("the callers are allowed", func(context.Context) error {
		o, err := w.object("cluster-1", kube.Security("authorizationpolicies"), "bookinfo", "ratings")
		if err != nil {
			return err
		}
		if text := fmt.Sprint(o.Object["spec"]); !strings.Contains(text, "POST") || !strings.Contains(text, "sa/bookinfo-reviews") {
			return fmt.Errorf("its spec is %s", text)
		}
		return nil
	})
}

// createsWithFlags: a dry run, then apply, then apply again without a change.
func (w *environment) createsWithFlags() {
	w.t.Helper()
	slow := []string{"create", "trafficpolicy", "slow", "--context", "cluster-1", "--destination", "ratings.bookinfo.cluster-1", "--timeout", "3s"}
	r := w.must(append(slow, "--dry-run")...)
	assert.Contains(w.t, r.stdout, "requestTimeout: 3s")
	assert.Contains(w.t, r.stderr, "created VirtualService bookinfo/ratings")
	_, err := w.object("cluster-1", kube.Policies("trafficpolicies"), mgmt, "slow")
	require.Error(w.t, err, "a dry run writes nothing")

	assert.Contains(w.t, w.must(append(slow, "--apply")...).stderr, "TrafficPolicy gloo-mesh/slow created.")
	w.until("the timeout takes effect", func(context.Context) error {
		o, err := w.object("cluster-1", kube.Networking("virtualservices"), "bookinfo", "ratings")
		if err != nil {
			return err
		}
		if text := fmt.Sprint(field(o, "spec", "http")); !strings.Contains(text, "timeout:3s") {
			return fmt.Errorf("its routes are %s", text)
		}
		return nil
	})
	assert.Contains(w.t, w.must(append(slow, "--apply")...).stderr, "already exists with the same spec; nothing changed")
	assert.Contains(w.t, w.must(append(slow, "--dry-run")...).stderr, "TrafficPolicy gloo-mesh/slow already exists, and --apply would not replace it")
	r = w.run("create", "trafficpolicy", "slow", "--context", "cluster-1", "--destination", "ratings.bookinfo.cluster-1", "--timeout", "4s", "--apply")
	assert.Equal(w.t, 1, r.code)
	assert.Contains(w.t, r.stderr, "already exists with a different spec")

	r = w.must("init", "--context", "cluster-1", "--register", "cluster-1", "--register", "cluster-2", "--all-meshes", "--apply")
	assert.Contains(w.t, r.stderr, "already registered; nothing changed")
	assert.Contains(w.t, r.stderr, "Already joined: VirtualMesh gloo-mesh/virtual-mesh has 2 meshes")
	r = w.run("init")
	assert.Equal(w.t, 2, r.code)
	assert.Contains(w.t, r.stderr, "--context CONTEXT")
}

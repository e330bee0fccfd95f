package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/shard"
)

// releaseBefore is the commit of the release before. There is none yet; this is the last commit that speaks version 1 of the relay's
// protocol only, so that it lacks what a release before may lack.
const releaseBefore = "7b7d1c70020fd37896a40c71006e69ac87bc63c4"

// connected matches a list of clusters in which cluster-2 is reached through its agent.
var connected = regexp.MustCompile(`(?m)^cluster-2 +relay +connected `)

// TestReleaseBefore upgrades a management plane with a cluster that is reached through its agent, from the release before: the hub first,
// and then the agent. In between, and with a hub that goes back, edits are in force in both clusters, and nothing is deleted.
func TestReleaseBefore(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	before := buildRelease(t, releaseBefore)
	w := newEnvironment(t, withBookinfo)
	today := w.binary
	w.binary = before
	agent, hub := w.joins()
	w.apply("cluster-1", manifests.VirtualMesh())
	w.apply("cluster-1", manifests.Policies())
	e := &edits{environment: w, in: map[string]int{}}
	edit := func(what string) {
		t.Helper()
		for range editedPolicies {
			require.NoError(t, e.edit(t.Context()))
		}
		e.await(what)
		w.awaitRoutes(shifted)
		w.until("cluster-2 is connected", func(context.Context) error {
			if list := w.must("cluster", "list", "--mgmt-context", "cluster-1").stdout; !connected.MatchString(list) {
				return errors.New(list)
			}
			return nil
		})
	}
	edit("edits with both of the release before")
	h := w.record()

	w.binary = today
	w.must("upgrade", "--context", "cluster-1", "--image", "meshctl/meshctl:tested")
	w.scaleServe(0) // it does not run inside
	w.stopServe()
	w.startServe()
	edit("edits with an agent of the release before")

	w.must("cluster", "register", "cluster-2", "--relay", "--relay-server", hub, "--remote-context", "cluster-2", "--mgmt-context", "cluster-1")
	w.stop(agent)
	w.startAgent(w.cluster("cluster-2"), "--relay-server", hub)
	edit("edits with both of today")
	w.verifies()

	w.binary = before
	w.stopServe()
	w.startServe()
	edit("edits with a hub of the release before")
	w.until("everything was seen", func(ctx context.Context) error { return h.behind(ctx, w.dynamic) })
	for _, deleted := range h.gone() {
		assert.NotContains(t, deleted, ".istio.io", "what was written for the meshes stays")
	}
}

// buildRelease builds meshctl as it was at a commit. Without the history of the repository the test is skipped.
func buildRelease(t *testing.T, commit string) string {
	t.Helper()
	dir, binary := t.TempDir(), filepath.Join(t.TempDir(), "meshctl-"+commit)
	archive, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "archive", commit).Output()
	if err != nil {
		t.Skipf("no release before: this checkout has no commit %s: %v", commit, err)
	}
	run := func(stdin, name string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Stdin, command.Env = dir, strings.NewReader(stdin), append(os.Environ(), "CGO_ENABLED=0")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "building meshctl of %s: %s", commit, out)
	}
	run(string(archive), "tar", "x")
	run("", "go", "build", "-trimpath", "-ldflags", "-X github.com/meshctl/meshctl/cmd/cmdutil.version=v0.9.0", "-o", binary, ".")
	return binary
}

package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// contexts are two API servers of the test's own and one that is not there.
func contexts(t *testing.T) map[string]*rest.Config {
	t.Helper()
	out := map[string]*rest.Config{}
	for _, server := range sandboxtest.APIServers(t, 2) {
		config, err := server.Config()
		require.NoError(t, err)
		out[server.Name()] = config
	}
	out["typo"] = rest.CopyConfig(out["cluster-2"])
	out["typo"].Host = "https://" + sandboxtest.Address(t)
	return out
}

func TestRegisterListDeregisterRun(t *testing.T) {
	t.Parallel()
	f, out, errs := testFactory(contexts(t))
	meshctl := func(args ...string) error {
		out.Reset()
		errs.Reset()
		return execute(t, NewCmd(f), append(args, "--mgmt-context", "cluster-1")...)
	}

	// Nothing is there yet.
	require.NoError(t, meshctl("list"))
	assert.Empty(t, out.String())
	assert.Contains(t, errs.String(), "Register one with `meshctl cluster register`")
	require.NoError(t, meshctl("list", "-o", "json"))
	assert.Equal(t, "[]\n", out.String())
	err := meshctl("deregister", "cluster-2", "--remote-context", "cluster-2", "--yes")
	require.ErrorContains(t, err, "cluster cluster-2 is not registered")
	assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(err))

	// What cannot be.
	err = meshctl("register", "cluster-2", "--remote-context", "unknown")
	require.ErrorContains(t, err, `remote cluster: has no context "unknown"`)
	assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(err))
	err = meshctl("register", "cluster-2", "--remote-context", "typo")
	require.ErrorContains(t, err, `remote cluster (context "typo", https://127.0.0.1:`)
	assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(err))
	assert.Empty(t, out.String())

	// Registered, and again.
	require.NoError(t, meshctl("register", "cluster-2", "--remote-context", "cluster-2"))
	assert.Regexp(t, `(?m)^created +remote +ServiceAccount +gloo-mesh/cluster-2$`, out.String())
	assert.Regexp(t, `(?m)^created +management +KubernetesCluster +gloo-mesh/cluster-2$`, out.String())
	assert.Contains(t, errs.String(), "Cluster cluster-2 is registered")
	require.NoError(t, meshctl("register", "cluster-2", "--remote-context", "cluster-2"))
	assert.Regexp(t, `(?m)^created +remote +ServiceAccount +gloo-mesh/cluster-2-.....$`, out.String())
	assert.Regexp(t, `(?m)^deleted +remote +ServiceAccount +gloo-mesh/cluster-2$`, out.String())
	assert.Contains(t, errs.String(), "Cluster cluster-2 is registered again; the credentials of before are revoked.")

	// Shown in every form, and no form shows the token.
	lists(t, meshctl, out, `(?m)^cluster-2 +healthy +- +- +v1\.\d+\.\d+ +- +[0-9.]+m?s +2[34]h +-$`)
	require.NoError(t, meshctl("list", "-o", "json"))
	var listed []registration.ClusterStatus
	require.NoError(t, json.Unmarshal(out.Bytes(), &listed))
	require.Len(t, listed, 1)
	assert.Equal(t, snapshot.Healthy, listed[0].Health)
	assert.NotContains(t, out.String(), "eyJ")
	require.NoError(t, meshctl("list", "-o", "yaml"))
	require.NoError(t, yaml.Unmarshal(out.Bytes(), &listed))

	// Gone.
	require.NoError(t, meshctl("deregister", "cluster-2", "--remote-context", "cluster-2", "--yes", "-o", "json"))
	var report registration.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	assert.Equal(t, "cluster-2", report.Cluster)
	assert.Contains(t, errs.String(), "nothing remains on it")
	require.NoError(t, meshctl("list", "-o", "json"))
	assert.Equal(t, "[]\n", out.String())
}

func TestDeregisterForceRunPrintsTheCommands(t *testing.T) {
	t.Parallel()
	servers := contexts(t)
	f, out, errs := testFactory(servers)
	require.NoError(t, execute(t, NewCmd(f), "register", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1"))
	out.Reset()
	require.NoError(t, execute(t, NewCmd(f), "deregister", "cluster-2", "--remote-context", "typo", "--force", "--yes", "--mgmt-context", "cluster-1"))
	commands := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "kubectl --context typo delete ") {
			commands++
		}
	}
	assert.GreaterOrEqual(t, commands, 10, out.String())
	assert.Contains(t, errs.String(), "is deregistered, but objects remain on it")
	out.Reset()
	require.NoError(t, execute(t, NewCmd(f), "list", "--mgmt-context", "cluster-1"))
	assert.Regexp(t, `(?m)^cluster-2 +leftover `, out.String())
}

// TestDeregisterAsks: without a terminal only --yes deregisters; the plan is shown before the question,
// and no changes nothing.
func TestDeregisterAsks(t *testing.T) {
	t.Parallel()
	f, out, errs := testFactory(contexts(t))
	require.NoError(t, execute(t, NewCmd(f), "register", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1"))
	err := execute(t, NewCmd(f), "deregister", "cluster-2", "--mgmt-context", "cluster-1")
	require.ErrorContains(t, err, "set --yes")
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))

	config, err := f.Config("", "cluster-1")
	require.NoError(t, err)
	opts := &DeregisterOptions{Streams: f.Streams, Name: "cluster-2", management: management{factory: f, context: "cluster-1", namespace: snapshot.DefaultNamespace}}
	for _, answer := range []string{"no", "yes"} {
		errs.Reset()
		opts.Prompter = wizardtest.New(t).Picks("Deregister cluster-2?", answer)
		agreed, err := opts.agree(t.Context(), config)
		require.NoError(t, err)
		assert.Equal(t, answer == "yes", agreed)
		assert.Contains(t, errs.String(), "What it does to traffic:\n  nothing\n")
		assert.Contains(t, errs.String(), "account and permissions in cluster cluster-2")
	}
	out.Reset()
	require.NoError(t, execute(t, NewCmd(f), "list", "--mgmt-context", "cluster-1"))
	assert.Contains(t, out.String(), "cluster-2", "nothing was changed")
}

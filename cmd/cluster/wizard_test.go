package cluster

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

func TestRegisterWizard(t *testing.T) {
	t.Parallel()
	servers := contexts(t)
	// Two contexts may lead to one cluster.
	servers["arn:aws:eks:eu-west-1:1:cluster/Prod_EU"] = servers["cluster-2"]
	f, out, errs := testFactory(servers)
	f.Contexts = func(string) ([]string, string, error) { return slices.Sorted(maps.Keys(servers)), "cluster-1", nil }
	ask := func(script *wizardtest.Script, args ...string) error {
		out.Reset()
		errs.Reset()
		cmd := newCmdRegister(f, func(ctx context.Context, o *RegisterOptions) error {
			o.Prompter, o.Flags.Dir = script, t.TempDir()
			return o.ask(ctx)
		})
		// Arguments are complained of before the run, where nobody can be asked.
		f.Streams.InTTY, f.Streams.ErrTTY = true, true
		defer func() { f.Streams.InTTY, f.Streams.ErrTTY = false, false }()
		return execute(t, cmd, args...)
	}

	err := ask(wizardtest.New(t).
		Says("Register a cluster\n").
		Says("Context typo is skipped: the cluster (context \"typo\", https://127.0.0.1:").
		GoesBack("Which cluster is the management cluster?").
		Says("This is the first question; ctrl-c cancels.").
		Picks("Which cluster is the management cluster?", "cluster-1").
		GoesBack("Which cluster do you want to register?").
		Presets("Which cluster is the management cluster?", "cluster-1").
		Picks("Which cluster do you want to register?", "arn:aws:eks:eu-west-1:1:cluster/Prod_EU").
		Interrupts("Name for the cluster of context arn:aws:eks:eu-west-1:1:cluster/Prod_EU?"))
	require.ErrorIs(t, err, context.Canceled)
	path := regexp.MustCompile(`meshctl cluster register --recover (\S+)`).FindStringSubmatch(errs.String())
	require.Len(t, path, 2, errs.String())

	require.NoError(t, ask(wizardtest.New(t).
		Rejects("Name for the cluster", "Prod", "use at most 63 lower-case letters").
		Types("Name for the cluster", "other").
		GoesBack("Register other now?").
		Accepts("Name for the cluster", "other").
		GoesBack("Register other now?").
		Types("Name for the cluster", "prod-eu").
		Picks("Register prod-eu now?", "no"), "--recover", path[1]))
	assert.Contains(t, errs.String(), "Nothing was written.")

	require.NoError(t, ask(wizardtest.New(t).
		Accepts("Name for the cluster", "prod-eu").
		Picks("Register prod-eu now?", "yes"), "--mgmt-context", "cluster-1", "--remote-context", "arn:aws:eks:eu-west-1:1:cluster/Prod_EU"))
	assert.Regexp(t, `(?m)^created +management +KubernetesCluster +gloo-mesh/prod-eu$`, out.String())
	_, command, ok := strings.Cut(errs.String(), "Equivalent command:\n\n  meshctl cluster ")
	require.True(t, ok, errs.String())
	require.NoError(t, execute(t, NewCmd(f), strings.Fields(command)...))
	assert.Contains(t, errs.String(), "is registered again; the credentials of before are revoked")

	t.Log("what is registered is shown as such, and a second name for it is refused before anything is written")
	require.NoError(t, ask(wizardtest.New(t).
		Picks("management cluster?", "cluster-1").
		Picks("Which cluster do you want to register?", "cluster-2").
		Says("It is already registered as prod-eu").
		Picks("Register prod-eu now?", "yes")))
	require.NoError(t, ask(wizardtest.New(t).
		Picks("management cluster?", "cluster-1").
		Picks("Which cluster do you want to register?", "cluster-2").
		Says("it is registered as prod-eu already").
		Picks("What next?", "again").
		Picks("What next?", "other").
		GoesBack("Which cluster do you want to register?").
		Presets("What next?", "other").
		Picks("Which cluster do you want to register?", "cluster-1").
		GoesBack("Name for the cluster").
		Presets("Which cluster do you want to register?", "cluster-1").
		Accepts("Name for the cluster", "cluster-1").
		Picks("Register cluster-1 now?", "yes"), "other"))
	assert.Contains(t, errs.String(), "Cluster cluster-1 is registered")
	require.NoError(t, ask(wizardtest.New(t).
		Picks("Which cluster do you want to register?", "cluster-2").
		Picks("What next?", "stop"), "other", "--mgmt-context", "cluster-1"))
	assert.Contains(t, errs.String(), "Nothing was written.")

	err = ask(wizardtest.New(t), "--mgmt-context", "typo")
	require.ErrorContains(t, err, "context typo: the cluster")
	err = ask(wizardtest.New(t), "--mgmt-context", "cluster-9")
	require.ErrorContains(t, err, `context "cluster-9" does not exist in the kubeconfig; choose one of: arn:aws`)
	assert.NotEqual(t, cmdutil.ExitOK, cmdutil.ExitCode(err))
}

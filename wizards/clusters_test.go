package wizards_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

func TestSuggestName(t *testing.T) {
	t.Parallel()
	for context, want := range map[string]string{
		"cluster-1": "cluster-1", "kind-mgmt": "mgmt", "k3d-dev": "dev", "gke_project_europe-west1_prod": "prod",
		"arn:aws:eks:eu-west-1:123456789012:cluster/Shop": "shop", "admin@my.cluster": "admin-my-cluster", "日本": "cluster", "---": "cluster",
	} {
		assert.Equal(t, want, wizards.SuggestName(context, nil), context)
	}
	assert.Equal(t, "prod-3", wizards.SuggestName("prod", []string{"prod", "prod-2"}))
}

func clusters(t *testing.T, script *wizardtest.Script, answers wizards.Answers) *wizards.Clusters {
	t.Helper()
	return &wizards.Clusters{Prompter: script, Answers: answers, Contexts: []wizards.Context{
		{Name: "a", UID: "1", Current: true, Version: "v1.36.3"}, {Name: "b", UID: "2", Members: map[string]string{"east": "1", "west": "2"}},
		{Name: "c=c", UID: "3"}, {Name: "d", UID: "3"}, {Name: "e\x1b[2J", Problem: "does not\nanswer\x1b[2J"},
	}}
}

func TestClustersShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	script := wizardtest.New(t).
		Says("Context e?[2J is skipped: does not answer?[2J").
		Presets("Which cluster is the management cluster?", "b"). // it manages some already
		Says("Already registered: east (context a)").
		Says("Already registered: west (context b)").
		Says("Context d leads to the same cluster as c=c.").
		PicksAll("Which clusters do you want to register?", "c=c").
		Accepts("context c=c?", "c-c")
	f := clusters(t, script, wizards.Answers{})
	f.ReportProblems()
	management, err := f.Management()
	require.NoError(t, err)
	members, err := f.Members(management)
	require.NoError(t, err)
	assert.Equal(t, []wizards.Member{{Context: "c=c", Name: "c-c"}}, members)
	assert.Equal(t, wizards.Answers{"context": {"b"}, "register": {"c=c=c-c"}}, f.Answers)
}

func TestClustersTakesFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value   string
		want    wizards.Member
		wantErr string
	}{
		"a name":             {"d=east-2", wizards.Member{Context: "d", Name: "east-2"}, ""},
		"no name":            {"d", wizards.Member{Context: "d", Name: "d"}, ""},
		"a context with =":   {"c=c", wizards.Member{Context: "c=c", Name: "c-c"}, ""},
		"that and a name":    {"c=c=x", wizards.Member{Context: "c=c", Name: "x"}, ""},
		"registered":         {"a", wizards.Member{Context: "a", Name: "east", Registered: true}, ""},
		"an unknown context": {"z=y", wizards.Member{}, `--register z=y: context "z" does not exist in the kubeconfig; choose one of: a, b, c=c, d`},
		"one without answer": {"e\x1b[2J", wizards.Member{}, "does not\nanswer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clusters(t, wizardtest.New(t), wizards.Answers{"context": {"b"}, "register": {c.value}})
			management, err := f.Management()
			require.NoError(t, err)
			got, err := f.Members(management)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []wizards.Member{c.want}, got)
		})
	}
}

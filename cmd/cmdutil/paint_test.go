package cmdutil_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestClean(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ in, want string }{
		"plain":            {"reviews-v1", "reviews-v1"},
		"umlauts stay":     {"größe ✓", "größe ✓"},
		"escape sequence":  {"a\x1b[31mb", "a?[31mb"},
		"C1 control":       {"a\u009b31mb", "a?31mb"},
		"delete":           {"a\x7fb", "a?b"},
		"line end":         {"a\nb\tc", "a b c"},
		"writing backward": {"a\u202eb", "a?b"},
		"invalid UTF-8":    {"a\xffb", "a\ufffdb"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, cmdutil.Clean(c.in))
		})
	}
	assert.Equal(t, "a?\nb", cmdutil.CleanLines("a\x1b\nb"))
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := cmdutil.Table{Header: []string{"NAME", "VALUE"}, Indent: "  "}
	table.Add("a", "1")
	table.Add("longer", "")
	table.Add(" ", "x\x1b")
	require.NoError(t, table.Print(&out))
	assert.Equal(t, "  NAME     VALUE\n  a        1\n  longer   -\n           x?\n", out.String())
}

func TestPrint(t *testing.T) {
	t.Parallel()
	value := map[string]string{"name": "a\u009b\u202e\x1bb<c>"}
	var out strings.Builder
	require.NoError(t, cmdutil.PrintJSON(&out, value))
	assert.NotContains(t, out.String(), "\u009b")
	assert.NotContains(t, out.String(), "\u202e")
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
	assert.Equal(t, value, back, "escaped, not lost")

	out.Reset()
	require.NoError(t, cmdutil.PrintYAML(&out, value))
	assert.NotContains(t, out.String(), "\x1b")
	assert.NotContains(t, out.String(), "\u009b")
}

func TestIssues(t *testing.T) {
	t.Parallel()
	policy := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "bookinfo", Name: "slow"}
	issues := []snapshot.Issue{
		{Severity: snapshot.Error, Code: "FieldConflict", Ref: policy, Target: snapshot.Ref{Kind: snapshot.Destination, Name: "reviews"}, Message: "is set twice", Hint: "remove one"},
		{Severity: snapshot.Warning, Code: "SelectsNothing", Ref: policy, Message: "no match"},
		{Severity: snapshot.Warning, Code: "KindUnsupported", Message: "left out"},
	}
	var out strings.Builder
	require.NoError(t, cmdutil.PrintIssues(&out, cmdutil.Painter{}, "", issues))
	assert.Equal(t, `error    TrafficPolicy bookinfo/slow on reviews: is set twice (FieldConflict)
         → remove one
warning  TrafficPolicy bookinfo/slow: no match (SelectsNothing)
warning  left out (KindUnsupported)
`, out.String())
	out.Reset()
	again := issues[0]
	again.Target.Name = "ratings"
	require.NoError(t, cmdutil.PrintIssueGroups(&out, cmdutil.Painter{}, []explain.IssueGroup{
		{Ref: policy, State: "in force on 0 of 2", Issues: explain.MergeIssues([]snapshot.Issue{issues[0], again, issues[1]})},
		{Issues: explain.MergeIssues(issues[2:])},
	}))
	assert.Equal(t, `error    TrafficPolicy bookinfo/slow: in force on 0 of 2
         (1) on reviews, ratings: is set twice (FieldConflict)
             → remove one
         (2) warning: no match (SelectsNothing)
warning  left out (KindUnsupported)
`, out.String())
	assert.Equal(t, "1 error, 2 warnings", explain.Count(issues).String())
	assert.Equal(t, "no issues", explain.Count(nil).String())
}

package cmdutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// thing is what the tests print.
type thing struct {
	Ref    snapshot.Ref      `json:"ref"`
	Ports  []int             `json:"ports"`
	Note   string            `json:"note,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Size   int64             `json:"size"`
}

func things() []*thing {
	ref := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "ns", Name: name}
	}
	return []*thing{
		{Ref: ref("a"), Ports: []int{80, 443}, Note: "bad \x1b[31m", Labels: map[string]string{"app": "x"}, Size: 12345678},
		{Ref: ref("b"), Ports: []int{}, Size: 3},
	}
}

// printed is what -o prints of a value, or its error.
func printed(t *testing.T, format string, noHeaders bool, value any) (string, error) {
	t.Helper()
	var o OutputFlag
	o.AddFlag(&cobra.Command{}, FormatTable, FormatJSON, FormatYAML)
	o.Prints(Form{Value: thing{}}, Form{Value: []thing{}})
	if err := o.Set(format); err != nil {
		return "", err
	}
	o.NoHeaders = noHeaders
	var out strings.Builder
	err := o.Print(&out, value, nil)
	return out.String(), err
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, c := range []struct {
		format string
		value  any
		want   string
	}{
		{"jsonpath={.ref.name}", things()[0], "a"},
		{"jsonpath=.ref.name", things()[0], "a"},
		{"jsonpath={.items[*].ref.name}", things(), "a b"},
		{"jsonpath={[*].ref.name}", things(), "a b"},
		{"jsonpath={[1].ref.kind}", things(), "TrafficPolicy"},
		{`jsonpath={range .items[*]}{.ref.name}{"\t"}{.size}{"\n"}{end}`, things(), "a\t12345678\nb\t3\n"},
		{`jsonpath={.items[?(@.ref.name=="b")].size}`, things(), "3"},
		{"jsonpath={.labels.any}", things()[0], ""},
		{"jsonpath={.note}", things()[0], "bad ?[31m"},
		{"jsonpath={.note}", things()[1], ""},
		{"jsonpath={.ports}", things()[0], "[80,443]"},
		{"jsonpath={.items[*].ref.name}", []any{}, ""},
		{"jsonpath-file=" + file("path", "{.items[0].ref.name}\n"), things(), "a"},
		{"go-template={{range .items}}{{.ref.name}};{{end}}", things(), "a;b;"},
		{"go-template={{range .}}{{.size}};{{end}}", things(), "12345678;3;"},
		{"go-template-file=" + file("template", "{{.ref.name}}\n"), things()[1], "b"},
		{"custom-columns=NAME:.ref.name,PORTS:{.ports[*]},NOTE:note,LABELS:.labels", things(), "NAME   PORTS    NOTE        LABELS\na      80,443   bad ?[31m   {\"app\":\"x\"}\nb      <none>   <none>      <none>\n"},
		{"custom-columns=NAME:.ref.name", things()[1], "NAME\nb\n"},
		{"custom-columns-file=" + file("columns", "NAME  SIZE\n.ref.name  .size\n"), things(), "NAME   SIZE\na      12345678\nb      3\n"},
		{"custom-columns=NAME:.ref.name", []*thing(nil), "NAME\n"},
		{"name", things(), "trafficpolicy.networking.mesh.gloo.solo.io/a\ntrafficpolicy.networking.mesh.gloo.solo.io/b\n"},
		{"name", things()[1], "trafficpolicy.networking.mesh.gloo.solo.io/b\n"},
		{"name", []any{things()[0], things()[0]}, "trafficpolicy.networking.mesh.gloo.solo.io/a\n"},
	} {
		got, err := printed(t, c.format, false, c.value)
		require.NoError(t, err, c.format)
		assert.Equal(t, c.want, got, c.format)
	}
	got, err := printed(t, "custom-columns=NAME:.ref.name", true, things())
	require.NoError(t, err)
	assert.Equal(t, "a\nb\n", got)
}

// TestExpressionMistakes: an error says what is wrong and what to do, and nothing is printed.
func TestExpressionMistakes(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		format string
		value  any
		want   string
	}{
		{"jsonpath", things(), "the expression is missing; write it behind =, such as jsonpath='{.items[*].ref.name}'"},
		{"jsonpath-file", things(), "the file is missing; write its path behind ="},
		{"jsonpath-file=" + missing, things(), "no such file or directory; name a file that can be read"},
		{"jsonpath={.ref", things(), "{.ref is no path: unclosed action; want one such as {.ref.name}"},
		{"jsonpath={.items[*].metadata.name}", things(), `there is no field "metadata"; there is: labels, note, ports, ref, size`},
		{"jsonpath={range .items[*]}{.nte}{end}", things(), `there is no field "nte"; did you mean note? there is:`},
		{"jsonpath={.items[?(@.helth==1)].note}", things(), `there is no field "helth"`},
		{"jsonpath={.ref.name}", things(), `there is a list where it asks for "ref"; write [*] before .ref`},
		{"jsonpath={.items[*].ref.name}", things()[0], `there is no field "items"`},
		{"custom-columns=NAME", things(), `"NAME" is no column; write each as TITLE:PATH`},
		{"custom-columns=NAME:", things(), `column NAME: "" is no path`},
		{"custom-columns=NAME:.nam", things(), `there is no field "nam"`},
		{"go-template={{.a", things(), "is no template"},
		{"go-template={{index . 9}}", things(), "-o json shows what there is"},
		{"xml", things(), "must be one of table, wide, json, yaml, name, jsonpath=, custom-columns=, go-template="},
	} {
		got, err := printed(t, c.format, false, c.value)
		require.ErrorContains(t, err, c.want, c.format)
		assert.Empty(t, got, c.format)
	}
}

// TestOutputFormatsWithoutObjects: what is about no object has no names, and a command that prints by itself has only
// the formats that it prints.
func TestOutputFormatsWithoutObjects(t *testing.T) {
	t.Parallel()
	var o OutputFlag
	o.AddFlag(&cobra.Command{}, FormatTable, FormatJSON, FormatYAML)
	o.Prints(Form{Value: struct{ A int }{}})
	require.ErrorContains(t, o.Set("name"), "must be one of")
	require.NoError(t, o.Set("jsonpath={.A}"))
	require.NoError(t, o.Set("json"))
	var out strings.Builder
	require.NoError(t, o.Print(&out, struct{ A int }{1}, nil))
	assert.JSONEq(t, `{"A":1}`, out.String(), "the last -o counts")
	o.AddOnly(&cobra.Command{}, FormatYAML, FormatJSON)
	require.ErrorContains(t, o.Set("jsonpath={.A}"), "must be one of yaml, json")
}

func TestCompleteOutput(t *testing.T) {
	t.Parallel()
	var o OutputFlag
	o.AddFlag(&cobra.Command{}, FormatTable, FormatJSON, FormatYAML)
	complete := func(typed string) ([]string, cobra.ShellCompDirective) { return o.complete(nil, nil, typed) }
	found, _ := complete("j")
	assert.Equal(t, []string{"json", "jsonpath=", "jsonpath-file="}, found)
	found, what := complete("custom-columns=")
	assert.Empty(t, found)
	assert.Equal(t, cobra.ShellCompDirectiveNoFileComp, what)
	found, what = complete("jsonpath-f")
	assert.Equal(t, []string{"jsonpath-file="}, found)
	assert.Equal(t, cobra.ShellCompDirectiveNoSpace, what)
	_, what = complete("jsonpath-file=x")
	assert.Equal(t, cobra.ShellCompDirectiveDefault, what, "files")
}

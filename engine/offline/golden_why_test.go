package offline_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// whyName is the file with the questions of a case, each a line "FROM TO[:PORT] METHOD PATH" as for the command, with the answer
// below it; or a line "describe DESTINATION", with the tables of its routes.
const whyName = "why.txt"

// TestGoldenWhy asks the questions of the cases that have some.
func TestGoldenWhy(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../../testdata/*/*/" + whyName)
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			questions, err := os.ReadFile(file)
			require.NoError(t, err)
			in, _, err := offline.Load(offline.Dir(filepath.Join(dir, "in")))
			require.NoError(t, err)
			index := explain.New(engine.Translate(in))
			var out strings.Builder
			for line := range strings.Lines(string(questions)) {
				switch {
				case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
					out.WriteString(line)
				case !strings.HasPrefix(line, " "):
					out.WriteString(line)
					answer(t, index, strings.TrimSpace(line), &out)
				}
			}
			golden.Files(t, dir, map[string]string{whyName: out.String()}, func(name string) bool { return name == whyName })
		})
	}
}

func answer(t *testing.T, x *explain.Index, question string, out *strings.Builder) {
	t.Helper()
	parts := strings.Fields(question)
	if parts[0] == "describe" {
		routeTables(t, x, parts[1], out)
		return
	}
	require.GreaterOrEqual(t, len(parts), 4, question)
	from := x.Find(snapshot.Workload, parts[0])
	require.Len(t, from, 1, question)
	called, port, _ := strings.Cut(parts[1], ":")
	to := x.FindCalled(from[0], called)
	if alias := explain.FindAlias(x, from[0], called); alias != nil && len(to) == 0 {
		fmt.Fprintf(out, "  %s\n", alias.Text())
		return
	}
	require.Len(t, to, 1, question)
	number, err := strconv.ParseUint(cmp.Or(port, "0"), 10, 16)
	require.NoError(t, err, question)
	request := explain.Request{Port: uint32(number), Method: parts[2], Path: parts[3], Headers: map[string]string{}}
	for _, header := range parts[4:] {
		name, value, _ := strings.Cut(header, "=")
		request.Headers[name] = value
	}
	why := x.Why(from[0], to[0], request)
	require.NotNil(t, why, question)
	why.NoteAlias(x, parts[1])
	fmt.Fprintf(out, "  %s: %s\n", why.Verdict, why.Reason)
	if len(why.Outcomes) > 1 {
		for _, o := range why.Outcomes {
			share, pods := "", ""
			if o.Share != nil {
				share = snapshot.Percent(*o.Share) + " "
			}
			if o.Endpoints != nil {
				pods = " on " + snapshot.Count(*o.Endpoints, "pod")
			}
			fmt.Fprintf(out, "    %s%s %s%s: %s: %s\n", share, o.Destination.Name, o.Subset, pods, o.Verdict, o.Reason)
		}
	}
	for _, text := range why.NotEvaluated {
		fmt.Fprintf(out, "  not evaluated: %s\n", text)
	}
	for _, note := range why.Notes {
		fmt.Fprintf(out, "  note: %s\n", note)
	}
	assert.NotEmpty(t, why.Reason, question)
}

// routeTables writes where requests to a Destination go, as describe has it.
func routeTables(t *testing.T, x *explain.Index, name string, out *strings.Builder) {
	t.Helper()
	refs := x.Find(snapshot.Destination, name)
	require.Len(t, refs, 1, name)
	page := x.Describe(refs[0]).Page()
	fmt.Fprintf(out, "  %s %s\n", page.Sections[0].Rows[0][0], page.Sections[0].Rows[0][1])
	for _, s := range page.Sections {
		if !strings.HasPrefix(s.Title, "As called") && !strings.HasPrefix(s.Title, "Settings") {
			continue
		}
		fmt.Fprintf(out, "  %s\n", strings.TrimSpace(s.Title+": "+s.Text))
		for _, row := range s.Rows {
			fmt.Fprintf(out, "    %s\n", strings.TrimSpace(strings.Join(row, " | ")))
		}
	}
}

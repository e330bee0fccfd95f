package offline_test

import (
	"fmt"
	"os"
	"path/filepath"
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

// whyName is the file with the questions of a case, each a line "FROM TO METHOD PATH" as for the command, with the answer
// below it.
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
	require.GreaterOrEqual(t, len(parts), 4, question)
	from := x.Find(snapshot.Workload, parts[0])
	require.Len(t, from, 1, question)
	to := x.FindCalled(from[0], parts[1])
	if alias := explain.FindAlias(x, from[0], parts[1]); alias != nil && len(to) == 0 {
		fmt.Fprintf(out, "  %s\n", alias.Text())
		return
	}
	require.Len(t, to, 1, question)
	request := explain.Request{Method: parts[2], Path: parts[3], Headers: map[string]string{}}
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
	for _, note := range why.Notes {
		fmt.Fprintf(out, "  note: %s\n", note)
	}
	assert.NotEmpty(t, why.Reason, question)
}

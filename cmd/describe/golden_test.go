package describe

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGolden asks the questions that golden cases have files for:
// describe/<kind>-<name>.txt is what `describe <kind> <name>` prints, and
// describe/<kind>.yaml what `describe <kind> -o yaml` does. To add a question,
// create an empty file and run make golden.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/*/*/describe/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		dir := filepath.Dir(filepath.Dir(file))
		t.Run(filepath.Base(dir)+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			got := ask(t, filepath.Join(dir, "in"), filepath.Base(file))
			golden.File(t, file, string(got))
		})
	}
}

// noon is when all answers are given.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// ask runs the command that a file's name stands for.
func ask(t *testing.T, dir, file string) []byte {
	t.Helper()
	streams, _, out, _ := cmdutil.TestStreams()
	ext := filepath.Ext(file)
	word, name, _ := strings.Cut(strings.TrimSuffix(file, ext), "-")
	opts := &Options{Streams: streams, Name: name, Kind: kindCalled(t, word), Source: cmdutil.Source{Dir: dir}, Now: noon}
	opts.Output.Format = map[string]cmdutil.Format{".txt": cmdutil.FormatTable, ".yaml": cmdutil.FormatYAML, ".json": cmdutil.FormatJSON}[ext]
	require.NotEmpty(t, opts.Output.Format, "files end in .txt, .yaml or .json")
	require.NoError(t, describeRun(t.Context(), opts))
	return bytes.Clone(out.Bytes())
}

func kindCalled(t *testing.T, word string) snapshot.Kind {
	t.Helper()
	for _, k := range kinds() {
		if k.use == word {
			return k.kind
		}
	}
	require.Fail(t, "no such kind", word)
	return snapshot.NoKind
}

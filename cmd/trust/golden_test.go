package trust

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/golden"
)

// noon is when all questions are asked.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// TestGolden asks the questions that golden cases have files for: trust/NAME.txt is what
// `trust show NAME` prints, trust/NAME-wide.txt what it prints with -o wide, and trust/all.json
// what `trust show -o json` does. To add a question, create an empty file and run make golden.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/*/*/trust/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		dir := filepath.Dir(filepath.Dir(file))
		t.Run(filepath.Base(dir)+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			streams, _, out, errs := cmdutil.TestStreams()
			name, format := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), filepath.Ext(file)
			if before, wide := strings.CutSuffix(name, "-wide"); wide {
				name, format = before, "wide"
			}
			if name == "all" {
				name = ""
			}
			opts := &ShowOptions{Streams: streams, VirtualMesh: name, Source: cmdutil.Source{Dir: filepath.Join(dir, "in")}, Now: noon}
			opts.Output.Format = map[string]cmdutil.Format{
				".txt": cmdutil.FormatTable, "wide": cmdutil.FormatWide, ".yaml": cmdutil.FormatYAML, ".json": cmdutil.FormatJSON,
			}[format]
			require.NoError(t, showRun(t.Context(), opts))
			require.Empty(t, errs.String())
			golden.File(t, file, string(bytes.Clone(out.Bytes())))
		})
	}
}

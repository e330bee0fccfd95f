package describe

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// locked is a buffer that a test reads while a command writes.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// watchFolder watches a copy of a case; edit replaces text in one of its files, and the result is what was printed so far.
func watchFolder(t *testing.T, opts *Options) (edit func(before, after string), out, errs *locked, end func()) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../testdata/translate/bookinfo/in")))
	file := filepath.Join(dir, "management/policies.yaml")
	edit = func(before, after string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), before)
		// At once, as editors do: half a file is no manifest.
		require.NoError(t, os.WriteFile(file+"~", bytes.Replace(text, []byte(before), []byte(after), 1), 0o600))
		require.NoError(t, os.Rename(file+"~", file))
	}
	out, errs = &locked{}, &locked{}
	streams, _, _, _ := cmdutil.TestStreams()
	streams.Out, streams.Err = out, errs
	opts.Streams, opts.Now, opts.Watch, opts.Source = streams, noon, true, cmdutil.Source{Dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- describeRun(ctx, opts) }()
	return edit, out, errs, func() {
		cancel()
		require.NoError(t, <-ended, "to be interrupted is its normal end")
	}
}

// TestWatchList: first all objects, then those that change, and which are gone.
func TestWatchList(t *testing.T) {
	t.Parallel()
	opts := &Options{Kind: snapshot.TrafficPolicy}
	opts.Output.Format = cmdutil.FormatTable
	edit, out, errs, end := watchFolder(t, opts)
	waittest.Until(t, "all are printed", func() bool { return out.String() != "" })
	first := out.String()
	assert.Regexp(t, `\ANAME +NAMESPACE +STATE .*\npatient .*PARTIAL.*\nreviews-shift .*ACCEPTED.*\n\z`, first)
	edit("requestTimeout: 10s", "requestTimeout: 3s")
	waittest.Until(t, "the change is printed", func() bool { return out.String() != first })
	second := out.String()
	assert.Regexp(t, `\Apatient +gloo-mesh +ACCEPTED .*\n\z`, second[len(first):])
	edit("name: patient", "name: calm")
	waittest.Until(t, "the new name is printed", func() bool { return out.String() != second })
	assert.Regexp(t, `\Acalm +gloo-mesh +ACCEPTED .*\n\z`, out.String()[len(second):])
	end()
	assert.Equal(t, "Gone: TrafficPolicy gloo-mesh/patient\n", errs.String())
}

// TestWatchOne: an object is printed again when it changes; one that is gone is told, and may come back.
func TestWatchOne(t *testing.T) {
	t.Parallel()
	opts := &Options{Name: "patient"} // of any kind
	opts.Output.Format = cmdutil.FormatYAML
	edit, out, errs, end := watchFolder(t, opts)
	waittest.Until(t, "it is printed", func() bool { return out.String() != "" })
	first := out.String()
	assert.Contains(t, first, "\nstate: PARTIAL\n")
	edit("name: patient", "name: calm")
	waittest.Until(t, "its end is told", func() bool { return errs.String() != "" })
	assert.Equal(t, "Note: policy \"patient\" not found; list all with: meshctl describe policies; trying again.\n", errs.String())
	assert.Equal(t, first, out.String())
	edit("name: calm", "name: patient")
	waittest.Until(t, "it can be read again", func() bool { return len(errs.String()) > 100 })
	edit("requestTimeout: 10s", "requestTimeout: 3s")
	waittest.Until(t, "it is printed again", func() bool { return out.String() != first })
	assert.Regexp(t, `\A---\n(?s).*\nstate: ACCEPTED\n`, out.String()[len(first):])
	end()
}

// TestWatchNothing: a list without elements is said once, and data stay a list.
func TestWatchNothing(t *testing.T) {
	t.Parallel()
	opts := &Options{Kind: snapshot.TrafficPolicy, List: ListOptions{Namespace: "elsewhere"}}
	opts.Output.Format = cmdutil.FormatTable
	edit, out, errs, end := watchFolder(t, opts)
	waittest.Until(t, "it is said", func() bool { return errs.String() != "" })
	edit("namespace: gloo-mesh", "namespace: elsewhere")
	waittest.Until(t, "a policy comes", func() bool { return out.String() != "" })
	end()
	assert.Equal(t, "No trafficpolicy found in namespace elsewhere.\n", errs.String())
	assert.Regexp(t, `\ANAME .*\n.* elsewhere .*\n\z`, out.String())
}

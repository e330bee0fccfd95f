package edit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// checker is shared because it takes long to make one.
var checker = admission.NewChecker()

const bookinfo = "../../testdata/translate/bookinfo/in"

// run runs the command; the prompter answers its questions.
func run(t *testing.T, prompter wizards.Prompter, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	streams, _, out, errs := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	f.Now = func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }
	cmd := NewCmd(f, func(ctx context.Context, opts *Options) error {
		opts.Checker, opts.Flags.Dir = checker, t.TempDir()
		opts.Prompter = prompter
		return editRun(ctx, opts)
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(streams.Out)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// enter takes the default of each question, and saves the manifest at the end.
type enter struct {
	t     *testing.T
	file  string
	asked []string
}

// ask fails if a question is asked again and again.
func (e *enter) ask(q wizards.Question) {
	e.asked = append(e.asked, q.Line())
	require.Less(e.t, len(e.asked), 100, strings.Join(e.asked[:min(len(e.asked), 20)], "\n"))
}

func (e *enter) Select(q wizards.Question, _ []wizards.Option, preset string) (string, error) {
	if q.Text == "What next?" {
		assert.Contains(e.t, []string{"save", "cancel"}, preset)
		return "save", nil
	}
	e.ask(q)
	return preset, nil
}

func (e *enter) MultiSelect(q wizards.Question, options []wizards.Option, preset []string) ([]string, error) {
	e.ask(q)
	var out []string
	for _, o := range options {
		for _, p := range preset {
			if o.Value == p {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func (e *enter) Input(q wizards.Question, preset string, check func(string) error) (string, error) {
	if q.Text == "To which file?" {
		return e.file, nil
	}
	e.ask(q)
	return preset, check(preset)
}

func (e *enter) Edit(text string) (string, error) { return text, nil }
func (e *enter) Say(string)                       {}
func (e *enter) Show([]wizards.Line)              {}

// specOf is the spec of a manifest.
func specOf(t *testing.T, manifest []byte) any {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal(manifest, &object), string(manifest))
	return object["spec"]
}

// TestEnterChangesNothing: who takes each default keeps the object as it is, whatever it says.
func TestEnterChangesNothing(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../../testdata/translate/*/in")
	require.NoError(t, err)
	if only := os.Getenv("ONLY"); only != "" {
		cases, _ = filepath.Glob("../../testdata/translate/" + only + "/in")
	}
	edited := 0
	for _, dir := range cases {
		files, err := filepath.Glob(filepath.Join(dir, "management", "*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			for _, kind := range create.Kinds() {
				documents, err := inFile(file, kind.Form.Kind)
				if err != nil || len(documents) == 0 {
					continue
				}
				for _, d := range documents {
					if _, invalid := checker.Check(d.object); invalid != nil {
						continue
					}
					if complaints, _ := checker.Check(d.object); len(complaints) > 0 {
						continue // no API server has it
					}
					edited++
					name := d.object.GetName()
					user := &enter{t: t, file: filepath.Join(t.TempDir(), "it.yaml")}
					_, stderr, err := run(t, user, kind.Use, name, "-n", d.object.GetNamespace(), "--dir", dir)
					if !errors.Is(err, cmdutil.ErrFindings) {
						require.NoError(t, err, "%s %s %s\n%s\n%s", dir, kind.Use, name, stderr, strings.Join(user.asked, "\n"))
					}
					manifest, err := os.ReadFile(user.file)
					require.NoError(t, err)
					assert.Equal(t, d.object.Object["spec"], specOf(t, manifest), "%s %s %s\n%s", dir, kind.Use, name, strings.Join(user.asked, "\n"))
				}
			}
		}
	}
	assert.Greater(t, edited, 100)
}

func TestTimeoutAndRetries(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "it.yaml")
	script := wizardtest.New(t).
		Presets("Requests to which services?", "names").
		PresetsAll("Which services?", "reviews.bookinfo.cluster-1").
		Presets("Requests from which workloads?", "matcher").
		PresetsAll("In which namespaces?", "bookinfo").PresetsAll("In which clusters?").PresetsAll("With which labels?").
		Presets("Which requests?", "all").
		PresetsAll("What should happen", "policy.trafficShift", "policy.requestTimeout", "policy.retries").
		GoesBack("Send them to which targets?").
		PicksAll("What should happen", "policy.requestTimeout").
		Accepts("How long may a request take", "3s").
		GoesBack("What next?").
		Types("How long may a request take", "4s").
		Says("policy.requestTimeout: 3s → 4s").
		Picks("What next?", "save").Types("To which file?", file)
	_, stderr, err := run(t, script, "tp", "reviews-shift", "--dir", bookinfo)
	require.NoError(t, err, stderr)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "requestTimeout: 4s")
	assert.NotContains(t, string(manifest), "retries")
	assert.Contains(t, stderr, "--timeout 4s")
	assert.Contains(t, stderr, "--unset policy.retries")
}

package edit

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/asktest"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

const bookinfo = asktest.Bookinfo

// run runs the command; the prompter answers its questions.
func run(t *testing.T, prompter wizards.Prompter, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return asktest.Run(t, func(f *cmdutil.Factory) *cobra.Command {
		return NewCmd(f, func(ctx context.Context, opts *Options) error {
			opts.Checker, opts.Flags.Dir, opts.Prompter = asktest.Checker, t.TempDir(), prompter
			return editRun(ctx, opts)
		})
	}, args...)
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
func (e *enter) Title(string)                     {}

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
	seen := map[string]bool{}
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
					if complaints, err := asktest.Checker.Check(d.object); err != nil || len(complaints) > 0 || seen[shape(t, kind.Form, d)] {
						continue // no API server has it, or one like it was edited already
					}
					seen[shape(t, kind.Form, d)] = true
					name := d.object.GetName()
					user := &enter{t: t, file: filepath.Join(t.TempDir(), "it.yaml")}
					_, stderr, err := run(t, user, kind.Use, name, "-n", d.object.GetNamespace(), "--dir", dir)
					if !errors.Is(err, cmdutil.ErrFindings) {
						require.NoError(t, err, "%s %s %s\n%s\n%s", dir, kind.Use, name, stderr, strings.Join(user.asked, "\n"))
					}
					manifest, err := os.ReadFile(user.file)
					require.NoError(t, err)
					want := d.object.Object["spec"]
					if want == nil {
						want = map[string]any{}
					}
					assert.Equal(t, want, specOf(t, manifest), "%s %s %s\n%s", dir, kind.Use, name, strings.Join(user.asked, "\n"))
				}
			}
		}
	}
	assert.Greater(t, len(seen), 40)
}

// shape is what an object says, without the values.
func shape(t *testing.T, form *wizards.Form, d *document) string {
	t.Helper()
	e, err := wizards.NewEarlier(form, d.object)
	require.NoError(t, err)
	return form.Kind.String() + strings.Join(slices.Sorted(maps.Keys(e.Answers)), ",") + e.Keeps()
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

// TestWhatFlagsChange, with the command that makes the same of it.
func TestWhatFlagsChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		wants []string
		not   []string
	}{
		"a value":           {[]string{"tp", "reviews-shift", "--timeout", "5s"}, []string{"requestTimeout: 5s", "weight: 75", "attempts: 2"}, nil},
		"less":              {[]string{"tp", "reviews-shift", "--unset", "policy.retries.perTryTimeout"}, []string{"attempts: 2"}, []string{"perTryTimeout"}},
		"a part less":       {[]string{"tp", "reviews-shift", "--unset", "policy.retries"}, []string{"requestTimeout: 3s"}, []string{"attempts"}},
		"other selectors":   {[]string{"tp", "reviews-shift", "--destination", "http://details:9080"}, []string{"name: details"}, nil},
		"all instead":       {[]string{"tp", "reviews-shift", "--all-destinations"}, []string{"requestTimeout"}, []string{"destinationSelector"}},
		"a matcher instead": {[]string{"tp", "reviews-shift", "--destination-labels", "app=reviews"}, []string{"app: reviews"}, []string{"kubeServiceRefs"}},
		"any field":         {[]string{"tp", "reviews-shift", "--field", `policy.csrf={"filterEnabled":true}`}, []string{"filterEnabled: true", "weight: 75"}, nil},
		"what no flag says": {[]string{"ap", "productpage-calls", "--unset", "destinationSelector", "--destination", "reviews.bookinfo.cluster-1"}, []string{"name: reviews", "- GET"}, []string{"app: details"}},
		"a mesh leaves":     {[]string{"vm", "virtual-mesh", "--mesh", "cluster-1"}, []string{"istiod-istio-system-cluster-1", "globalAccessPolicy: ENABLED"}, []string{"cluster-2"}},
		"another trust":     {[]string{"vm", "virtual-mesh", "--trust", "limited"}, []string{"limited: {}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "it.yaml")
			_, stderr, err := run(t, nil, append(c.args, "--dir", bookinfo, "--save", file)...)
			asktest.Wrote(t, err, stderr)
			manifest, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, want := range c.wants {
				assert.Contains(t, string(manifest), want)
			}
			for _, not := range c.not {
				assert.NotContains(t, string(manifest), not)
			}
			words := asktest.Equivalent(t, stderr, "edit")
			again := filepath.Join(t.TempDir(), "again.yaml")
			words[len(words)-1] = again
			_, stderr, err = run(t, nil, words...)
			asktest.Wrote(t, err, stderr)
			same, err := os.ReadFile(again)
			require.NoError(t, err)
			assert.Equal(t, string(manifest), string(same), strings.Join(words, " "))
		})
	}
}

// TestWhatCannotBeEdited: each error says what can be done.
func TestWhatCannotBeEdited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no name":          {[]string{"tp"}, "a name: edit trafficpolicy NAME; to see them: meshctl describe trafficpolicy", cmdutil.ExitUsage},
		"nothing to do":    {[]string{"tp", "reviews-shift"}, "there is no terminal to ask for them; set\n  what to do with it: --apply, --save FILE or --dry-run\n  what to change: ", cmdutil.ExitUsage},
		"no such object":   {[]string{"tp", "reviews-shif", "--dir", bookinfo, "--timeout", "3s", "--dry-run"}, "did you mean reviews-shift?", cmdutil.ExitNotFound},
		"not set":          {[]string{"tp", "patient", "--dir", bookinfo, "--unset", "policy.retries", "--dry-run"}, "--unset policy.retries: it is not set; what is set: destinationSelector, policy.requestTimeout, sourceSelector", cmdutil.ExitUsage},
		"beyond the flags": {[]string{"ap", "productpage-calls", "--dir", bookinfo, "--destination", "reviews.bookinfo.cluster-1", "--dry-run"}, "--destination: spec.destinationSelector has settings that flags cannot express; replace all of it with --unset destinationSelector and flags", cmdutil.ExitUsage},
		"a wrong value":    {[]string{"tp", "patient", "--dir", bookinfo, "--timeout", "soon", "--dry-run"}, "--timeout: must be a duration", cmdutil.ExitUsage},
		"no such file":     {[]string{"tp", "-f", "nowhere.yaml", "--dir", bookinfo, "--timeout", "3s", "--dry-run"}, "nowhere.yaml", cmdutil.ExitNotFound},
		"several in a file": {[]string{"tp", "-f", filepath.Join(bookinfo, "management", "policies.yaml"), "--dir", bookinfo, "--timeout", "3s", "--dry-run"},
			"has several; name one of: gloo-mesh/reviews-shift, gloo-mesh/patient", cmdutil.ExitUsage},
		"none in a file": {[]string{"vm", "-f", filepath.Join(bookinfo, "management", "policies.yaml"), "--dir", bookinfo, "--trust", "shared", "--dry-run"}, "has no VirtualMesh", cmdutil.ExitNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := run(t, nil, c.args...)
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, c.code, cmdutil.ExitCode(err))
		})
	}
}

// TestOfAFileOnlyTheObjectChanges, and nothing if somebody changed the file meanwhile.
func TestOfAFileOnlyTheObjectChanges(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(bookinfo, "management", "policies.yaml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	_, stderr, err := run(t, nil, "tp", "patient", "-f", file, "--dir", bookinfo, "--timeout", "7s", "--save", file)
	require.NoError(t, err, stderr)
	saved, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(data), "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata:\n  name: patient")
	_, after, _ := strings.Cut(rest, "\n---\n")
	assert.True(t, strings.HasPrefix(string(saved), before), "with the comment above it")
	assert.True(t, strings.HasSuffix(string(saved), "\n---\n"+after))
	assert.Contains(t, string(saved), "requestTimeout: 7s")

	script := wizardtest.New(t).
		Presets("Requests to which services?", "matcher").
		PresetsAll("In which namespaces?", "bookinfo").PresetsAll("In which clusters?").PresetsAll("With which labels?", "app=reviews").
		Presets("Requests from which workloads?", "matcher").
		PresetsAll("In which namespaces?", "bookinfo").PresetsAll("In which clusters?").PresetsAll("With which labels?").
		Presets("Which requests?", "all").PresetsAll("What should happen", "policy.requestTimeout").
		Types("How long may a request take", "8s").
		Picks("What next?", "save")
	_, _, err = run(t, meddler{script, func() { require.NoError(t, os.WriteFile(file, data, 0o600)) }}, "tp", "patient", "-f", file, "--dir", bookinfo)
	require.ErrorContains(t, err, "somebody changed it meanwhile, and nothing was written")
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(data), string(now))
}

// meddler changes something before a file is named.
type meddler struct {
	*wizardtest.Script
	meddle func()
}

func (m meddler) Input(q wizards.Question, preset string, check func(string) error) (string, error) {
	if q.Text != "To which file?" {
		return m.Script.Input(q, preset, check)
	}
	m.meddle()
	return preset, check(preset)
}

// TestMembersAndTrust: what an edit of a VirtualMesh does to trust is said before anything else, and
// nothing of it happens without a yes.
func TestMembersAndTrust(t *testing.T) {
	t.Parallel()
	const first, second = "gloo-mesh/istiod-istio-system-cluster-1", "gloo-mesh/istiod-istio-system-cluster-2"
	script := wizardtest.New(t).
		PresetsAll("Which meshes do you want to join?", first, second).
		Presets("How do they trust each other?", "").
		GoesBack("Which services should be reachable").
		Picks("How do they trust each other?", "limited").
		Says("  ~ mtlsConfig: not set → limited").
		Presets("Change who trusts whom?", "no").
		GoesBack("Which services should be reachable").GoesBack("Change who trusts whom?").GoesBack("How do they trust").
		PicksAll("Which meshes do you want to join?", first).
		Picks("How do they trust each other?", "").
		Says("  - "+second+" leaves").
		Picks("Change who trusts whom?", "no").
		Presets("Which services should be reachable", "all").
		Presets("May all workloads call each other?", "ENABLED").
		Says("Nothing changes in the object.").
		Presets("What next?", "cancel")
	_, stderr, err := run(t, script, "vm", "virtual-mesh", "--dir", bookinfo)
	require.NoError(t, err, stderr)

	_, stderr, err = run(t, nil, "vm", "virtual-mesh", "--dir", bookinfo, "--mesh", "cluster-1", "--dry-run")
	require.ErrorIs(t, err, cmdutil.ErrFindings)
	assert.Contains(t, stderr, "This changes which meshes trust each other:\n  - "+second+" leaves\n")
}

// TestAnAgreementIsNotKept: who changes an answer agrees anew to what then changes in who trusts whom, and to nothing else.
func TestAnAgreementIsNotKept(t *testing.T) {
	t.Parallel()
	const one, other = "gloo-mesh/istiod-istio-system-cluster-1", "gloo-mesh/istiod-istio-system-cluster-2"
	script := wizardtest.New(t).
		Says("Edit VirtualMesh gloo-mesh/virtual-mesh\n").
		PicksAll("Which meshes do you want to join?", one).
		Picks("How do they trust each other?", "").
		Picks("Change who trusts whom?", "yes").
		Presets("Which services should be reachable", "all").
		Presets("May all workloads call each other?", "ENABLED").
		Picks("What next?", "change").
		Picks("Which answer do you want to change?", "0").
		PicksAll("Which meshes do you want to join?", other).
		Says("How do they trust each other? as they do now: certificates are not changed (as before)\n").
		Says("  - "+one+" leaves").
		Picks("Change who trusts whom?", "no").
		Says("May all workloads call each other? no, only what an AccessPolicy allows (ENABLED) (as before)\n").
		Says("Nothing changes in the object.").
		Presets("What next?", "cancel")
	_, stderr, err := run(t, script, "vm", "virtual-mesh", "--dir", bookinfo)
	require.NoError(t, err, stderr)
}

// TestInterrupted: ctrl-c leaves nothing but the answers so far.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	_, stderr, err := run(t, wizardtest.New(t).
		Picks("Requests to which services?", "all").
		Presets("Requests from which workloads?", "matcher").
		Interrupts("In which namespaces?"), "tp", "reviews-shift", "--dir", bookinfo)
	require.ErrorIs(t, err, context.Canceled)
	saved := regexp.MustCompile(`meshctl edit trafficpolicy --dir \S+ --recover (\S+)`).FindStringSubmatch(stderr)
	require.Len(t, saved, 2, stderr)
	_, stderr, err = run(t, wizardtest.New(t).
		PresetsAll("In which namespaces?", "bookinfo").PresetsAll("In which clusters?").PresetsAll("With which labels?").
		Presets("Which requests?", "all").
		PicksAll("What should happen", "policy.requestTimeout").
		Accepts("How long may a request take", "3s").
		Picks("What next?", "cancel"), "tp", "--dir", bookinfo, "--recover", saved[1])
	require.NoError(t, err, stderr)
	assert.Contains(t, stderr, "--unset destinationSelector")
}

package create

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/asktest"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

const bookinfo = asktest.Bookinfo

// wizard runs the command; script answers its questions.
func wizard(t *testing.T, script *wizardtest.Script, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return asktest.Run(t, func(f *cmdutil.Factory) *cobra.Command {
		return NewCmd(f, func(ctx context.Context, opts *Options) error {
			opts.Checker, opts.Flags.Dir = asktest.Checker, t.TempDir()
			if script != nil {
				opts.Prompter = script
			}
			return createRun(ctx, opts)
		})
	}, args...)
}

// runEquivalent runs the command that a wizard printed and checks that it makes
// the same manifest.
func runEquivalent(t *testing.T, stderr string, manifest []byte) {
	t.Helper()
	words := asktest.Equivalent(t, stderr, "create")
	for i, word := range words {
		if word == "--save" {
			words = append(words[:i], "--dry-run")
			break
		}
	}
	stdout, errs, err := wizard(t, nil, words...)
	asktest.Wrote(t, err, errs)
	assert.Equal(t, string(manifest), stdout)
}

func TestTrafficPolicyWizard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	script := wizardtest.New(t).
		Picks("Requests to which services? [spec.destinationSelector]", "names").
		PicksAll("Which services?", "reviews.bookinfo.cluster-1").
		Says("This selects 1 of ").
		Picks("Requests from which workloads?", "matcher").
		PicksAll("In which namespaces?", "bookinfo").
		PicksAll("In which clusters?").
		PicksAll("With which labels?", "app=productpage").
		Says("productpage-v1.bookinfo.cluster-1").
		Picks("Which requests?", "some").
		Rejects("Which? Such as", "GET /api", `is not one of prefix=`).
		Rejects("Which? Such as", "method=get", "method get can never match, as HTTP methods are in upper case; write GET").
		Types("Which? Such as", "prefix=/reviews,method=GET").
		PicksAll("What should happen to these requests? [spec.policy]", "policy.trafficShift", "policy.requestTimeout").
		Picks("Target 1: which service?", "reviews.bookinfo.cluster-2").
		Picks("Target 1: which of its pods?", "version=v3").
		Picks("Add another target?", "yes").
		Picks("Target 2: which service?", "reviews.bookinfo.cluster-1").
		Picks("Target 2: which of its pods?", "").
		Picks("Add another target?", "no").
		Says("  1. reviews.bookinfo.cluster-2 subset.version=v3\n  2. reviews.bookinfo.cluster-1\n").
		Rejects("Which percentage for each of the 2", "most 1", `"most": an integer is required`).
		Rejects("Which percentage for each", "75", "1 of 2 weights, with a total of 75; write one for each target").
		Rejects("Which percentage for each", "75 15", "the total is 90: 10 are left to give; or write parts of the total, such as 75:15").
		Rejects("Which percentage for each", "75, 35", "the total is 110: 10 too many").
		Rejects("Which percentage for each", "0:0", "no target gets requests").
		Rejects("Which percentage for each", "2000000:1", "should be less than or equal to 1000000").
		Types("Which percentage for each", "75 25").
		Rejects("How long may a request take, retries included? [spec.policy.requestTimeout]", "soon", "must be a duration: numbers with a unit").
		Accepts("How long may a request take", "5s").
		Rejects("Name of the object? [metadata.name]", "Slow_1", "is no name: one has lower-case letters").
		Accepts("Name of the object?", "reviews-traffic").
		Says("  requestTimeout: 5s").
		Says("changed VirtualService bookinfo/reviews").
		Picks("What next?", "full").
		Says("+").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "trafficpolicy", "--dir", bookinfo)
	require.NoError(t, err)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "weight: 75")
	runEquivalent(t, stderr, manifest)
}

func TestAccessPolicyWizard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	script := wizardtest.New(t).
		Picks("What should it do?", "allow").
		Picks("Who may call?", "accounts").
		PicksAll("Which service accounts?", "bookinfo-productpage.bookinfo.cluster-1").
		Says("This selects 1 of").
		Picks("Requests to which services?", "matcher").
		PicksAll("In which namespaces?").PicksAll("In which clusters?").PicksAll("With which labels?").
		Says("Choose at least one namespace, cluster or label").
		PicksAll("In which namespaces?", "bookinfo").PicksAll("In which clusters?", "cluster-1").PicksAll("With which labels?").
		Rejects("HTTP methods?", "get", "write GET").
		Types("HTTP methods?", "GET,POST").
		Rejects("paths?", "api", "must begin with / or *").
		Types("paths?", "").
		PicksAll("ports", "9080").
		Types("Name of the object?", "who").
		Picks("What next?", "edit").
		Edits("name: who", "kind: {").
		Says("invalid YAML").
		Picks("The manifest is not valid", "again").
		Edits("kind: {", "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: AccessPolicy\nmetadata: {name: who, namespace: gloo-mesh}\nspec: {allowedMethods: [GET], allowedPath: [/]}").
		Says(`unknown field "spec.allowedPath"`).
		Picks("The manifest is not valid", "again").
		Edits("allowedPath:", "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: AccessPolicy\nmetadata: {name: who, namespace: gloo-mesh}\nspec: {allowedMethods: [GET]}").
		Says("- GET").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "ap", "--dir", bookinfo)
	require.NoError(t, err)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(manifest), "destinationSelector", "as edited")
	runEquivalent(t, stderr, manifest)
}

func TestAccessPolicyThatDenies(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	script := wizardtest.New(t).
		Picks("What should it do?", "deny").
		Picks("Who may not call?", "all").
		Picks("Requests to which services?", "matcher").
		PicksAll("In which namespaces?", "bookinfo").PicksAll("In which clusters?", "cluster-1").PicksAll("With which labels?").
		Types("HTTP methods?", "DELETE").
		Types("paths?", "").
		PicksAll("ports").
		Types("Name of the object?", "no-deletes").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "ap", "--dir", bookinfo)
	require.NoError(t, err)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "action: DENY")
	runEquivalent(t, stderr, manifest)

	_, _, err = wizard(t, wizardtest.New(t), "ap", "x", "--dir", bookinfo, "--action", "refuse", "--all-sources", "--all-destinations", "--dry-run")
	require.ErrorContains(t, err, `"refuse": must be allow or deny`)
}

func TestVirtualMeshWizard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	script := wizardtest.New(t).
		PicksAll("Which meshes do you want to join? [spec.meshes]").
		Says("Choose at least one").
		PicksAll("Which meshes", "gloo-mesh/istiod-istio-system-cluster-1", "gloo-mesh/istiod-istio-system-cluster-2").
		Picks("trust", "shared").
		Picks("reachable from other meshes?", "all").
		Picks("May all workloads call each other?", "ENABLED").
		Rejects("Name of the object?", "virtual-mesh", "VirtualMesh virtual-mesh already exists in namespace gloo-mesh").
		Accepts("Name of the object?", "virtual-mesh-2").
		Says("This object would be INVALID:").
		Says("mesh istiod-istio-system-cluster-1.gloo-mesh is already in the older VirtualMesh").
		GoesBack("What next?").
		Accepts("Name of the object?", "virtual-mesh-2").
		Picks("What next?", "full").
		Presets("What next?", "full").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "vm", "--dir", bookinfo)
	require.ErrorIs(t, err, cmdutil.ErrFindings, "it would be INVALID")
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	runEquivalent(t, stderr, manifest)
}

// TestAnErrorProposesToCancel: what is not in force is not applied by a second enter.
func TestAnErrorProposesToCancel(t *testing.T) {
	t.Parallel()
	shift := []string{"tp", "x", "--dir", bookinfo, "--destination", "reviews.bookinfo.cluster-1", "--source-namespaces", "bookinfo", "--match", "prefix=/"}
	for _, target := range []string{"ratings.bookinfo.cluster-1", "nowhere.bookinfo.cluster-1"} {
		_, stderr, err := wizard(t, wizardtest.New(t).Says("This object would be INVALID:").Presets("What next?", "cancel"), append(shift, "--shift", target)...)
		require.NoError(t, err)
		assert.Contains(t, stderr, "Nothing was written.")
	}
	file := filepath.Join(t.TempDir(), "x.yaml")
	_, _, err := wizard(t, wizardtest.New(t).Presets("What next?", "save").Types("To which file?", file), append(shift, "--timeout", "3s")...)
	require.NoError(t, err)
}

// TestASingleTargetTakesAll requests, so that it is not asked for a share.
func TestASingleTargetTakesAll(t *testing.T) {
	t.Parallel()
	_, stderr, err := wizard(t, forReviews("ratings.bookinfo.cluster-1", "policy.trafficShift",
		picks("Target 1: which service?", "reviews.bookinfo.cluster-2"), picks("Target 1: which of its pods?", "version=v3"),
	).script(t).Presets("Add another target?", "yes").GoesBack("Target 2").Picks("Add another target?", "no").
		Types("Name of the object?", "it").Picks("What next?", "cancel"), "tp", "--dir", bookinfo)
	require.NoError(t, err)
	assert.NotContains(t, stderr, "weight")
}

// TestRecover: what was answered before ctrl-c is not asked again.
func TestRecover(t *testing.T) {
	t.Parallel()
	script := wizardtest.New(t).
		Picks("Requests to which services?", "matcher").
		PicksAll("In which namespaces?", "bookinfo").
		Interrupts("In which clusters?")
	_, stderr, err := wizard(t, script, "tp", "--dir", bookinfo)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, cmdutil.ExitInterrupted, cmdutil.ExitCode(err))
	path := regexp.MustCompile(`--recover (\S+)`).FindStringSubmatch(stderr)
	require.Len(t, path, 2, stderr)
	info, err := os.Stat(path[1])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	script = wizardtest.New(t).
		PicksAll("In which clusters?", "cluster-2").
		PicksAll("With which labels?").
		Says("This selects ").
		Picks("Requests from which workloads?", "all").
		Picks("Which requests?", "all").
		PicksAll("What should happen", "policy.mtls").
		Picks("How do callers encrypt?", "SIMPLE").
		Types("Name of the object?", "plain").
		Picks("What next?", "cancel")
	_, stderr, err = wizard(t, script, "tp", "--dir", bookinfo, "--recover", path[1])
	require.NoError(t, err)
	assert.Contains(t, stderr, "Nothing was written.")
	assert.Contains(t, stderr, "--destination-namespaces bookinfo --destination-clusters cluster-2 --tls-mode SIMPLE --dry-run")

	_, _, err = wizard(t, nil, "ap", "x", "--dir", bookinfo, "--recover", path[1])
	require.ErrorContains(t, err, "contains the answers for a TrafficPolicy; use: meshctl create trafficpolicy --recover")
}

// TestNothingDiscovered: if nothing was discovered yet, a wizard says so and ends.
func TestNothingDiscovered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "management"), 0o755))
	for name, c := range map[string]struct {
		use    string
		script *wizardtest.Script
		want   string
	}{
		"names":    {"tp", wizardtest.New(t).Picks("which services?", "names"), "no service was discovered"},
		"places":   {"tp", wizardtest.New(t).Picks("which services?", "matcher"), "set --destination-namespaces"},
		"accounts": {"ap", wizardtest.New(t).Picks("What should it do?", "allow").Picks("Who may call?", "accounts"), "set --source-account"},
		"meshes":   {"vm", wizardtest.New(t), "no mesh was discovered"},
	} {
		_, _, err := wizard(t, c.script, c.use, "--dir", dir)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestWithoutATerminalWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"name":         {[]string{"tp"}, "a name: create trafficpolicy NAME"},
		"destinations": {[]string{"tp", "x", "--timeout", "3s"}, "--all-destinations, --destination"},
		"policy":       {[]string{"tp", "x", "--all-destinations"}, "--timeout, --retries"},
		"sources":      {[]string{"ap", "x", "--all-destinations"}, "--all-sources, --source-account"},
		"meshes":       {[]string{"vm", "x"}, "--mesh"},
		"everything":   {[]string{"ap", "--dir", bookinfo}, "NAME\n  --all-sources, --source-account, --source-namespaces or --source-clusters\n  --all-destinations, "},
		"what to do":   {[]string{"ap", "x", "--all-destinations", "--all-sources"}, "--apply, --save FILE or --dry-run"},
		"a value":      {[]string{"tp", "x", "--dir", bookinfo, "--destination", "reviews", "--timeout", "3s", "--dry-run"}, "--destination: reviews is ambiguous; choose one of: reviews-bookinfo-cluster-1, "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := wizard(t, nil, c.args...)
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
		})
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := wizards.NewPlain(t.Context(), strings.NewReader("9\n2\n1, 3\n\nbad\ngood\n"), &out)
	options := []wizards.Option{{Value: "a"}, {Value: "b"}, {Value: "c", Text: "the \x1b[31mthird"}}
	one, err := p.Select(wizards.Question{Text: "One?", Field: "spec.x"}, options, "a")
	require.NoError(t, err)
	assert.Equal(t, "b", one)
	many, err := p.MultiSelect(wizards.Question{Text: "Many?"}, options, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c"}, many)
	line, err := p.Input(wizards.Question{Text: "Line?"}, "preset", func(string) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, "preset", line)
	line, err = p.Input(wizards.Question{Text: "Line?"}, "", func(s string) error {
		if s == "bad" {
			return fmt.Errorf("not that")
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "good", line)
	assert.Contains(t, out.String(), "One? [spec.x]\n  1. a\n  2. b\n  3. the ?[31mthird\n")
	assert.Contains(t, out.String(), `"9" is not a number from 1 to 3; type one, `)
	assert.Contains(t, out.String(), "not that\n")
	assert.NotContains(t, out.String(), "\x1b")
	_, err = p.Select(wizards.Question{Text: "One?"}, options, "")
	require.ErrorContains(t, err, "no more answers")

	ctx, cancel := context.WithCancel(t.Context())
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = writer.Close(); _ = reader.Close() })
	p = wizards.NewPlain(ctx, reader, &out)
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err = p.Select(wizards.Question{Text: "One?"}, options, "")
	require.ErrorIs(t, err, wizards.ErrInterrupted)
}

// TestEverySpecRoundTripsThroughTheShell: every spec can be written as a command
// that makes the same bytes: each accepted manifest, unchanged and with strings
// that are hard to quote.
func TestEverySpecRoundTripsThroughTheShell(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(waittest.Seed(t), 2))
	forms := []*wizards.Form{wizards.TrafficPolicy(), wizards.AccessPolicy(), wizards.VirtualMesh()}
	uses := []string{"trafficpolicy", "accesspolicy", "virtualmesh"}
	paths, err := filepath.Glob("../../testdata/api/accepted/*.yaml")
	require.NoError(t, err)
	seen := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(data, object))
		for i, form := range forms {
			spec, _ := object.Object["spec"].(map[string]any)
			if form.Kind.String() != object.GetKind() || spec == nil {
				continue
			}
			for round := range 12 {
				seen++
				if round > 0 {
					spec = object.DeepCopy().Object["spec"].(map[string]any)
					mangle(random, spec)
				}
				roundTrip(t, form, uses[i], spec)
			}
		}
	}
	assert.Greater(t, seen, 100)
}

func roundTrip(t *testing.T, form *wizards.Form, use string, spec map[string]any) {
	t.Helper()
	want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": form.Kind.Info().GroupVersion().String(), "kind": form.Kind.String(), "spec": spec}}
	want.SetName("x")
	want.SetNamespace("y")
	manifest, err := wizards.YAML(want)
	require.NoError(t, err)
	answers, err := form.AnswersFor(spec)
	require.NoError(t, err)
	command := wizards.Quote(append([]string{use, "x", "-n", "y"}, form.Arguments(answers)...))
	assert.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x7f]`, command, "safe to print")

	var got []byte
	f := cmdutil.NewFactory(&cmdutil.Streams{})
	cmd := NewCmd(f, func(_ context.Context, opts *Options) error {
		object, err := opts.Form.Object(opts.Namespace, opts.Name, opts.Answers)
		if err != nil {
			return err
		}
		got, err = wizards.YAML(object)
		return err
	})
	cmd.SetArgs(asktest.Split(t, command))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	require.NoError(t, cmd.ExecuteContext(t.Context()), command)
	assert.Equal(t, string(manifest), string(got), command)
}

// mangle replaces some strings and keys by ones that are hard to quote.
func mangle(random *rand.Rand, value any) any {
	hard := []string{"", "a b", "it's", `"`, `\`, "$HOME", "`id`", "a,b", "a=b", "-x", "--", "a\nb", "\x1b[31m", "ü", "!", "a;b", "*", "a.b", "#", "\u202e", "true", "1", "~", "{}"}
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = mangle(random, v[key])
		}
	case []any:
		for i := range v {
			v[i] = mangle(random, v[i])
		}
	case string:
		if random.IntN(3) == 0 {
			return hard[random.IntN(len(hard))]
		}
	}
	return value
}

package create

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/asktest"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

const (
	external = "../../testdata/translate/external/in"
	failover = "../../testdata/translate/failover-shift/in"
)

// answers are those of a user, step by step.
type answers []func(*wizardtest.Script) *wizardtest.Script

func picks(question, value string) func(*wizardtest.Script) *wizardtest.Script {
	return func(s *wizardtest.Script) *wizardtest.Script { return s.Picks(question, value) }
}

func picksAll(question string, values ...string) func(*wizardtest.Script) *wizardtest.Script {
	return func(s *wizardtest.Script) *wizardtest.Script { return s.PicksAll(question, values...) }
}

func types(question, answer string) func(*wizardtest.Script) *wizardtest.Script {
	return func(s *wizardtest.Script) *wizardtest.Script { return s.Types(question, answer) }
}

func rejects(question, answer, sentence string) func(*wizardtest.Script) *wizardtest.Script {
	return func(s *wizardtest.Script) *wizardtest.Script { return s.Rejects(question, answer, sentence) }
}

// forReviews begins a TrafficPolicy for all requests to one service.
func forReviews(service string, action string, then ...func(*wizardtest.Script) *wizardtest.Script) answers {
	return append(answers{
		picks("which services?", "names"), picksAll("Which services?", service),
		picks("which workloads?", "all"), picks("Which requests?", "all"),
		picksAll("What should happen", action),
	}, then...)
}

// saved ends a wizard in a file.
func (a answers) saved(file string) answers {
	return append(a[:len(a):len(a)], picks("What next?", "save"), types("To which file?", file))
}

func (a answers) script(t *testing.T) *wizardtest.Script {
	t.Helper()
	script := wizardtest.New(t)
	for _, step := range a {
		step(script)
	}
	return script
}

// TestEveryPath goes every way through the wizards that the other tests do not
// go; each manifest can be made again by the command that is shown.
func TestEveryPath(t *testing.T) {
	t.Parallel()
	const reviews = "reviews.bookinfo.cluster-1"
	named := types("Name of the object?", "it")
	for name, c := range map[string]struct {
		use, from string
		answers   answers
		want      string
	}{
		"retries": {"tp", bookinfo, forReviews(reviews, "policy.retries",
			rejects("How many retries", "-1", "should be greater than or equal to 0"), types("How many retries", "3"),
			rejects("How long may one attempt", "3", "must be a duration"), types("How long may one attempt", ""), named), "attempts: 3"},
		"delay": {"tp", bookinfo, forReviews(reviews, "policy.faultInjection", picks("Delay them or fail them?", "delay"),
			types("For how long?", "2s"), rejects("What percentage", "101", "should be less than or equal to 100"), types("What percentage", "12.5"), named), "percentage: 12.5"},
		"abort": {"tp", bookinfo, forReviews(reviews, "policy.faultInjection", picks("Delay them or fail them?", "abort"),
			rejects("With which status?", "99", "should be greater than or equal to"), types("With which status?", "503"), types("What percentage", "10"), named), "httpStatus: 503"},
		"mirror": {"tp", bookinfo, forReviews(reviews, "policy.mirror", picks("Copy them to which service?", "reviews.bookinfo.cluster-2"),
			types("What percentage", "100"), named), "clusterName: cluster-2"},
		"headers": {"tp", bookinfo, forReviews(reviews, "policy.headerManipulation", rejects("add to requests?", "x-team", "must be key=value"),
			types("add to requests?", `x-team=books,"x-list=a,b"`), types("remove from requests?", "x-a,x-b"), types("add to responses?", ""), types("remove from responses?", ""), named), "x-list: a,b"},
		"cors": {"tp", bookinfo, forReviews(reviews, "policy.corsPolicy", types("From which origin?", "suffix=.example.com"),
			types("With which methods?", "GET,POST"), types("How long may browsers", "10m"), named), "suffix: .example.com"},
		"outliers": {"tp", bookinfo, forReviews(reviews, "policy.outlierDetection", types("After how many consecutive errors", "5"), types("endpoints checked", "10s"),
			types("not used?", "30s"), rejects("may be excluded?", "101", "should be less than or equal to 100"), types("may be excluded?", "50"), named), "maxEjectionPercent: 50"},
		"rate limit": {"tp", bookinfo, forReviews(reviews, "policy.rateLimit", rejects("How many requests, in which time?", "100", "must be NUMBER/UNIT with one of second, minute, hour, day"),
			rejects("How many requests, in which time?", "x/second", "must be of type integer"), types("How many requests, in which time?", "100/minute"), named), "unit: MINUTE"},
		"csrf": {"tp", bookinfo, forReviews(reviews, "policy.csrf", picks("What happens to requests from other origins?", "csrf"),
			types("Which other origin", "shop.example.com"), named), "filterEnabled: true"},
		"csrf, only counted": {"tp", bookinfo, forReviews(reviews, "policy.csrf", picks("What happens to requests from other origins?", "csrf-shadow"),
			types("Which other origin", ""), named), "shadowEnabled: true"},
		"tls": {"tp", bookinfo, forReviews(reviews, "policy.mtls", picks("How do callers encrypt?", "ISTIO_MUTUAL"), named), "ISTIO_MUTUAL"},
		"a shift to a VirtualDestination": {"tp", failover, forReviews("cart.shop.cluster-1", "policy.trafficShift",
			picks("Target 1: which service?", "virtual=gloo-mesh/cart"), picks("Target 1: which of its pods?", "version=v2"),
			picks("Add another target?", "no"), named), "virtualDestination:\n"},
		"a shift out of all clusters": {"tp", external, forReviews("cart.shop.cluster-1", "policy.trafficShift",
			picks("Target 1: which service?", "static=gloo-mesh/legacy"), picks("Add another target?", "no"), named), "staticDestination:\n"},
		"all services": {"tp", bookinfo, answers{picks("which services?", "all"), picks("which workloads?", "all"), picks("Which requests?", "all"),
			picksAll("What should happen"), picksAll("What should happen", "policy.requestTimeout"), types("How long", "1s"), named}, "requestTimeout: 1s"},
		"services by label": {"tp", bookinfo, answers{picks("which services?", "matcher"), picksAll("In which namespaces?"), picksAll("In which clusters?", "cluster-2"),
			picksAll("With which labels?", "app=reviews"), picks("which workloads?", "all"), picks("Which requests?", "all"),
			picksAll("What should happen", "policy.requestTimeout"), types("How long", "1s"), named}, "app: reviews"},
		"callers by namespace": {"ap", bookinfo, answers{picks("What should it do?", "allow"), picks("Who may call?", "matcher"), picksAll("In which namespaces?", "bookinfo"), picksAll("In which clusters?"),
			picks("which services?", "all"), types("HTTP methods?", ""), types("paths?", "/api/*"), picksAll("ports"), named}, "kubeIdentityMatcher:"},
		"any caller": {"ap", bookinfo, answers{picks("What should it do?", "allow"), picks("Who may call?", "all"), picks("which services?", "names"), picksAll("Which services?"), picksAll("Which services?", reviews),
			types("HTTP methods?", ""), types("paths?", ""), picksAll("ports"), named}, "name: reviews"},
		"federation of some": {"vm", bookinfo, answers{picksAll("Which meshes", "gloo-mesh/istiod-istio-system-cluster-1"), picks("trust", ""),
			picks("reachable from other meshes?", "matcher"), picksAll("In which namespaces?", "bookinfo"), picksAll("In which clusters?"), picksAll("With which labels?"),
			picks("May all workloads call each other?", "DISABLED"), named}, "destinationSelectors:"},
		"federation of none": {"vm", bookinfo, answers{picksAll("Which meshes", "gloo-mesh/istiod-istio-system-cluster-1"), picks("trust", "shared"),
			picks("reachable from other meshes?", "none"), picks("May all workloads call each other?", ""), named}, "shared: {}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "it.yaml")
			_, stderr, err := wizard(t, c.answers.saved(file).script(t), c.use, "--dir", c.from)
			asktest.Wrote(t, err, stderr)
			manifest, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Contains(t, string(manifest), c.want)
			runEquivalent(t, stderr, manifest)
		})
	}
}

// longWizards are the answers of a long wizard of each kind.
func longWizards() map[string]answers {
	shift := forReviews("reviews.bookinfo.cluster-1", "policy.trafficShift",
		picks("Target 1: which service?", "reviews.bookinfo.cluster-2"), picks("Target 1: which of its pods?", "version=v3"),
		picks("Add another target?", "yes"),
		picks("Target 2: which service?", "reviews.bookinfo.cluster-1"), picks("Target 2: which of its pods?", ""),
		picks("Add another target?", "no"), types("Which percentage for each", "75 25"), types("Name of the object?", "it"))
	mesh := answers{picksAll("Which meshes", "gloo-mesh/istiod-istio-system-cluster-1"), picks("trust", ""),
		picks("reachable from other meshes?", "matcher"), picksAll("In which namespaces?", "bookinfo"), picksAll("In which clusters?"), picksAll("With which labels?"),
		picks("May all workloads call each other?", "DISABLED"), types("Name of the object?", "it")}
	access := answers{picks("What should it do?", "allow"), picks("Who may call?", "accounts"), picksAll("Which service accounts?", "bookinfo-productpage.bookinfo.cluster-1"),
		picks("which services?", "matcher"), picksAll("In which namespaces?", "bookinfo"), picksAll("In which clusters?"), picksAll("With which labels?"),
		types("HTTP methods?", "GET"), types("paths?", ""), picksAll("ports", "9080"), types("Name of the object?", "it")}
	return map[string]answers{"tp": shift, "vm": mesh, "ap": access}
}

// TestInterruptedAnywhere presses ctrl-c at each question in turn. No question is
// repeated, and the manifest is the same as without an interruption.
func TestInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	for use, all := range longWizards() {
		t.Run(use, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "it.yaml")
			_, stderr, err := wizard(t, all.saved(file).script(t), use, "--dir", bookinfo)
			asktest.Wrote(t, err, stderr)
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			for at := range all.saved(file) {
				require.NoError(t, os.Remove(file))
				_, stderr, err := wizard(t, all.saved(file)[:at].script(t).Interrupts(""), use, "--dir", bookinfo)
				require.ErrorIs(t, err, context.Canceled)
				kept := regexp.MustCompile(`--recover (\S+)`).FindStringSubmatch(stderr)
				args := []string{use, "--dir", bookinfo}
				if at > 0 {
					require.Len(t, kept, 2, stderr)
					args = append(args, "--recover", kept[1])
				} else {
					require.Nil(t, kept, "there is nothing to save yet")
				}
				// What to do with the manifest is asked again: it is not an answer about the policy.
				rest := all.saved(file)[min(at, len(all)):]
				_, stderr, err = wizard(t, rest.script(t), args...)
				asktest.Wrote(t, err, stderr)
				got, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Equal(t, string(want), string(got), at)
			}
		})
	}
}

func TestNameThatIsTaken(t *testing.T) {
	t.Parallel()
	_, _, err := wizard(t, wizardtest.New(t).
		Says("TrafficPolicy reviews-shift already exists in namespace gloo-mesh; choose another name, or change it with: meshctl edit trafficpolicy reviews-shift -n gloo-mesh").
		Accepts("Name of the object?", "reviews-traffic").
		Picks("which workloads?", "all").Picks("Which requests?", "all").
		Picks("What next?", "cancel"), "tp", "reviews-shift", "--dir", bookinfo, "--destination", "reviews.bookinfo.cluster-1", "--timeout", "3s")
	require.NoError(t, err)

	_, stderr, err := wizard(t, nil, "tp", "reviews-shift", "--dir", bookinfo, "--destination", "reviews.bookinfo.cluster-1", "--timeout", "3s", "--dry-run")
	require.NoError(t, err)
	assert.Contains(t, stderr, "TrafficPolicy gloo-mesh/reviews-shift already exists, and --apply would not replace it.")

	_, _, err = wizard(t, wizardtest.New(t).
		Picks("which workloads?", "all").Picks("Which requests?", "all").
		Picks("What next?", "edit").
		Edits("name: other", "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: reviews-shift, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 3s}}").
		Says("TrafficPolicy reviews-shift already exists in namespace gloo-mesh").
		Picks("The manifest is not valid", "drop").
		Picks("What next?", "cancel"), "tp", "other", "--dir", bookinfo, "--destination", "reviews.bookinfo.cluster-1", "--timeout", "3s")
	require.NoError(t, err)
}

// TestBackAnywhere presses esc at each question in turn. The question before is asked again, and
// nothing else is; the manifest is the same as without.
func TestBackAnywhere(t *testing.T) {
	t.Parallel()
	for use, all := range longWizards() {
		t.Run(use, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "it.yaml")
			_, stderr, err := wizard(t, all.saved(file).script(t), use, "--dir", bookinfo)
			asktest.Wrote(t, err, stderr)
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			all := all.saved(file)
			for at := range all {
				require.NoError(t, os.Remove(file))
				script := all[:at].script(t).GoesBack("")
				for _, step := range all[max(at-1, 0):] {
					step(script)
				}
				_, stderr, err := wizard(t, script, use, "--dir", bookinfo)
				asktest.Wrote(t, err, stderr)
				got, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Equal(t, string(want), string(got), at)
			}
		})
	}
}

// TestBackToOtherAnswers goes back several questions, of which each has as its default what was
// answered before, and another way from there.
func TestBackToOtherAnswers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "it.yaml")
	_, stderr, err := wizard(t, wizardtest.New(t).
		GoesBack("Requests to which services?").
		Says("This is the first question; ctrl-c cancels.").
		Picks("Requests to which services?", "names").
		PicksAll("Which services?", "reviews.bookinfo.cluster-1", "reviews.bookinfo.cluster-2").
		Picks("which workloads?", "all").Picks("Which requests?", "some").
		Types("Which? Such as", "prefix=/a").
		PicksAll("What should happen", "policy.retries").
		Types("How many retries?", "7").
		Types("How long may one attempt", "2s").
		Types("Name of the object?", "it").
		GoesBack("What next?").GoesBack("Name of the object?").
		Accepts("Empty means no limit per attempt. (- for none)", "2s").
		GoesBack("Name of the object?").
		Types("How long may one attempt", "-").
		GoesBack("Name of the object?").GoesBack("How long may one attempt").
		Accepts("How many retries?", "7").
		GoesBack("How long may one attempt").GoesBack("How many retries?").GoesBack("What should happen").
		Accepts("Which? Such as", "prefix=/a").
		PresetsAll("What should happen", "policy.retries").
		GoesBack("How many retries?").GoesBack("What should happen").GoesBack("Which? Such as").
		Presets("Which requests?", "some").
		GoesBack("Which? Such as").
		Picks("Which requests?", "all").
		PicksAll("What should happen", "policy.requestTimeout").
		Types("How long may a request", "3s").
		GoesBack("Name of the object?").GoesBack("How long may a request").GoesBack("What should happen").
		GoesBack("Which requests?").GoesBack("which workloads?").
		PresetsAll("Which services?", "reviews.bookinfo.cluster-1", "reviews.bookinfo.cluster-2").
		Says("This selects 2 of ").
		Presets("which workloads?", "all").Presets("Which requests?", "all").
		PresetsAll("What should happen", "policy.requestTimeout").
		Accepts("How long may a request", "3s").
		Accepts("Name of the object?", "it").
		Picks("What next?", "save").GoesBack("To which file?").
		Presets("What next?", "save").
		Types("To which file?", file), "tp", "--dir", bookinfo)
	require.NoError(t, err, stderr)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "requestTimeout: 3s")
	assert.NotContains(t, string(manifest), "retries", "what was taken back is gone")
	assert.NotContains(t, string(manifest), "prefix")
	runEquivalent(t, stderr, manifest)
}

// TestBackFromAnEdit: esc after an edit takes the edit back, and then goes on to the questions.
func TestBackFromAnEdit(t *testing.T) {
	t.Parallel()
	edited := "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: other, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 9s}}"
	_, _, err := wizard(t, wizardtest.New(t).
		Picks("which workloads?", "all").Picks("Which requests?", "all").
		Types("Name of the object?", "it").
		Picks("What next?", "edit").Edits("name: it", edited).
		Says("requestTimeout: 9s").
		Picks("What next?", "full").
		GoesBack("What next?").
		Says("requestTimeout: 3s").
		Picks("What next?", "edit").Edits("name: it", "kind: {").
		GoesBack("The manifest is not valid").
		GoesBack("What next?").
		Accepts("Name of the object?", "it").
		Picks("What next?", "cancel"), "tp", "--dir", bookinfo, "--destination", "reviews.bookinfo.cluster-1", "--timeout", "3s")
	require.NoError(t, err)
}

// TestVirtualDestinationWizard: an answer is not rejected for what is asked for only after it; nor is the name of a
// new object, where it is asked for first.
func TestVirtualDestinationWizard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "it.yaml")
	questions := func(script *wizardtest.Script) *wizardtest.Script {
		return script.
			Rejects("By which name is it called? [spec.hostname]", "Books.", "must be a DNS name in lower case").
			Types("By which name is it called?", "books.global").
			Rejects("By which port?", "70000", "should be less than or equal to 65535").
			Types("By which port?", "9080").
			Picks("Who can call it?", "joined").
			Picks("Of which VirtualMesh?", "gloo-mesh/virtual-mesh").
			Picks("Which services stand behind it?", "ordered").
			Picks("Which service comes first?", "reviews.bookinfo.cluster-1").
			Picks("Which one takes over from reviews.bookinfo.cluster-1?", "reviews.bookinfo.cluster-2").
			Picks("Which one takes over from reviews.bookinfo.cluster-2?", "(no more)")
	}
	_, stderr, err := wizard(t, questions(wizardtest.New(t)).
		Rejects("Name of the object?", "Books", "is no name").
		Accepts("Name of the object?", "books").
		Picks("What next?", "save").Types("To which file?", file), "vd", "--dir", bookinfo)
	asktest.Wrote(t, err, stderr)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "hostname: books.global\n")
	runEquivalent(t, stderr, manifest)

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(bookinfo)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "management", "books.yaml"), manifest, 0o600))
	script := wizardtest.New(t).
		Says("VirtualDestination books already exists in namespace gloo-mesh").
		Rejects("Name of the object?", "Books", "is no name").
		Types("Name of the object?", "books-2")
	_, stderr, err = wizard(t, questions(script).Picks("What next?", "cancel"), "vd", "books", "--dir", dir)
	asktest.Wrote(t, err, stderr)
}

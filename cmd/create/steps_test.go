package create

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/cmd/asktest"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// TestSections: each kind says what it makes, and has its sections in the order of what one thinks of first.
func TestSections(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"virtualmesh":        {"Meshes", "Trust", "Federation", "Access"},
		"trafficpolicy":      {"Destinations", "Callers", "Requests", "Actions"},
		"accesspolicy":       {"Action", "Callers", "Destinations", "Requests"},
		"virtualdestination": {"Name and port", "Callers", "Services"},
		"servicedependency":  {"Callers", "Destinations"},
		"accesslogrecord":    {"Workloads", "Requests", "Headers"},
		"role":               {"Kinds", "Scopes"},
		"rolebinding":        {"Role", "Subjects"},
	}
	for _, kind := range Kinds() {
		assert.Equal(t, want[kind.Use], kind.Form.Sections(), kind.Use)
		s := wizards.Session{Form: kind.Form, Namespace: "gloo-mesh", Name: "x"}
		assert.Equal(t, "New "+kind.Form.Kind.String(), s.Title())
		s.Edits = &wizards.Earlier{}
		assert.Equal(t, "Edit "+kind.Form.Kind.String()+" gloo-mesh/x", s.Title())
	}
	assert.Len(t, want, len(Kinds()))
}

// chance answers at random, goes back at random, and changes answers at random.
type chance struct {
	*rand.Rand
	wizardtest.Steps

	t     *testing.T
	asked int
	// wrong is the first thing that is wrong with a step.
	wrong error
	// repeats: an answer is being changed into itself; since are the questions after that.
	repeats bool
	since   []string
	// before is the object before that, and current is the one of now.
	before  *unstructured.Unstructured
	current func() *unstructured.Unstructured
	changed int
}

// most bounds the questions that are asked before the user heads for the end.
const most = 60

func (c *chance) ask(q wizards.Question) error {
	c.asked++
	require.Less(c.t, c.asked, 10*most, q.Line())
	if err := c.Asked(q); err != nil && c.wrong == nil {
		c.wrong = err
	}
	if c.repeats {
		c.since = append(c.since, q.Line())
		return nil
	}
	if q.Back && c.asked < most && c.IntN(8) == 0 {
		c.Back()
		return wizards.ErrBack
	}
	return nil
}

func (c *chance) Select(q wizards.Question, options []wizards.Option, preset string) (string, error) {
	if err := c.ask(q); err != nil {
		return "", err
	}
	some := func() string { return options[c.IntN(len(options))].Value }
	switch {
	case q.Text == "What next?":
		if c.repeats {
			c.repeats = false
			assert.Equal(c.t, c.before.Object, c.current().Object, "an answer was changed into itself")
			for _, asked := range c.since[1 : len(c.since)-1] {
				assert.Contains(c.t, asked, "Change who trusts whom?", "asked again, though its answer still fits")
			}
			c.changed++
		}
		if c.asked < most && slices.ContainsFunc(options, func(o wizards.Option) bool { return o.Value == "change" }) {
			return "change", nil
		}
		return "cancel", nil
	case strings.HasPrefix(q.Text, "Which answer do you want to change?"):
		c.Back()
		if c.repeats = c.IntN(2) == 0; c.repeats {
			c.before, c.since = c.current(), nil
		}
		return some(), nil
	case c.repeats:
		return preset, nil
	case strings.HasPrefix(q.Text, "Which one takes over"), strings.HasPrefix(q.Text, "Add another"):
		if c.IntN(2) == 0 {
			return options[0].Value, nil
		}
	}
	return some(), nil
}

func (c *chance) MultiSelect(q wizards.Question, options []wizards.Option, preset []string) ([]string, error) {
	if err := c.ask(q); err != nil || c.repeats {
		return preset, err
	}
	var out []string
	for _, o := range options {
		if c.IntN(len(options)) < 2 {
			out = append(out, o.Value)
		}
	}
	return out, nil
}

func (c *chance) Input(q wizards.Question, preset string, check func(string) error) (string, error) {
	if err := c.ask(q); err != nil {
		return "", err
	}
	typed := []string{"", "3s", "2", "503", "GET", "/api/*", "prefix=/", "x-a=b", "x-a", "https://example.com", "50/minute", "user=ada", "books.global", "9080", "status>=500", fmt.Sprintf("it-%d", c.asked)}
	c.Shuffle(len(typed), func(i, j int) { typed[i], typed[j] = typed[j], typed[i] })
	if preset != "" && (c.repeats || c.IntN(2) == 0) {
		typed = slices.Insert(typed, 0, preset)
	} else if c.repeats {
		typed = slices.Insert(typed, 0, "")
	}
	var errs []error
	for _, one := range typed {
		err := check(one)
		if err == nil {
			return one, nil
		}
		errs = append(errs, err)
	}
	require.NoError(c.t, errors.Join(errs...), "nothing is accepted: %s", q.Line())
	return "", nil
}

func (c *chance) Edit(text string) (string, error) { return text, nil }
func (c *chance) Say(string)                       {}
func (c *chance) Show([]wizards.Line)              {}

// storedOf is an object of a kind; nil if there is none.
func storedOf(catalog *wizards.Catalog, kind snapshot.Kind) snapshot.APIObject {
	for ref, object := range catalog.Input.Objects {
		if ref.Kind == kind {
			return object
		}
	}
	return nil
}

// earlier is an object to edit.
func earlier(t *testing.T, form *wizards.Form, stored snapshot.APIObject) *wizards.Earlier {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	require.NoError(t, err)
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(form.Kind.Info().GroupVersion().WithKind(form.Kind.String()))
	e, err := wizards.NewEarlier(form, object)
	require.NoError(t, err)
	return e
}

// TestRandomSessions: whatever is answered, the count of steps is true; and who changes an answer into itself is asked
// nothing else, and gets the same object.
func TestRandomSessions(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	read, err := cmdutil.ReadFolder(streams, bookinfo)
	require.NoError(t, err)
	catalog := wizards.NewCatalog(read.Input, asktest.Now())
	changed := 0
	for _, kind := range Kinds() {
		for seed := range uint64(4) {
			c := &chance{Rand: rand.New(rand.NewPCG(seed, uint64(len(kind.Use)))), t: t}
			s := &wizards.Session{Prompter: c, Form: kind.Form, Catalog: catalog, Checker: asktest.Checker, Namespace: "gloo-mesh", Answers: wizards.Answers{}}
			total := len(kind.Form.Sections()) + 2 // the name, and the review
			if stored := storedOf(catalog, kind.Form.Kind); seed%2 == 1 && stored != nil {
				s.Edits, s.Namespace, s.Name = earlier(t, kind.Form, stored), stored.GetNamespace(), stored.GetName()
				total--
			}
			c.current = func() *unstructured.Unstructured {
				object, err := s.Object()
				require.NoError(t, err)
				return object
			}
			err := s.Ask(func() error {
				_, err := s.Finish(true)
				return err
			})
			if err != nil && kind.Form.Kind == snapshot.RoleBinding {
				require.ErrorContains(t, err, "there is no Role to give")
				continue
			}
			require.NoError(t, err, "%s %d", kind.Use, seed)
			require.NoError(t, c.wrong, "%s %d", kind.Use, seed)
			assert.Equal(t, []string{s.Title()}, c.Titles())
			assert.Equal(t, total, c.Last().Total)
			changed += c.changed
		}
	}
	assert.Greater(t, changed, 20, "answers that were changed into themselves")
}

// TestChangeAnAnswer: from the review one goes to any answer; the later ones stay where they still fit, and what is
// new is asked for.
func TestChangeAnAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "it.yaml")
	const change = "Which answer do you want to change?"
	script := wizardtest.New(t).
		Says("New TrafficPolicy\n").
		Picks("Requests to which services?", "names").
		PicksAll("Which services?", "ratings.bookinfo.cluster-1").
		Picks("Requests from which workloads?", "matcher").
		// The first round is no answer, and not listed.
		PicksAll("In which namespaces?").PicksAll("In which clusters?").PicksAll("With which labels?").
		PicksAll("In which namespaces?", "bookinfo").PicksAll("In which clusters?").PicksAll("With which labels?").
		Picks("Which requests?", "all").
		PicksAll("What should happen", "policy.trafficShift", "policy.requestTimeout").
		Picks("Target 1: which service?", "reviews.bookinfo.cluster-2").Picks("Target 1: which of its pods?", "version=v3").
		Picks("Add another target?", "yes").
		Picks("Target 2: which service?", "ratings.bookinfo.cluster-1").
		Picks("Add another target?", "no").
		Types("Which percentage for each of the 2", "75 25").
		Types("How long may a request take", "7s").
		Types("Name of the object?", "it").
		Picks("What next?", "change").
		GoesBack(change).
		Presets("What next?", "change").
		Picks(change, "1"). // Which services?
		PicksAll("Which services?", "reviews.bookinfo.cluster-1").
		Says("Requests from which workloads? workloads by namespace, cluster or pod label (as before)\nIn which namespaces? bookinfo (as before)\nIn which clusters? (empty) (as before)\n").
		Says("Add another target? yes (as before)\n").
		Says("Which percentage for each of the 2, such as 50 50? 75 25 (as before)\n").
		Says("Name of the object? it (as before)\n").
		Picks("What next?", "change").
		Picks(change, "8"). // the first target
		Picks("Target 1: which service?", "reviews.bookinfo.cluster-1").
		Says("Target 1: which of its pods? The answer before was version=v3: that is no option any more\n").
		Picks("Target 1: which of its pods?", "version=v2").
		Says("How long may a request take, retries included? 7s (as before)\n").
		Picks("What next?", "save").
		GoesBack("To which file?").
		Picks("What next?", "edit").
		Edits("name: it", "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: other, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}").
		Picks("What next?", "change").
		Picks(change, "7"). // what should happen
		PicksAll("What should happen", "policy.requestTimeout", "policy.retries").
		Accepts("How many retries?", "2").
		Accepts("How long may one attempt take?", "").
		Says("Name of the object? it (as before)\n").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "tp", "--dir", bookinfo)
	asktest.Wrote(t, err, stderr)
	assert.Contains(t, stderr, "it --namespace gloo-mesh --destination reviews.bookinfo.cluster-1 --source-namespaces bookinfo --timeout 7s --retries 2 --save")
}

// TestNothingIsSaidWithoutQuestions: titles and steps are for who is asked.
func TestNothingIsSaidWithoutQuestions(t *testing.T) {
	t.Parallel()
	_, stderr, err := wizard(t, nil, "tp", "x", "--dir", bookinfo, "--destination", "ratings.bookinfo.cluster-1", "--timeout", "3s", "--dry-run")
	require.NoError(t, err)
	_, asked, err := wizard(t, wizardtest.New(t), "tp", "x", "--dir", bookinfo, "--destination", "ratings.bookinfo.cluster-1", "--timeout", "3s", "--dry-run")
	require.NoError(t, err)
	for _, said := range []string{stderr, asked} {
		assert.NotContains(t, said, "New TrafficPolicy")
		assert.NotContains(t, said, " of 6")
	}
}

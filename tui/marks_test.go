package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// store is a source whose objects can be deleted: those of a folder, which it keeps in memory.
type store struct {
	fixedSource
	input *snapshot.Input
	// keeps are objects that cannot be deleted, and why.
	keeps map[snapshot.Ref]error
	// reviewed are the numbers of drafts that were reviewed.
	reviewed []int
}

func (s *store) Kubectl(words string) string { return "kubectl " + words }

func (s *store) Refuses(ref snapshot.Ref) string {
	if info := ref.Kind.Info(); info.Side != snapshot.ManagementSide || info.Access&snapshot.Watch == 0 || ref.Kind == snapshot.KubernetesCluster {
		return "a " + ref.Kind.String() + " is not written here"
	}
	return ""
}

func (s *store) Remove(_ context.Context, ref snapshot.Ref) (*Draft, error) {
	object := s.input.Find(ref)
	if object == nil {
		return nil, fmt.Errorf("%s: not found", ref)
	}
	text, err := snapshot.Manifest(ref, object)
	return &Draft{Ref: ref, Before: string(text)}, err
}

func (s *store) Edit(context.Context, snapshot.Ref, *Draft) (*Draft, error) {
	return nil, errors.New("there is no editor")
}

func (s *store) Review(_ context.Context, drafts []Draft) *Review {
	s.reviewed = append(s.reviewed, len(drafts))
	edits := make([]explain.Edit, len(drafts))
	for i := range drafts {
		edits[i] = explain.Edit{Ref: drafts[i].Ref}
	}
	translator := engine.New(engine.Options{})
	planned, _, err := explain.New(translator.Translate(s.input)).Plan(translator.Translate, edits, noon)
	if err != nil {
		return &Review{Refused: err.Error()}
	}
	return &Review{Planned: planned}
}

func (s *store) Write(_ context.Context, draft *Draft) (string, error) {
	if err := s.keeps[draft.Ref]; err != nil {
		return "", fmt.Errorf("%s: %w", draft.Ref, err)
	}
	s.input = s.input.Without(draft.Ref)
	return draft.Ref.String() + " was deleted", nil
}

func policyRef(kind snapshot.Kind, name string) snapshot.Ref {
	return snapshot.Ref{Kind: kind, Namespace: "gloo-mesh", Name: name}
}

var (
	patient    = policyRef(snapshot.TrafficPolicy, "patient")
	shift      = policyRef(snapshot.TrafficPolicy, "reviews-shift")
	pageCalls  = policyRef(snapshot.AccessPolicy, "productpage-calls")
	reviewCall = policyRef(snapshot.AccessPolicy, "reviews-calls")
)

// writing gives a dashboard that may delete what is in a folder.
func writing(t *testing.T, theme *Theme, width, height int) (*Model, *store) {
	t.Helper()
	input, _, err := offline.Load(offline.Dir("../testdata/translate/bookinfo/in"))
	require.NoError(t, err)
	s := &store{input: input}
	m := startWith(t, s.read(), theme, width, height)
	m.source = s
	m.Update(tickMsg(noon)) // the source is another, so the page is refreshed
	return m, s
}

// read is what the source reads.
func (s *store) read() *Update { return folderUpdate(explain.New(engine.Translate(s.input))) }

// TestMarkKeys: what the keys do, and where.
func TestMarkKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys        string
		marked      []snapshot.Ref
		has, hasNot string
	}{
		"one":                          {"5 ", []snapshot.Ref{patient}, "Policies [4] 1 marked ──", ""},
		"space moves on":               {"5 ", []snapshot.Ref{patient}, "\n *✗ TrafficPolicy  patient", ""},
		"two":                          {"5  ", []snapshot.Ref{patient, shift}, "Policies [4] 2 marked ──", ""},
		"the cursor on a marked row":   {"5 k", []snapshot.Ref{patient}, "\n>*✗ TrafficPolicy  patient", ""},
		"space again":                  {"5 k ", nil, "Policies [4] ──", "marked"},
		"the last row":                 {"5G ", []snapshot.Ref{reviewCall}, "\n>*  AccessPolicy   reviews-calls", ""},
		"from the mark above":          {"5j jm", []snapshot.Ref{shift, pageCalls, reviewCall}, "3 marked", ""},
		"from the nearest mark above":  {"5 j m", []snapshot.Ref{patient, pageCalls, reviewCall}, "3 marked", ""},
		"from the mark below":          {"5G km␣", []snapshot.Ref{pageCalls, reviewCall}, "2 marked", ""},
		"ctrl-space":                   {"5j j␣", []snapshot.Ref{shift, pageCalls, reviewCall}, "3 marked", ""},
		"from none":                    {"5m", []snapshot.Ref{patient, shift, pageCalls, reviewCall}, "4 marked", ""},
		"what the filter shows":        {"5/access\nm", []snapshot.Ref{pageCalls, reviewCall}, "Policies [2 of 4] 2 marked /access", ""},
		"marks that are not shown":     {"5 /access\n ", []snapshot.Ref{patient, pageCalls}, "Policies [2 of 4] 2 marked, 1 not shown /access", ""},
		"a range of what is shown":     {"5 /access\nm", []snapshot.Ref{patient, pageCalls, reviewCall}, "3 marked, 1 not shown", ""},
		"esc clears the filter first":  {"5/access\nm⎋", []snapshot.Ref{pageCalls, reviewCall}, "Policies [4] 2 marked ──", "not shown"},
		"esc then clears the marks":    {"5/access\nm⎋⎋", nil, "Policies [4] ──", "marked"},
		"sorted":                       {"5 sssS", []snapshot.Ref{patient}, "\n *✗ TrafficPolicy  patient", ""},
		"another page and back":        {"5 25", []snapshot.Ref{patient}, "1 marked", ""},
		"another page has its own":     {"5 4", nil, "Virtual meshes [1] ──", "marked"},
		"e with a mark elsewhere":      {"5 e", []snapshot.Ref{patient}, "another one is marked, e edits one: esc unmarks; or enter, then e", ""},
		"e with marks":                 {"5  e", []snapshot.Ref{patient, shift}, "2 are marked, e edits one: esc unmarks; or enter, then e", ""},
		"e on the only mark":           {"5 ke", []snapshot.Ref{patient}, "", "e edits one"},
		"a row that cannot be marked":  {"1 ", nil, "", "marked"},
		"a range of none":              {"2m", nil, "none of these rows is of an object that can be changed", "marked ──"},
		"no row":                       {"5/no such thing\n ", nil, "there is no row", ""},
		"a problem marks its object":   {"7 ", []snapshot.Ref{patient}, "1 marked", ""},
		"a page of text":               {"5 \nm", nil, "this works on list pages only", ""},
		"deleting from a page of text": {"5 j\n⌦", nil, "Delete AccessPolicy gloo-mesh/productpage-calls?", ""},
		"the key in the bottom line":   {"5", nil, "enter open · space mark · y YAML · / filter · ", ""},
		"the keys with marks":          {"5  ", []snapshot.Ref{patient, shift}, "space mark · ctrl-d delete 2 · esc unmark · ", ""},
		"the keys where nothing is":    {"2", nil, "enter open · y YAML · / filter", "space"},
		"YAML of the marked":           {"5 jy", nil, "── YAML of TrafficPolicy gloo-mesh/patient", ""},
		"YAML of several":              {"5  y", nil, "── YAML of 2 objects", ""},
		"commands of several":          {"5  c", nil, "describe trafficpolicy reviews-shift", ""},
		"deleting the YAML of several": {"5  y⌦", nil, "this page is about several objects", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := writing(t, NewTheme(NoColour), 100, 30)
			press(t, m, c.keys)
			view := frameOf(m).screen()
			fits(t, name, view, 100, 30)
			assert.Contains(t, view, c.has)
			if c.hasNot != "" {
				assert.NotContains(t, view, c.hasNot)
			}
			if p, lists := m.top().(*listPage); lists {
				assert.ElementsMatch(t, c.marked, p.marks.list())
			}
		})
	}
}

// TestSpaceIsAPageDown where nothing can be marked.
func TestSpaceIsAPageDown(t *testing.T) {
	t.Parallel()
	down := func(m *Model, keys string) int {
		press(t, m, keys)
		return m.list().window.cursor
	}
	readOnly := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 12)
	assert.Positive(t, down(readOnly, "5 "), "nothing can be changed")
	assert.Zero(t, readOnly.list().marks.count())
	press(t, readOnly, "m")
	assert.Contains(t, frameOf(readOnly).screen(), "this dashboard is read-only")
	m, _ := writing(t, NewTheme(NoColour), 100, 12)
	assert.Greater(t, down(m, "2 "), 1, "services are discovered")
	m, _ = writing(t, NewTheme(NoColour), 160, 45)
	press(t, m, "5d ")
	assert.Zero(t, m.list().marks.count(), "in the details")
	assert.Positive(t, m.pane.page.window.cursor)
	press(t, m, "⎋ ")
	assert.Equal(t, 1, m.list().marks.count())
}

// TestMarkStaysWithItsObject when an update moves its row, and goes with the object.
func TestMarkStaysWithItsObject(t *testing.T) {
	t.Parallel()
	m, s := writing(t, NewTheme(NoColour), 100, 30)
	receive := func() {
		t.Helper()
		m.Update(prepared(s.read(), m.tables))
	}
	press(t, m, "5j ")
	require.Contains(t, frameOf(m).screen(), "\n *  TrafficPolicy  reviews-shift")
	at := func(name string) int {
		for i, picked := range m.list().picked {
			if m.list().grid.rows[picked].Ref.Name == name {
				return i
			}
		}
		return -1
	}
	was := at("reviews-shift")
	input, err := s.input.With("", &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "added", CreationTimestamp: metav1.NewTime(noon)}})
	require.NoError(t, err)
	s.input = input
	receive()
	require.Equal(t, was+1, at("reviews-shift"), "its row is another")
	assert.Equal(t, []snapshot.Ref{shift}, m.list().marks.list())
	assert.Contains(t, frameOf(m).screen(), "\n *  TrafficPolicy  reviews-shift")
	assert.NotContains(t, frameOf(m).screen(), "*  TrafficPolicy  added")
	assert.Contains(t, frameOf(m).screen(), "+! TrafficPolicy  added", "news of rows that are not marked stay")

	press(t, m, "5k") // another mark, on a page that is left before its object goes
	press(t, m, "g ")
	require.Equal(t, 2, m.list().marks.count())
	press(t, m, "1")
	s.input = s.input.Without(shift)
	receive()
	press(t, m, "5")
	assert.NotContains(t, m.list().marks.list(), shift)
	assert.Contains(t, frameOf(m).screen(), "Policies [4] 1 marked")
	s.input, err = s.input.With("", &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: shift.Name, CreationTimestamp: metav1.NewTime(noon)}})
	require.NoError(t, err)
	receive()
	assert.Contains(t, frameOf(m).screen(), "Policies [5] 1 marked", "another object of its name is not marked")
}

// TestDeleteSeveral: the review is of all together, and so is the answer; what fails keeps no other from being deleted.
func TestDeleteSeveral(t *testing.T) {
	t.Parallel()
	m, s := writing(t, NewTheme(NoColour), 120, 60)
	press(t, m, "5j⌦")
	assert.Contains(t, frameOf(m).screen(), "Delete TrafficPolicy gloo-mesh/reviews-shift?")
	const alone = "timeout: 10s, before 3s"
	require.Contains(t, frameOf(m).screen(), alone, "the timeout of patient takes over")
	press(t, m, "n")

	press(t, m, "g  ") // both
	press(t, m, "⌦")
	view := frameOf(m).screen()
	assert.Equal(t, []int{1, 2}, s.reviewed, "all are reviewed at once")
	assert.Contains(t, view, "Delete 2 objects?")
	assert.Contains(t, view, "- TrafficPolicy gloo-mesh/patient")
	assert.Contains(t, view, "- TrafficPolicy gloo-mesh/reviews-shift")
	assert.NotContains(t, view, alone, "patient goes, too")
	assert.Contains(t, view, "y delete 2 · n leave them as they are")
	press(t, m, "n")
	assert.Contains(t, frameOf(m).screen(), "2 objects were not changed")
	assert.Equal(t, 2, m.list().marks.count(), "the marks stay")
	assert.Empty(t, m.deleted)

	press(t, m, "G ") // a third, of another kind
	s.keeps = map[snapshot.Ref]error{shift: errors.New("a policy of the cluster keeps it")}
	press(t, m, "⌦")
	assert.Contains(t, frameOf(m).screen(), "Delete 3 objects?")
	press(t, m, "y")
	view = frameOf(m).screen()
	assert.Contains(t, view, "── 2 of 3 objects were deleted ──")
	assert.Contains(t, view, "✗ TrafficPolicy gloo-mesh/reviews-shift: a policy of the cluster keeps it")
	assert.Contains(t, view, "  TrafficPolicy gloo-mesh/patient was deleted")
	assert.Contains(t, view, "  AccessPolicy gloo-mesh/reviews-calls was deleted")
	assert.Contains(t, view, "2 of 3 objects were deleted; @ shows what they were")
	assert.Nil(t, s.input.Find(patient))
	assert.Nil(t, s.input.Find(reviewCall))
	assert.NotNil(t, s.input.Find(shift))
	press(t, m, "y")
	assert.Contains(t, frameOf(m).screen(), "it cannot be deleted, for the reason above; n leaves it as it was")
	press(t, m, "n")
	assert.Equal(t, []snapshot.Ref{shift}, m.list().marks.list(), "what failed stays marked")
	press(t, m, "@")
	view = frameOf(m).screen()
	assert.Contains(t, view, "kubectl delete trafficpolicies.networking.mesh.gloo.solo.io/patient")
	assert.Regexp(t, `(?s)What was deleted here.*AccessPolicy gloo-mesh/reviews-calls *\n.*name: reviews-calls.*TrafficPolicy gloo-mesh/patient *\n.*name: patient`, view)
	press(t, m, "⎋")

	s.keeps = nil
	press(t, m, "⌦y")
	assert.Contains(t, frameOf(m).screen(), "TrafficPolicy gloo-mesh/reviews-shift was deleted; @ shows what it was")
	assert.Zero(t, m.list().marks.count())

	// An object that went in the meantime ends it before the review.
	press(t, m, "g ") // its row stays until the next update
	press(t, m, "jm⌦")
	assert.Contains(t, frameOf(m).screen(), "TrafficPolicy gloo-mesh/patient: not found; nothing was deleted")
	assert.NotNil(t, s.input.Find(pageCalls))
}

// TestLeftWhileItIsWritten: what failed is said where the review is not on the screen any more.
func TestLeftWhileItIsWritten(t *testing.T) {
	t.Parallel()
	m, s := writing(t, NewTheme(NoColour), 160, 30)
	s.keeps = map[snapshot.Ref]error{shift: errors.New("a policy of the cluster keeps it")}
	press(t, m, "5  ⌦")
	_, written := m.Update(keyOf('y'))
	press(t, m, "q")
	assert.Contains(t, frameOf(m).screen(), "it is being written; esc leaves, ctrl-c quits all the same")
	press(t, m, "⎋")
	require.NotContains(t, frameOf(m).screen(), "Delete 2 objects?")
	settle(m, written)
	assert.Contains(t, frameOf(m).screen(), "1 of 2 objects was deleted; @ shows what it was; TrafficPolicy gloo-mesh/reviews-shift: a policy of the cluster keeps it")
	assert.Equal(t, []snapshot.Ref{shift}, m.list().marks.list())
}

// TestAllDeleted: the answer is one sentence where nothing fails.
func TestAllDeleted(t *testing.T) {
	t.Parallel()
	m, s := writing(t, NewTheme(NoColour), 100, 30)
	press(t, m, "5m⌦y")
	view := frameOf(m).screen()
	assert.Contains(t, view, "4 objects were deleted; @ shows what they were")
	assert.Contains(t, view, "── Policies [4] ──", "the list is back, and nothing is marked")
	assert.Empty(t, s.input.Management.TrafficPolicies)
	assert.Empty(t, s.input.Management.AccessPolicies)
	assert.Len(t, m.deleted, 4)
}

// TestCommandsOfSeveral: one command for each namespace, that kubectl takes.
func TestCommandsOfSeveral(t *testing.T) {
	t.Parallel()
	other := policyRef(snapshot.AccessPolicy, "other")
	other.Namespace = "shop"
	assert.Equal(t, []string{
		"kubectl delete trafficpolicies.networking.mesh.gloo.solo.io patient reviews-shift -n gloo-mesh",
	}, kubectl(&store{}, "delete", []snapshot.Ref{patient, shift}, ""))
	assert.Equal(t, []string{
		"kubectl get trafficpolicies.networking.mesh.gloo.solo.io/patient accesspolicies.networking.mesh.gloo.solo.io/reviews-calls -n gloo-mesh -o yaml",
		"kubectl get accesspolicies.networking.mesh.gloo.solo.io other -n shop -o yaml",
	}, kubectl(&store{}, "get", []snapshot.Ref{patient, other, reviewCall}, " -o yaml"))
	assert.Empty(t, kubectl(&fixedSource{}, "get", []snapshot.Ref{patient}, ""))
}

// marked are screens with marks, and without any but of a dashboard that may change objects.
var marked = []screen{
	{"nothing marked", "5"}, {"marks", "5 j "}, {"the cursor on a mark", "5 k"}, {"marks that are not shown", "5 /access\n "},
	{"problems", "7 "}, {"a review", "5  ⌦"}, {"one that failed", "5  G ⌦y"}, {"YAML of the marked", "5  y"}, {"commands of the marked", "5  c"},
	{"an edit", "5  e"}, {"help", "?"},
}

// TestGoldenMarks paints the screens with marks in three sizes, and once in colours.
func TestGoldenMarks(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		screens       []screen
		background    Background
		width, height int
	}{
		"marks-60x15.txt":       {marked, NoColour, 60, 15},
		"marks-80x24.txt":       {marked, NoColour, 80, 24},
		"marks-160x45.txt":      {marked, NoColour, 160, 45},
		"marks-80x24-dark.ansi": {marked[:5], Dark, 80, 24},
	} {
		var b strings.Builder
		for _, look := range c.screens {
			m, s := writing(t, NewTheme(c.background), c.width, c.height)
			s.keeps = map[snapshot.Ref]error{shift: errors.New(`trafficpolicies "reviews-shift" is forbidden: it is kept`)}
			press(t, m, look.keys)
			m.Update(tickMsg(noon)) // a review brings the time
			view := frameOf(m).screen()
			fits(t, look.name, view, c.width, c.height)
			fmt.Fprintf(&b, "==== %s: %s\n%s\n", look.name, strings.ReplaceAll(look.keys, "\n", "⏎"), clip(view))
		}
		golden.File(t, "testdata/"+file, b.String())
	}
}

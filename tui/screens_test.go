package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// noon is when all screens are painted.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// screen is what is pressed before a look, from the first page on.
type screen struct{ name, keys string }

func screens(destination, workload, policy, mesh string) []screen {
	return []screen{
		{"fleet", "1"}, {"destinations", "2"}, {"workloads", "3"}, {"virtual meshes", "4"}, {"policies", "5"},
		{"changes", "6"}, {"problems", "7"}, {"check", "8"}, {"edges", "9"},
		{"why a request", ":why " + workload + " " + destination + " GET /reviews/1\n"}, {"asking why", "2a"}, {"a question about nothing", ":why " + workload + " nowhere\n"},
		{"a destination", ":" + destination + "\n"}, {"its end", ":" + destination + "\nG"}, {"its YAML", ":" + destination + "\nyG"},
		{"a workload", ":workloads " + workload + "\n"}, {"a policy", ":policies " + policy + "\n"},
		{"YAML of a policy", ":policies " + policy + "\ny"},
		{"a mesh", ":" + mesh + "\n"}, {"a virtual mesh", ":virtual-mesh\n"}, {"a cluster", ":cluster-01\n:cluster-1\n"},
		{"help", "?"}, {"filtered, sorted and scoped", "2/re\nsss:@" + strings.Replace(mesh, "istiod-istio-system-", "", 1) + "\n"},
		{"nothing fits", "2/no such thing\n"}, {"a search", ":" + destination + "\n/cluster-\nn"}, {"columns to the right", "2→→"}, {"the commands so far", "2\n5\n@"}, {"a command being typed", ":de"}, {"a key that does nothing here", "2e"},
	}
}

// takenOver are screens about failover.
var takenOver = []screen{
	{"policies", ":vdest\n"}, {"a virtual destination", ":policies cart\n"}, {"its end", ":policies cart\nG"}, {"its YAML", ":policies cart\ny"},
	{"what is generated from it", ":policies cart\ny  "},
	{"a destination behind it", ":destinations cart.shop.cluster-1\n"}, {"what it fails over to", ":destinations cart.shop.cluster-1\nG"},
}

// beside are screens with details beside a list.
var beside = []screen{
	{"fleet", "1"}, {"policies", "5"}, {"in the details", "5jdjj"}, {"the end of the details", "5dG"}, {"a link of the details", "5d\t\n"}, {"back in the list", "5d⎋j"},
	{"without details", "5w"}, {"a row with nothing to show", "8d"}, {"problems", "7"},
}

// limited are screens about workloads with a ServiceDependency.
var limited = []screen{{"policies", "5"}, {"a service dependency", ":sdep\n\n"}, {"a workload", "3\n"}}

// watched are screens of a management cluster.
var watched = []screen{
	{"fleet", "1"}, {"virtual meshes", "4"}, {"changes", "6"}, {"changes, filtered", "6/unreach\n"}, {"problems", "7"},
	{"a cluster that does not answer", ":cluster-3\n"}, {"the command for it", "Gc"},
}

// relayed are screens of a management cluster with a cluster that is reached through its agent.
var relayed = []screen{{"fleet", "1"}, {"a cluster behind an agent", ":cluster-2\n"}, {"problems", "7"}}

// counted are screens of a fleet whose proxies are counted.
var counted = []screen{
	{"fleet", "1"}, {"destinations", "2"}, {"workloads", "3"}, {"edges", "9"}, {"a shift", ":policies reviews-shift\n"}, {"who may call", ":policies reviews-calls\n"},
	{"a destination", ":ratings.bookinfo.cluster-2\n"}, {"problems", "7"}, {"why a request", ":why details-v1 ratings.bookinfo.cluster-1\n"},
}

// TestGolden paints every page over folders in the sizes of common terminals without colours,
// and in the dark theme; the light one has the same marks in other colours. Each golden file is one folder and size.
func TestGolden(t *testing.T) {
	t.Parallel()
	small := screens("reviews.bookinfo.cluster-1", "productpage-v1", "patient", "istiod-istio-system-cluster-1")
	large := screens("service-00007.team-000.cluster-03", "service-00007.team-000.cluster-03", "traffic-00007", "istiod-istio-system-cluster-03")
	bookinfo, ten := folderUpdate(load(t, "../testdata/translate/bookinfo/in")), folderUpdate(load(t, writeFolder(t, enginetest.World(largeSize))))
	failover := folderUpdate(load(t, "../testdata/translate/failover-localized/in"))
	dependencies := folderUpdate(load(t, "../testdata/translate/service-dependencies/in"))
	live, relay := liveUpdate(t, "../testdata/translate/frozen/in"), relayUpdate(t, "../testdata/translate/bookinfo/in")
	count := countedUpdate(t, "../testdata/translate/bookinfo/in")
	for _, c := range []struct {
		file          string
		update        *Update
		screens       []screen
		width, height int
		background    Background
	}{
		{"bookinfo-80x23.txt", bookinfo, small, 80, 23, NoColour},
		{"bookinfo-100x30.txt", bookinfo, small, 100, 30, NoColour},
		{"bookinfo-200x60.txt", bookinfo, small, 200, 60, NoColour},
		{"bookinfo-50x15.txt", bookinfo, small, 50, 15, NoColour},
		{"bookinfo-100x30-dark.ansi", bookinfo, small, 100, 30, Dark},
		{"bookinfo-80x23-light.ansi", bookinfo, small[:8], 80, 23, Light},
		{"large-80x23.txt", ten, large, 80, 23, NoColour},
		{"bookinfo-160x45.txt", bookinfo, beside, 160, 45, NoColour},
		{"bookinfo-160x45-dark.ansi", bookinfo, beside[:3], 160, 45, Dark},
		{"large-200x60.txt", ten, large, 200, 60, NoColour},
		{"large-100x30-dark.ansi", ten, large, 100, 30, Dark},
		{"failover-80x23.txt", failover, takenOver, 80, 23, NoColour},
		{"failover-200x60.txt", failover, takenOver, 200, 60, NoColour},
		{"dependencies-200x60.txt", dependencies, limited, 200, 60, NoColour},
		{"live-80x23.txt", live, watched, 80, 23, NoColour},
		{"live-100x30.txt", live, watched, 100, 30, NoColour},
		{"live-200x60.txt", live, watched, 200, 60, NoColour},
		{"relay-80x23.txt", relay, relayed, 80, 23, NoColour},
		{"relay-200x60.txt", relay, relayed, 200, 60, NoColour},
		{"counted-80x23.txt", count, counted, 80, 23, NoColour},
		{"counted-200x60.txt", count, counted, 200, 60, NoColour},
		{"live-80x23-dark.ansi", live, watched[:5], 80, 23, Dark},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, s := range c.screens {
				m := startWith(t, c.update, NewTheme(c.background), c.width, c.height)
				press(t, m, s.keys)
				view := frameOf(m).screen()
				fits(t, s.name, view, c.width, c.height)
				fmt.Fprintf(&b, "==== %s: %s\n%s\n", s.name, strings.ReplaceAll(s.keys, "\n", "⏎"), clip(view))
			}
			golden.File(t, filepath.Join("testdata", c.file), b.String())
		})
	}
}

// largeSize is a thousand services in each of ten clusters.
var largeSize = enginetest.Size{Services: 1000, Clusters: 10, FederateEvery: 10, Policies: 50}

// clip takes the blanks off the ends of lines.
func clip(view string) string {
	lines := strings.Split(view, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func fits(t *testing.T, name, view string, width, height int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	assert.Len(t, lines, height, name)
	for _, l := range lines {
		assert.LessOrEqual(t, ansi.StringWidth(l), width, "%s: %q", name, l)
	}
}

func load(t testing.TB, dir string) *explain.Index {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(dir))
	require.NoError(t, err)
	return explain.New(engine.Translate(input))
}

// writeFolder writes an input as a folder of manifests, one file for each cluster.
func writeFolder(t testing.TB, in *snapshot.Input) string {
	t.Helper()
	dir := t.TempDir()
	kinds := scheme.New()
	require.NoError(t, addKubernetes(kinds))
	put := func(folder string, objects []runtime.Object) {
		list := map[string]any{"apiVersion": "v1", "kind": "List"}
		items := make([]runtime.Object, 0, len(objects))
		for _, o := range objects {
			gvks, _, err := kinds.ObjectKinds(o)
			require.NoError(t, err)
			o = o.DeepCopyObject()
			o.GetObjectKind().SetGroupVersionKind(gvks[0])
			items = append(items, o)
		}
		list["items"] = items
		data, err := json.Marshal(list)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, folder, "all.json"), data, 0o644))
	}
	for _, c := range in.Clusters {
		put(c.Name, objectsOf(c))
	}
	put("management", objectsOf(in.Management))
	return dir
}

// fixedSource is a source with one update.
type fixedSource struct {
	update *Update
	done   bool
}

func (s *fixedSource) Name() string                { return "folder ./manifests" }
func (s *fixedSource) Command(words string) string { return "meshctl " + words + " --dir ./manifests" }
func (s *fixedSource) Kubectl(string) string       { return "" }

func (s *fixedSource) Next(ctx context.Context) (*Update, error) {
	if s.done {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.done = true
	return s.update, nil
}

// folderUpdate is what a folder gives.
func folderUpdate(index *explain.Index) *Update {
	return &Update{
		Index: index, HasChanges: true, NoChanges: "Nothing is written for a folder.", At: noon,
		Checkup: index.Checkup(&explain.CheckFacts{Now: noon, Offline: true}),
	}
}

// liveUpdate is what a management cluster gives: credentials, what was written
// and failed, a policy that is pending and a cluster that does not answer.
func liveUpdate(t testing.TB, dir string) *Update {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(dir))
	require.NoError(t, err)
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	mesh := snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: "virtual-mesh"}
	return &Update{
		Index: explain.NewLive(engine.Translate(input)), At: noon, HasChanges: true, NoChanges: "Nothing was recorded.",
		Serving: &snapshot.Serving{Known: true, Since: ago(2 * time.Minute)},
		Facts: map[string]explain.ClusterFacts{
			"cluster-1": {Issued: ago(90 * time.Minute), Expires: noon.Add(22 * time.Hour), BehindSince: ago(4 * time.Second)},
			"cluster-2": {Issued: ago(20 * time.Hour), Expires: noon.Add(4 * time.Hour), BehindSince: ago(9 * time.Minute)},
			"cluster-3": {Issued: ago(26 * time.Hour), Expires: ago(2 * time.Hour), BehindSince: ago(7 * time.Minute)},
		},
		Changes: snapshot.Changes{
			{Time: ago(50 * time.Minute), Kind: snapshot.ChangeEdited, On: snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "no-more"}, What: "was deleted; nothing changes for traffic"},
			{Time: ago(9 * time.Minute), Kind: snapshot.ChangeClusterLost, Cluster: "cluster-2", On: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "gloo-mesh", Name: "cluster-2"}, What: "is unreachable: no answer from https://10.0.0.2:6443", Times: 2},
			{
				Time: ago(3 * time.Second), Kind: "route", Cluster: "cluster-1", Called: "web.shop.cluster-1", On: snapshot.Ref{Kind: snapshot.Destination, Namespace: "gloo-mesh", Name: "web-shop-cluster-1"},
				What:   "all requests: 60% to web-shop-cluster-1 (version-v1), 40% to web-shop-cluster-1 (version-v2), before 100% to the service itself",
				Causes: []snapshot.ChangeCause{{Kind: snapshot.ChangeEdited, On: mesh, What: "was edited", By: "kubectl-edit", Operation: "Update"}},
			},
		},
	}
}

// relayUpdate is what a management cluster gives in which cluster-2 is reached through its agent.
func relayUpdate(t testing.TB, dir string) *Update {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(dir))
	require.NoError(t, err)
	for i, c := range input.Clusters {
		if c.Name == "cluster-2" {
			away := *c
			away.Sync, away.Reason = snapshot.Stale, "it is reached through its agent, which speaks to meshctl serve only"
			input.Clusters[i] = &away
		}
	}
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-ago)} }
	with, err := input.With("", &multiclusterv1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "cluster-2"},
		Status: multiclusterv1alpha1.KubernetesClusterStatus{
			Status: []multiclusterv1alpha1.ClusterStatus{{State: multiclusterv1alpha1.ClusterStateAccepted}},
			Connection: &multiclusterv1alpha1.Connection{
				Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateStuck, Since: at(2 * time.Minute),
				Reason:       &multiclusterv1alpha1.ClusterReason{Code: string(snapshot.RelayBlocked), What: "what the hub sends to the agent is not acknowledged", Hint: "see the log of the agent"},
				AgentVersion: "v1.4.0", CertificateExpires: at(-6 * 24 * time.Hour), DownBehindSince: at(3 * time.Minute), Objects: 1234,
			},
		},
	})
	require.NoError(t, err)
	return &Update{
		Index: explain.NewLive(engine.Translate(with)), At: noon, HasChanges: true, NoChanges: "Nothing was recorded.",
		Serving: &snapshot.Serving{Known: true, Since: noon.Add(-2 * time.Minute)},
	}
}

// countedUpdate is what a management cluster gives whose meshctl serve counts what requests do.
func countedUpdate(t testing.TB, dir string) *Update {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(dir))
	require.NoError(t, err)
	state := engine.Translate(input)
	report := enginetest.Report(state, noon, enginetest.Bookinfo())
	return &Update{Index: explain.WithEvidence(explain.New(state), &explain.Evidence{Report: report}), At: noon, HasChanges: true, NoChanges: "Nothing was recorded."}
}

// start gives a dashboard that has read a folder.
func start(t testing.TB, index *explain.Index, theme *Theme, width, height int) *Model {
	t.Helper()
	return startWith(t, folderUpdate(index), theme, width, height)
}

// startWith gives a dashboard that has read its first update.
func startWith(t testing.TB, update *Update, theme *Theme, width, height int) *Model {
	t.Helper()
	m := New(t.Context(), &fixedSource{update: update}, theme, noon)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	_, cmd := m.Update(prepared(update, nil))
	if m.pane.page != nil {
		// The first of the two waits for the next update.
		batch, ok := cmd().(tea.BatchMsg)
		require.True(t, ok)
		m.Update(batch[len(batch)-1]())
	}
	return m
}

// namedKeys are the keys that are no text.
var namedKeys = map[rune]rune{'\n': tea.KeyEnter, '\t': tea.KeyTab, '→': tea.KeyRight, '←': tea.KeyLeft, '↑': tea.KeyUp, '↓': tea.KeyDown, '⇟': tea.KeyPgDown, '⎋': tea.KeyEscape}

// chords are the keys that are pressed with ctrl.
var chords = map[rune]rune{'⌦': 'd', '␣': tea.KeySpace}

// keyOf is the press of a key; see namedKeys and chords.
func keyOf(r rune) tea.KeyPressMsg {
	if code, chord := chords[r]; chord {
		return tea.KeyPressMsg{Code: code, Mod: tea.ModCtrl}
	}
	if code, named := namedKeys[r]; named {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: r, Text: string(r)}
}

// press types keys; see keyOf. What they make load is loaded, and what they write is written.
func press(t testing.TB, m *Model, keys string) {
	t.Helper()
	for _, r := range keys {
		_, cmd := m.Update(keyOf(r))
		settle(m, cmd)
	}
}

// settle runs what a key leads to.
func settle(m *Model, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, each := range msg {
			settle(m, each)
		}
	case contentMsg, walkedMsg, draftedMsg, reviewedMsg, writtenMsg:
		_, next := m.Update(msg)
		settle(m, next)
	}
}

package tui

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// noon is when all screens are painted.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// screen is what is pressed before a look, from the first page on.
type screen struct{ name, keys string }

func screens(destination, workload, policy, mesh string) []screen {
	return []screen{
		{"fleet", "1"}, {"destinations", "2"}, {"workloads", "3"}, {"virtual meshes", "4"}, {"policies", "5"},
		{"changes", "6"}, {"problems", "7"},
		{"a destination", ":" + destination + "\n"}, {"its end", ":" + destination + "\nG"}, {"its YAML", ":" + destination + "\nyG"},
		{"a workload", ":workloads " + workload + "\n"}, {"a policy", ":policies " + policy + "\n"},
		{"YAML of a policy", ":policies " + policy + "\ny"},
		{"a mesh", ":" + mesh + "\n"}, {"a virtual mesh", ":virtual-mesh\n"}, {"a cluster", ":cluster-01\n:cluster-1\n"},
		{"help", "?"}, {"filtered, sorted and scoped", "2/re\nsss:@" + strings.Replace(mesh, "istiod-istio-system-", "", 1) + "\n"},
		{"nothing fits", "2/no such thing\n"}, {"a command being typed", ":de"}, {"a key that does nothing here", "2e"},
	}
}

// TestGolden paints every page over two folders in two sizes without colours,
// and one of them in each theme. Each golden file is one folder and size.
func TestGolden(t *testing.T) {
	t.Parallel()
	small := screens("reviews.bookinfo.cluster-1", "productpage-v1", "patient", "istiod-istio-system-cluster-1")
	large := screens("service-00007.team-000.cluster-03", "service-00007.team-000.cluster-03", "traffic-00007", "istiod-istio-system-cluster-03")
	bookinfo, ten := load(t, "../testdata/translate/bookinfo/in"), load(t, writeFolder(t, enginetest.World(largeSize)))
	for _, c := range []struct {
		file          string
		world         *explain.World
		screens       []screen
		width, height int
		shade         Shade
	}{
		{"bookinfo-80x24.txt", bookinfo, small, 80, 24, NoColour},
		{"bookinfo-160x50.txt", bookinfo, small, 160, 50, NoColour},
		{"bookinfo-80x24-dark.ansi", bookinfo, small[:8], 80, 24, Dark},
		{"bookinfo-80x24-light.ansi", bookinfo, small[:8], 80, 24, Light},
		{"large-80x24.txt", ten, large, 80, 24, NoColour},
		{"large-160x50.txt", ten, large, 160, 50, NoColour},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, s := range c.screens {
				m := start(t, c.world, NewTheme(c.shade), c.width, c.height)
				press(t, m, s.keys)
				view := m.View()
				fits(t, s.name, view, c.width, c.height)
				fmt.Fprintf(&b, "==== %s: %s\n%s\n", s.name, strings.ReplaceAll(s.keys, "\n", "⏎"), clip(view))
			}
			golden(t, filepath.Join("testdata", c.file), b.String())
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
		assert.LessOrEqual(t, screenWidthOf(l), width, "%s: %q", name, l)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got); run make golden if the change is meant:\n%s", file, diff)
	}
}

func load(t testing.TB, dir string) *explain.World {
	t.Helper()
	input, _, err := offline.Load(os.DirFS(dir))
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

// still is a source with one piece of news.
type still struct {
	news *News
	told bool
}

func (s *still) Name() string                { return "folder ./manifests" }
func (s *still) Command(words string) string { return "meshctl " + words + " --dir ./manifests" }
func (s *still) Kubectl(string) string       { return "" }

func (s *still) Next(ctx context.Context) (*News, error) {
	if s.told {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.told = true
	return s.news, nil
}

// start gives a dashboard that has read its first news.
func start(t testing.TB, world *explain.World, theme *Theme, width, height int) *Model {
	t.Helper()
	news := &News{World: world, HasChanges: true, NoChanges: "Nothing is written for a folder.", At: noon}
	m := New(t.Context(), &still{news: news}, theme, noon)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	m.Update(newsMsg{news: news, tables: prepare(news, nil)})
	return m
}

// press types keys; \n is enter. What they make load is loaded.
func press(t testing.TB, m *Model, keys string) {
	t.Helper()
	for _, r := range keys {
		msg := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}
		if r == '\n' {
			msg = tea.KeyMsg{Type: tea.KeyEnter}
		}
		_, cmd := m.Update(msg)
		if cmd == nil {
			continue
		}
		if msg, ok := cmd().(contentMsg); ok {
			m.Update(msg)
		}
	}
}

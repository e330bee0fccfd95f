package watch

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// keeper lists the fields of a feed's kind that the engine can read.
type keeper interface {
	feeder
	keptFields(t *testing.T) []string
}

// keptFields strips objects in which everything is set, and lists what is left.
func (f *feed[T]) keptFields(t *testing.T) []string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	filler := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 2).MaxDepth(12).Funcs(
		func(e *runtime.RawExtension, _ randfill.Continue) { e.Raw = []byte(`{"a":1}`) },
		func(o *metav1.OwnerReference, _ randfill.Continue) {
			yes := true
			*o = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "u", Controller: &yes, BlockOwnerDeletion: &yes}
		},
		func(e *corev1.EnvVar, _ randfill.Continue) { *e = corev1.EnvVar{Name: knownEnv, Value: "v"} },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawBytes([]byte(`{}`)) },
		func(m *map[string]string, _ randfill.Continue) {
			*m = map[string]string{snapshot.DiscoverServiceAnnotation: "true"}
		},
		func(s *string, c randfill.Continue) { *s = "x" + c.String(4) },
	)
	kept := map[string]bool{}
	for range 20 {
		o, ok := f.lister.Kind.New().(T)
		require.True(t, ok)
		fillObject(filler, random, reflect.ValueOf(o).Elem(), 6)
		if !f.strip(o) {
			continue
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		var value map[string]any
		require.NoError(t, json.Unmarshal(text, &value))
		// In messages, what is empty is set; other types always have it.
		addPaths(kept, "", value, strings.HasSuffix(f.lister.Kind.Info().Group, ".istio.io"))
	}
	return slices.Sorted(maps.Keys(kept))
}

// knownEnv is a variable of containers that is read.
const knownEnv = "PILOT_SKIP_VALIDATE_TRUST_DOMAIN"

// addPaths adds the paths of what is set. Elements of lists, and names in maps, are not told apart.
func addPaths(paths map[string]bool, at string, value any, empty bool) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 && empty && at != ".status" && at != ".spec" {
			paths[strings.TrimPrefix(at, ".")] = true
		}
		for name, below := range v {
			next := at + "." + name
			if isMap.MatchString(at) {
				next = at
			}
			addPaths(paths, next, below, empty)
		}
	case []any:
		for _, below := range v {
			addPaths(paths, at+"[]", below, empty)
		}
	default:
		if v != nil && v != "" && v != false && v != 0.0 {
			paths[strings.TrimPrefix(at, ".")] = true
		}
	}
}

// isMap matches the fields whose keys users choose.
var isMap = regexp.MustCompile(`\.(labels|annotations|matchLabels|podLabels|selector|nodeSelector|data)$`)

// line is one of the table: the fields or keys that it is about.
type line struct {
	kinds, fields []string
}

// table reads the lines of the tables in a file of Markdown: what is in the first two columns.
func table(t *testing.T, name string) []*line {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var out []*line
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
		if !strings.HasPrefix(row, "| ") || strings.TrimSpace(cells[0]) == "Kind" || strings.TrimSpace(cells[0]) == "Map" || strings.TrimSpace(cells[0]) == "Message" || strings.HasPrefix(row, "|---") {
			continue
		}
		require.Len(t, cells, 4, "%s", row)
		for _, cell := range cells {
			require.NotEmpty(t, strings.TrimSpace(cell), "%s", row)
		}
		split := func(cell string) []string { return strings.Split(strings.TrimSpace(cell), ", ") }
		out = append(out, &line{kinds: split(cells[0]), fields: split(cells[1])})
	}
	return out
}

// covers reports whether a line is about a field of a kind.
func (l *line) covers(kind, field string) bool {
	if !slices.Contains(l.kinds, kind) && !slices.Contains(l.kinds, "*") {
		return false
	}
	return slices.ContainsFunc(l.fields, func(f string) bool {
		below, all := strings.CutSuffix(f, ".*")
		return f == field || all && (strings.HasPrefix(field, below+".") || strings.HasPrefix(field, below+"["))
	})
}

// TestAuthority: each value that is read from a cluster, a Secret or a ConfigMap is in the table that says who may write it and
// what it decides, and the table has nothing else.
func TestAuthority(t *testing.T) {
	t.Parallel()
	lines := table(t, "../authority.md")
	managed := managedCache(t, snapshot.Plane{Namespace: "gloo-mesh"}, "west", func() {})
	kept := map[string][]string{}
	for _, f := range feedsOf(managed) {
		if !isRead(f) {
			continue
		}
		k, ok := f.(keeper)
		require.True(t, ok)
		kept[f.kind().String()] = append(kept[f.kind().String()], k.keptFields(t)...) // two kinds may have one name
	}
	keys := lookups(t, "../../certs", "../cluster", "../discovery", "../inventory", "../mesh/*/detect*.go", "../policy", "../relay/agent", "../serve", "../snapshot/byusers.go", "../virtualmesh", ".")
	for kind, fields := range merged(kept, keys) {
		for _, field := range fields {
			found := false
			for _, l := range lines {
				found = found || l.covers(kind, field)
			}
			assert.True(t, found, "say in engine/authority.md who may write %s (%s), and what it decides", field, kind)
		}
	}
	frames := framesOfAgents()
	for kind, fields := range frames {
		for _, field := range fields {
			assert.True(t, slices.ContainsFunc(lines, func(l *line) bool { return slices.Contains(l.kinds, kind) && slices.Contains(l.fields, field) }),
				"say in engine/authority.md who may write %s of the message %s, and what it decides", field, kind)
		}
	}
	for _, l := range lines {
		for _, kind := range l.kinds {
			for _, field := range l.fields {
				one := &line{kinds: []string{kind}, fields: []string{field}}
				about := slices.Contains(keys[kind], field) || slices.Contains(frames[kind], field)
				for k, fields := range kept {
					about = about || slices.ContainsFunc(fields, func(f string) bool { return one.covers(k, f) })
				}
				assert.True(t, about, "engine/authority.md: nobody reads %s of %s", field, kind)
			}
		}
	}
}

// framesOfAgents are the fields of the messages that an agent sends to the hub, and of what both sides send.
func framesOfAgents() map[string][]string {
	out := map[string][]string{}
	var add func(m protoreflect.MessageDescriptor)
	add = func(m protoreflect.MessageDescriptor) {
		name := string(m.Name())
		if _, known := out[name]; known {
			return
		}
		out[name] = []string{}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			out[name] = append(out[name], string(f.Name()))
			if f.Message() != nil && f.Message().Name() != "Beat" {
				add(f.Message())
			}
		}
	}
	methods := relayv1.File_relay_proto.Services().Get(0).Methods()
	for i := range methods.Len() {
		add(methods.Get(i).Input())
	}
	add((&relayv1.Written{}).ProtoReflect().Descriptor()) // in the bytes of a Put
	return out
}

func merged(a, b map[string][]string) map[string][]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// lookups are the keys by which Go files, of folders or by pattern, look something up in the data, the annotations and the labels of
// objects, as the code names them.
func lookups(t *testing.T, patterns ...string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	var folders []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				index, ok := n.(*ast.IndexExpr)
				if !ok {
					return true
				}
				of := index.X
				if call, ok := of.(*ast.CallExpr); ok {
					of = call.Fun
				}
				if selector, ok := of.(*ast.SelectorExpr); ok {
					if of := strings.TrimPrefix(selector.Sel.Name, "Get"); slices.Contains([]string{"Data", "Annotations", "Labels"}, of) {
						var key strings.Builder
						require.NoError(t, printer.Fprint(&key, set, index.Index))
						out[of] = append(out[of], key.String())
					}
				}
				return true
			})
			return nil
		}))
	}
	require.Len(t, out, 3)
	return out
}

package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/meshctl/meshctl/"

// floor is a storey of the house. A package may import packages of its own
// floor or below.
type floor struct {
	// pure packages compute: they read no clock, file, network or chance.
	pure bool
	// packages are prefixes; the longest one that matches a package counts.
	packages []string
}

// floors lists the house from the ground up. A new package is placed here.
var floors = []floor{
	{pure: true, packages: []string{"engine/envoy"}},
	{pure: true, packages: []string{"engine/api"}},
	{pure: true, packages: []string{"engine/snapshot"}},
	{pure: true, packages: []string{"engine/access", "engine/rbac"}},
	{pure: true, packages: []string{"engine/discovery"}},
	{pure: true, packages: []string{"engine/inventory", "engine/netpolicy"}},
	{pure: true, packages: []string{"engine/virtualmesh"}},
	{pure: true, packages: []string{"engine/policy"}},
	{pure: true, packages: []string{"engine/render"}},
	{pure: true, packages: []string{"engine/mesh"}},
	{pure: true, packages: []string{"engine/accesslog"}},
	{pure: true, packages: []string{"engine/status"}},
	{pure: true, packages: []string{"engine/traffic"}},
	{pure: true, packages: []string{"engine", "engine/explain"}},
	{pure: true, packages: []string{"certs/pki"}},
	{packages: []string{"engine/kube"}},
	{packages: []string{"certs", "certs/roots", "certs/issuer", "engine/admission", "engine/golden"}},
	{packages: []string{"engine/mirror", "engine/telemetry", "engine/webhook"}},
	{packages: []string{"engine/apply"}},
	{packages: []string{"engine/relay"}},
	{packages: []string{"engine/offline"}},
	{packages: []string{"engine/watch"}},
	{packages: []string{"engine/relay/hub", "engine/relay/agent", "engine/relay/relaytest"}},
	{packages: []string{"engine/cluster"}},
	{packages: []string{"engine/registration"}},
	{packages: []string{"engine/bundle", "engine/check"}},
	{packages: []string{"engine/serve"}},
	{packages: []string{"engine/reading"}},
	{packages: []string{"tui", "wizards", "demo"}},
	{packages: []string{"cmd", "engine/registration/registrationtest"}},
	{packages: []string{"."}},
}

// nested are the modules of their own inside the house, which the walk leaves out.
var nested = []string{"demo/sandbox", "demo/osm", "demo/dataplane", "demo/nodeimage"}

// denied are the imports that would make a pure package impure, by prefix.
var denied = []string{
	"os", "net", "context", "log", "sync", "embed", "testing", "math/rand", "crypto/rand",
	"k8s.io/client-go", "k8s.io/klog", "google.golang.org/grpc", "istio.io/client-go/pkg/clientset",
	"github.com/spf13", "github.com/prometheus", "github.com/AlecAivazis", "github.com/charmbracelet", "charm.land",
}

// argued are the exceptions from denied, by package (* is any) and import, each
// with its reason.
var argued = map[string]string{
	"* net/netip":           "addresses as values; nothing is dialled",
	"* net/url":             "parses text",
	"certs/pki crypto/rand": "keys need entropy; callers pass the reader in",
	"engine/api/crds embed": "the CRDs are generated files; reading them is no I/O",
}

// walls stop what the floors alone let through: left never imports right.
var walls = map[string][]string{
	"tui": {
		"engine/serve", "engine/registration", "engine/cluster", "engine/watch", "engine/offline", "engine/relay", "engine/apply",
		"engine/check", "engine/reading",
		"certs", "wizards", "demo",
	},
	"wizards": {
		"engine/serve", "engine/registration", "engine/cluster", "engine/watch", "engine/apply", "engine/reading", "certs", "tui", "demo",
	},
	"demo":   {"engine", "certs", "tui", "wizards"},
	"engine": {"certs"},
	// The server needs nothing that an administrator does.
	"engine/serve": {"engine/registration"},
	"certs":        {"engine/serve", "engine/watch", "engine/apply", "engine/relay"},
}

// listOfMeshes is the package that knows which kinds of mesh there are.
const listOfMeshes = "engine"

// roomOf is the folder of a kind of mesh that a package is in; empty if it is in none.
func roomOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "engine/mesh/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// deniedCalls are the functions of a harmless package that ask the clock.
var deniedCalls = map[string]bool{
	"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true,
	"time.After": true, "time.Tick": true, "time.NewTimer": true, "time.NewTicker": true,
}

// under reports whether pkg is root or inside it.
func under(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func underAny(pkg string, roots []string) bool {
	for _, root := range roots {
		if under(pkg, root) {
			return true
		}
	}
	return false
}

// place finds the floor of a package.
func place(pkg string) (storey int, pure, ok bool) {
	best := -1
	for i, f := range floors {
		for _, p := range f.packages {
			if under(pkg, p) && len(p) > best {
				best, storey, pure, ok = len(p), i, f.pure, true
			}
		}
	}
	return storey, pure, ok
}

// walled reports whether a wall stands between two packages.
func walled(from, to string) bool {
	for left, rights := range walls {
		if under(from, left) && underAny(to, rights) {
			return true
		}
	}
	return false
}

// TestLayers walks every source file of the house and fails where an import
// points up or through a wall, and where a pure package is not pure.
func TestLayers(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if rel != "." && strings.HasPrefix(entry.Name(), ".") || underAny(rel, nested) || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		files++
		for _, breach := range breaches(t, path, nil, filepath.ToSlash(filepath.Dir(rel))) {
			t.Error(breach)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, files, 40, "the walk is broken: it saw too few files")
}

// breaches lists what a file of a package breaks. Source nil means to read the file.
func breaches(t *testing.T, path string, source any, pkg string) []string {
	t.Helper()
	storey, pure, ok := place(pkg)
	if !ok {
		return []string{path + ": package " + pkg + " stands on no floor; add it to floors"}
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	require.NoError(t, err)

	var found []string
	local := map[string]string{} // the name in the file -> the import's path
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		local[localName(spec, name)] = name
		if own, isOwn := strings.CutPrefix(name, module); isOwn {
			to, _, ok := place(own)
			if !ok || to > storey {
				found = append(found, path+": "+pkg+" imports "+own+", which stands above it")
			}
			if room := roomOf(own); room != "" && room != roomOf(pkg) && pkg != listOfMeshes {
				found = append(found, path+": "+pkg+" imports "+own+"; only the list of meshes names them")
			}
			if walled(pkg, own) {
				found = append(found, path+": "+pkg+" imports "+own+" through a wall")
			}
			continue
		}
		if !pure {
			continue
		}
		if spec.Name != nil && spec.Name.Name == "." {
			found = append(found, path+": pure package imports "+name+" by dot, which hides its calls")
		}
		if underAny(name, denied) && argued[pkg+" "+name] == "" && argued["* "+name] == "" {
			found = append(found, path+": pure package imports "+name)
		}
	}
	if pure {
		found = append(found, impurities(fset, file, local)...)
	}
	return found
}

// localName is what a file calls an import.
func localName(spec *ast.ImportSpec, path string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path[strings.LastIndex(path, "/")+1:]
}

// impurities lists the goroutines, the init functions and the looks at the clock of a file.
func impurities(fset *token.FileSet, file *ast.File, local map[string]string) []string {
	var found []string
	at := func(n ast.Node) string { return fset.Position(n.Pos()).String() }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, at(n)+": pure package starts a goroutine")
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				found = append(found, at(n)+": pure package has an init function")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && deniedCalls[local[x.Name]+"."+n.Sel.Name] {
				found = append(found, at(n)+": pure package calls "+x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// TestLayersCatches plants breaches, so that a hole in the test above shows.
func TestLayersCatches(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		pkg, source string
		want        string // part of the only breach; "" if there is none
	}{
		"import of a higher floor":   {"engine/policy", `import _ "github.com/meshctl/meshctl/engine/render"`, "stands above it"},
		"import of a mesh":           {"engine/status", `import _ "github.com/meshctl/meshctl/engine/mesh/istio"`, "only the list of meshes"},
		"import of another mesh":     {"engine/mesh/osm", `import _ "github.com/meshctl/meshctl/engine/mesh/istio"`, "only the list of meshes"},
		"the list of meshes":         {"engine", `import _ "github.com/meshctl/meshctl/engine/mesh/istio"`, ""},
		"import of a lower floor":    {"engine/mesh/istio", `import _ "github.com/meshctl/meshctl/engine/policy"`, ""},
		"inventory imports policy":   {"engine/inventory", `import _ "github.com/meshctl/meshctl/engine/policy"`, "stands above it"},
		"meshes import policy":       {"engine/virtualmesh", `import _ "github.com/meshctl/meshctl/engine/policy"`, "stands above it"},
		"inventory imports meshes":   {"engine/inventory", `import _ "github.com/meshctl/meshctl/engine/virtualmesh"`, "stands above it"},
		"policy imports meshes":      {"engine/policy", `import _ "github.com/meshctl/meshctl/engine/virtualmesh"`, ""},
		"status imports explain":     {"engine/status", `import _ "github.com/meshctl/meshctl/engine/explain"`, "stands above it"},
		"render imports status":      {"engine/mesh/istio", `import _ "github.com/meshctl/meshctl/engine/status"`, "stands above it"},
		"clock in a status":          {"engine/status", "import \"time\"\nvar _ = time.Now", "calls time.Now"},
		"core imports the edge":      {"engine", `import _ "github.com/meshctl/meshctl/engine/watch"`, "stands above it"},
		"sink imports the top":       {"engine/apply", `import _ "github.com/meshctl/meshctl/engine/serve"`, "stands above it"},
		"cluster imports an admin's": {"engine/cluster", `import _ "github.com/meshctl/meshctl/engine/registration"`, "stands above it"},
		"server imports an admin's":  {"engine/serve", `import _ "github.com/meshctl/meshctl/engine/registration"`, "through a wall"},
		"files in a pure package":    {"engine/snapshot", `import _ "os"`, "imports os"},
		"network in a pure package":  {"engine/explain", `import _ "net/http"`, "imports net/http"},
		"addresses as values":        {"engine/policy", `import _ "net/netip"`, ""},
		"client in a pure package":   {"engine/discovery", `import _ "k8s.io/client-go/kubernetes"`, "imports k8s.io/client-go"},
		"lookalike of a denied one":  {"engine/snapshot", `import _ "osprey"`, ""},
		"chance in a pure package":   {"engine/policy", `import _ "math/rand/v2"`, "imports math/rand"},
		"entropy in pki":             {"certs/pki", `import _ "crypto/rand"`, ""},
		"entropy elsewhere":          {"engine/policy", `import _ "crypto/rand"`, "imports crypto/rand"},
		"clock":                      {"engine", "import \"time\"\nvar _ = time.Now", "calls time.Now"},
		"clock under another name":   {"engine", "import c \"time\"\nvar _ = c.Since", "calls c.Since"},
		"clock imported by dot":      {"engine", "import . \"time\"\nvar _ = Now", "by dot"},
		"durations are no clock":     {"engine", "import \"time\"\nvar _ = time.Second", ""},
		"goroutine":                  {"engine", "func f() { go f() }", "goroutine"},
		"init":                       {"engine/policy", "func init() {}", "init function"},
		"method named init":          {"engine/policy", "type t int\nfunc (t) init() {}", ""},
		"goroutine at the edge":      {"engine/watch", "func f() { go f() }", ""},
		"package without a floor":    {"attic", "", "stands on no floor"},
		"demo imports the engine":    {"demo/local", `import _ "github.com/meshctl/meshctl/engine/snapshot"`, "through a wall"},
		"tui imports a client":       {"tui/page", `import _ "github.com/meshctl/meshctl/engine/watch"`, "through a wall"},
		"tui imports answers":        {"tui/page", `import _ "github.com/meshctl/meshctl/engine/explain"`, ""},
		"wizard imports a sink":      {"wizards", `import _ "github.com/meshctl/meshctl/engine/apply"`, "through a wall"},
		"engine imports certs":       {"engine/serve", `import _ "github.com/meshctl/meshctl/certs"`, "through a wall"},
		"wizard imports a reader":    {"wizards", `import _ "github.com/meshctl/meshctl/engine/reading"`, "through a wall"},
		"server imports a reader":    {"engine/serve", `import _ "github.com/meshctl/meshctl/engine/reading"`, "stands above it"},
		"cmd imports what it likes":  {"cmd/serve", `import _ "github.com/meshctl/meshctl/engine/serve"`, ""},
		"nobody imports the program": {"tui", `import _ "github.com/meshctl/meshctl/cmd"`, "stands above it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := breaches(t, "planted.go", "package planted\n"+c.source, c.pkg)
			if c.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0], c.want)
		})
	}
}

package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file bounds what the length of files and functions does not show: how much one type does, how many states it has, and how
// far the types of one mesh reach. Each bound has the exceptions that there are today. The lists can only shrink.

// eachSource calls do with each source file of the house but tests.
func eachSource(t *testing.T, do func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	const root = ".."
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || underAny(rel, nested) {
				return filepath.SkipDir
			}
			return nil
		}
		inTests := strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") // wizardtest, vaulttest, ...
		if !strings.HasSuffix(path, ".go") || inTests {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(file) {
			do(rel, set, file)
		}
		return nil
	}))
}

// within compares what was counted with a bound and its exceptions.
func within(t *testing.T, what string, most int, counted, exceptions map[string]int) {
	t.Helper()
	require.NotEmpty(t, counted)
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		n := counted[name]
		switch allowed, listed := exceptions[name]; {
		case listed && n < allowed:
			t.Errorf("%s has %d %s; it had %d, so lower it in the list", name, n, what, allowed)
		case listed && n > allowed, !listed && n > most:
			t.Errorf("%s has %d %s, of at most %d; is it two types?", name, n, what, max(most, allowed))
		}
	}
	for name, allowed := range exceptions {
		assert.Greater(t, allowed, most, "%s needs no exception", name)
		assert.Contains(t, counted, name, "it is gone; remove it from the list")
	}
}

// maxMethods is how many methods a type may have. None has more.
const maxMethods = 40

func TestMethodsOfAType(t *testing.T) {
	t.Parallel()
	methods := map[string]int{}
	eachSource(t, func(path string, _ *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[filepath.ToSlash(filepath.Dir(path))+"."+receiverOf(f)]++
			}
		}
	})
	within(t, "methods", maxMethods, methods, nil)
}

// receiverOf is the name of the type of a method.
func receiverOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return "?"
		}
	}
}

// manyFlags are the structs with more than maxFlags booleans.
var manyFlags = map[string]int{
	"cmd/cmdutil.Streams":      5,
	"cmd/create.Options":       5,
	"cmd/initialize.Options":   6,
	"engine/snapshot.MeshPlan": 5,
}

const maxFlags = 4

func TestFlagsOfAStruct(t *testing.T) {
	t.Parallel()
	flags := map[string]int{}
	eachSource(t, func(path string, _ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			count := 0
			for _, field := range s.Fields.List {
				if isFlag(field.Type) {
					count += max(1, len(field.Names))
				}
			}
			flags[filepath.ToSlash(filepath.Dir(path))+"."+spec.Name.Name] = count
			return true
		})
	})
	within(t, "booleans", maxFlags, flags, manyFlags)
}

// isFlag reports whether a type is bool or atomic.Bool.
func isFlag(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "bool"
	case *ast.SelectorExpr:
		x, ok := of.X.(*ast.Ident)
		return ok && x.Name == "atomic" && of.Sel.Name == "Bool"
	}
	return false
}

// rooms are the places that are for one kind of mesh, and those that are for the types of all kinds. All of certs/verify is about
// istiods and their proxies.
var rooms = []string{"engine/mesh", "engine/api/scheme", "certs/verify", "demo"}

// meshTypes are the modules with types of meshes.
var meshTypes = []string{"istio.io", "github.com/openservicemesh", "github.com/servicemeshinterface"}

func TestTypesOfAMeshStayInItsRoom(t *testing.T) {
	t.Parallel()
	var found []string
	eachSource(t, func(path string, _ *token.FileSet, file *ast.File) {
		if underAny(filepath.ToSlash(filepath.Dir(path)), rooms) {
			return
		}
		for _, spec := range file.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil && underAny(name, meshTypes) {
				found = append(found, path)
				return
			}
		}
	})
	assert.Empty(t, found, "a type of a mesh belongs into its room")
}

// TestKindsOfAMeshStayInItsRoom: beside the table of kinds, only the folder of a mesh names its kinds. Others ask what a kind does
// (KindInfo.Effect, KindInfo.ByHand), or the dialect.
func TestKindsOfAMeshStayInItsRoom(t *testing.T) {
	t.Parallel()
	ofMeshes := map[string]bool{}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write) {
		if info := k.Info(); info.Optional && !strings.HasSuffix(info.Group, ".solo.io") {
			ofMeshes[k.String()] = true
		}
	}
	require.Contains(t, ofMeshes, "VirtualService")
	require.Contains(t, ofMeshes, "TrafficSplit")
	room := map[string]string{}
	eachSource(t, func(path string, set *token.FileSet, file *ast.File) {
		in := roomOf(filepath.ToSlash(filepath.Dir(path)))
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok || x.Name != "snapshot" || !ofMeshes[s.Sel.Name] {
				return true
			}
			if !assert.NotEmpty(t, in, "%s names %s, which is of a mesh", set.Position(s.Pos()), s.Sel.Name) {
				return true
			}
			if other, named := room[s.Sel.Name]; named {
				assert.Equal(t, other, in, "%s names %s, which is of another mesh", set.Position(s.Pos()), s.Sel.Name)
			}
			room[s.Sel.Name] = in
			return true
		})
	})
	assert.Len(t, room, len(ofMeshes), "kinds that no mesh has")
}

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/demo/shard"
)

// testsOf finds the tests of a shard in the test files below a folder: those that begin with
// shard.Only.
func testsOf(root string, name shard.Name) (batch, error) {
	found, err := testsThat(root, func(f *ast.FuncDecl) bool { return belongs(f) == string(name) })
	if err != nil {
		return batch{}, fmt.Errorf("shard %s: %w", name, err)
	}
	found.name, found.beside, found.parallel = "shard "+string(name), 1, 2
	return found, nil
}

// unraced finds the tests that the race detector leaves out: those that begin with shard.Unraced.
func unraced(root string) (batch, error) {
	found, err := testsThat(root, func(f *ast.FuncDecl) bool { return selected(first(f).Fun) == "Unraced" })
	if err != nil {
		return batch{}, fmt.Errorf("tests without the race detector: %w", err)
	}
	found.name, found.beside, found.parallel = "without it, what it leaves out", 2, 4
	return found, nil
}

// testsThat finds tests in the test files below a folder.
func testsThat(root string, wanted func(*ast.FuncDecl) bool) (batch, error) {
	var packages, tests []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") && wanted(f) {
				packages, tests = append(packages, "./"+filepath.ToSlash(filepath.Dir(path))), append(tests, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		return batch{}, err
	}
	if len(tests) == 0 {
		return batch{}, errors.New("there is none")
	}
	slices.Sort(packages)
	return batch{packages: slices.Compact(packages), tests: "^(" + strings.Join(tests, "|") + ")$"}, nil
}

// first is the call that is the first statement of a function; one of nothing if it has none.
func first(f *ast.FuncDecl) *ast.CallExpr {
	if f.Body != nil && len(f.Body.List) > 0 {
		if statement, ok := f.Body.List[0].(*ast.ExprStmt); ok {
			if call, ok := statement.X.(*ast.CallExpr); ok {
				return call
			}
		}
	}
	return &ast.CallExpr{}
}

// belongs returns the shard that a function names in its first statement, or nothing.
func belongs(f *ast.FuncDecl) string {
	call := first(f)
	if selected(call.Fun) != "Only" || len(call.Args) != 2 {
		return ""
	}
	named := selected(call.Args[1])
	for _, name := range shard.All() {
		if strings.EqualFold(named, strings.ReplaceAll(string(name), "-", "")) {
			return string(name)
		}
	}
	return ""
}

// selected is NAME of shard.NAME.
func selected(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "shard" {
		return ""
	}
	return s.Sel.Name
}

package main

import (
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
			if f, ok := declaration.(*ast.FuncDecl); ok && belongs(f) == string(name) {
				packages, tests = append(packages, "./"+filepath.ToSlash(filepath.Dir(path))), append(tests, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		return batch{}, fmt.Errorf("finding the tests of shard %s: %w", name, err)
	}
	if len(tests) == 0 {
		return batch{}, fmt.Errorf("shard %s: there is no test in it", name)
	}
	slices.Sort(packages)
	return batch{name: "shard " + string(name), packages: slices.Compact(packages), tests: "^(" + strings.Join(tests, "|") + ")$", beside: 1, parallel: 2}, nil
}

// belongs returns the shard that a function names in its first statement, or nothing.
func belongs(f *ast.FuncDecl) string {
	if !strings.HasPrefix(f.Name.Name, "Test") || f.Body == nil || len(f.Body.List) == 0 {
		return ""
	}
	statement, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return ""
	}
	call, ok := statement.X.(*ast.CallExpr)
	if !ok || selected(call.Fun) != "Only" || len(call.Args) != 2 {
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

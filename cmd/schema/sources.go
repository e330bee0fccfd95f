package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

const module = "github.com/meshctl/meshctl"

// sources are what only the source code says of types.
type sources struct {
	// comments are those of types and fields, by PACKAGE.TYPE and PACKAGE.TYPE.FIELD.
	comments map[string]string
	// values are the constants of types of strings, by PACKAGE.TYPE.
	values map[string][]string
}

// readSources reads the folders below root whose types are printed.
func readSources(root string) (*sources, error) {
	out := &sources{comments: map[string]string{}, values: map[string][]string{}}
	reflector := jsonschema.Reflector{}
	for _, folder := range []string{"cmd", "engine", "demo"} {
		folder = filepath.Join(root, folder)
		if err := reflector.AddGoComments(module, folder, jsonschema.WithFullComment()); err != nil {
			return nil, err
		}
		if err := out.readFolder(folder); err != nil {
			return nil, err
		}
	}
	for name, comment := range reflector.CommentMap {
		out.comments[name] = strings.Join(strings.Fields(comment), " ")
	}
	return out, nil
}

// readFolder finds the constants of types of strings below a folder, and the comments that are about
// several fields.
func (s *sources) readFolder(folder string) error {
	return filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := module + "/" + filepath.ToSlash(filepath.Dir(path))
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			switch {
			case ok && group.Tok == token.CONST:
				s.addValues(pkg, group)
			case ok && group.Tok == token.TYPE:
				s.addShared(pkg, group)
			}
		}
		return nil
	})
}

func (s *sources) addValues(pkg string, group *ast.GenDecl) {
	for _, spec := range group.Specs {
		constant, _ := spec.(*ast.ValueSpec)
		name, ok := constant.Type.(*ast.Ident)
		if !ok || !ast.IsExported(name.Name) {
			continue
		}
		for _, value := range constant.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					s.values[pkg+"."+name.Name] = append(s.values[pkg+"."+name.Name], text)
				}
			}
		}
	}
}

// addShared gives a field without a comment that of the one before which names it, too: "From and To
// are ...".
func (s *sources) addShared(pkg string, group *ast.GenDecl) {
	for _, spec := range group.Specs {
		named, _ := spec.(*ast.TypeSpec)
		fields, ok := named.Type.(*ast.StructType)
		if !ok {
			continue
		}
		comment := ""
		for _, field := range fields.Fields.List {
			if field.Doc != nil {
				comment = strings.Join(strings.Fields(field.Doc.Text()), " ")
				continue
			}
			for _, name := range field.Names {
				if slices.Contains(strings.Fields(strings.ReplaceAll(comment, ",", "")), name.Name) {
					s.comments[pkg+"."+named.Name.Name+"."+name.Name] = comment
				}
			}
		}
	}
}

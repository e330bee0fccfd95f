package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"text/template"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// expression is a format with an argument: it makes text of what -o json prints.
type expression interface {
	// print prints data, which has the shape of what -o json prints; shape is its Go type.
	print(out io.Writer, data any, shape reflect.Type, noHeaders bool) error
}

// expressions are the formats with an argument. Each can also be read from a file.
var expressions = []struct {
	name, example string
	parse         func(text string) (expression, error)
	// file parses the text of a file, if that is written in another way.
	file func(text string) (expression, error)
}{
	{"jsonpath", "{.items[*].ref.name}", parseJSONPath, nil},
	{"custom-columns", "NAME:.ref.name,KIND:.ref.kind", parseColumns, parseColumnsFile},
	{"go-template", "{{range .items}}{{.ref.name}} {{end}}", parseTemplate, nil},
}

// fileSuffix ends the name of a format whose argument is in a file.
const fileSuffix = "-file"

// parseExpression reads NAME=ARGUMENT; nil if it is another format.
func parseExpression(text string) (expression, error) {
	name, argument, _ := strings.Cut(text, "=")
	for _, e := range expressions {
		if name != e.name && name != e.name+fileSuffix {
			continue
		}
		parse := e.parse
		switch {
		case argument == "" && name == e.name:
			return nil, fmt.Errorf("the expression is missing; write it behind =, such as %s='%s'", name, e.example)
		case argument == "":
			return nil, fmt.Errorf("the file is missing; write its path behind =, such as %s=FILE", name)
		case name != e.name:
			data, err := os.ReadFile(argument) //nolint:gosec // the file that the user names
			if err != nil {
				return nil, fmt.Errorf("%w; name a file that can be read", err)
			}
			if argument = strings.TrimRight(string(data), "\n"); e.file != nil {
				parse = e.file
			}
		}
		return parse(argument)
	}
	return nil, nil
}

// printExpression prints what an expression makes of a value. It begins with printing nothing else, so
// that a script sees either all or nothing.
func printExpression(out io.Writer, e expression, value any, noHeaders bool) error {
	data, err := generic(value)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	shape := bare(reflect.TypeOf(value))
	if items, ok := value.([]any); ok && len(items) > 0 {
		shape = reflect.SliceOf(bare(reflect.TypeOf(items[0])))
	}
	if data == nil && shape.Kind() == reflect.Slice {
		data = []any{}
	}
	var b strings.Builder
	if err := e.print(&b, data, shape, noHeaders); err != nil {
		return err
	}
	if _, err = io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// generic is a value as JSON has it: maps, lists, texts, numbers and booleans. Texts are safe to print.
func generic(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	if err := utiljson.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	return clean(out), nil
}

// clean cleans all texts in a value that generic makes.
func clean(value any) any {
	switch v := value.(type) {
	case string:
		return CleanLines(v)
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[Clean(key)] = clean(item)
		}
		return out
	}
	return value
}

// itemsPath is a path that begins with .items, as those of kubectl do.
var itemsPath = regexp.MustCompile(`(^|range|[^\w\])"'@])\.items\b`)

// withItems makes a list an object whose items it is, for expressions that expect one.
func withItems(text string, data any, shape reflect.Type) (any, reflect.Type) {
	if items, ok := data.([]any); ok && itemsPath.MatchString(text) {
		return map[string]any{"items": items}, reflect.StructOf([]reflect.StructField{{Name: "Items", Type: shape, Tag: `json:"items"`}})
	}
	return data, shape
}

// goTemplate is an expression of package text/template.
type goTemplate struct {
	text     string
	template *template.Template
}

func parseTemplate(text string) (expression, error) {
	t, err := template.New("go-template").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no template: %w; see https://pkg.go.dev/text/template", text, err)
	}
	return &goTemplate{text, t}, nil
}

func (g *goTemplate) print(out io.Writer, data any, shape reflect.Type, _ bool) error {
	data, _ = withItems(g.text, data, shape)
	if err := g.template.Execute(out, data); err != nil {
		return FlagErrorf("--output go-template: %w; -o json shows what there is", err)
	}
	return nil
}

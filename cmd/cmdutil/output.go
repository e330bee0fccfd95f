package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Format is how a command paints its answer.
type Format string

// The formats of -o.
const (
	FormatTable Format = "table"
	// FormatWide is FormatTable with all columns, whether or not there is room.
	FormatWide Format = "wide"
	FormatJSON Format = "json"
	FormatYAML Format = "yaml"
	// FormatText is text that is no table, and FormatMarkdown is text for a pull request.
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	// FormatName is the names of the objects as kubectl takes them, one a line.
	FormatName Format = "name"
)

// OutputFlag is the flag -o.
type OutputFlag struct {
	Format Format
	// NoHeaders leaves out the titles of columns.
	NoHeaders bool

	allowed []string
	// more: what is printed as JSON is also printed in the other formats of kubectl.
	more       bool
	expression expression
	forms      []Form
	flag       *pflag.Flag
}

// Form is one form of what a command prints as JSON and YAML.
type Form struct {
	// When says when it has this form, such as "with NAME"; empty if always.
	When string
	// Value is any value of the type that is printed.
	Value any
}

// Manifest is the Value of a Form that is an object of Kubernetes, as kubectl apply takes it.
type Manifest map[string]any

// Prints declares what the command prints as JSON and YAML. `meshctl help schema` shows the schemas
// that are generated from it, and Print prints nothing else.
func (o *OutputFlag) Prints(forms ...Form) {
	o.forms = forms
	o.spell()
}

// Forms are those of Prints.
func (o *OutputFlag) Forms() []Form { return o.forms }

// declared fails for values that Prints does not declare. Tests that make Options by hand declare
// nothing.
func (o *OutputFlag) declared(value any) error {
	t := bare(reflect.TypeOf(value))
	if items, ok := value.([]any); ok {
		for _, item := range items {
			if err := o.declared(reflect.MakeSlice(reflect.SliceOf(bare(reflect.TypeOf(item))), 0, 0).Interface()); err != nil {
				return err
			}
		}
		return nil
	}
	if len(o.forms) > 0 && !slices.ContainsFunc(o.forms, func(f Form) bool { return bare(reflect.TypeOf(f.Value)) == t }) {
		return fmt.Errorf("%s is printed, which no schema describes: a mistake in meshctl", t)
	}
	return nil
}

// bare is a type without pointers, which JSON does not show.
func bare(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer:
		return bare(t.Elem())
	case reflect.Slice:
		return reflect.SliceOf(bare(t.Elem()))
	default:
		return t
	}
}

// AddFlag adds -o to cmd; the first format is the default. What Print prints as JSON can also be had in
// the other formats of kubectl.
func (o *OutputFlag) AddFlag(cmd *cobra.Command, formats ...Format) {
	o.more = slices.Contains(formats, FormatJSON)
	if at := slices.Index(formats, FormatTable); o.more && at >= 0 && !slices.Contains(formats, FormatWide) {
		formats = slices.Insert(slices.Clone(formats), at+1, FormatWide)
	}
	o.add(cmd, formats)
}

// AddOnly is AddFlag of a command that prints by itself: it has these formats and no others.
func (o *OutputFlag) AddOnly(cmd *cobra.Command, formats ...Format) {
	o.more = false
	o.add(cmd, formats)
}

func (o *OutputFlag) add(cmd *cobra.Command, formats []Format) {
	o.Format, o.allowed = formats[0], nil
	for _, f := range formats {
		o.allowed = append(o.allowed, string(f))
	}
	o.flag = cmd.Flags().VarPF(o, "output", "o", "")
	o.spell()
	_ = cmd.RegisterFlagCompletionFunc("output", o.complete)
}

// AddHeadersFlag adds --no-headers to cmd.
func (o *OutputFlag) AddHeadersFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "print no titles of columns")
}

// spell names the formats in the usage of the flag.
func (o *OutputFlag) spell() {
	if o.flag != nil {
		o.flag.Usage = "output `format`: " + strings.Join(o.formats(), ", ")
	}
}

// formats are all that -o takes; those that end in = take an argument.
func (o *OutputFlag) formats() []string {
	formats := slices.Clone(o.allowed)
	if slices.ContainsFunc(o.forms, func(f Form) bool { return hasName(f.Value) }) && o.more {
		formats = append(formats, string(FormatName))
	}
	if o.more {
		for _, e := range expressions {
			formats = append(formats, e.name+"=")
		}
	}
	return formats
}

// complete offers the formats to the shell, and files where one is named.
func (o *OutputFlag) complete(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if name, _, found := strings.Cut(typed, "="); found {
		if o.more && strings.HasSuffix(name, fileSuffix) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	formats := o.formats()
	if o.more {
		for _, e := range expressions {
			formats = append(formats, e.name+fileSuffix+"=")
		}
	}
	formats = slices.DeleteFunc(formats, func(f string) bool { return !strings.HasPrefix(f, typed) })
	if len(formats) == 1 && strings.HasSuffix(formats[0], "=") {
		return formats, cobra.ShellCompDirectiveNoSpace
	}
	return formats, cobra.ShellCompDirectiveNoFileComp
}

// String is part of pflag.Value.
func (o *OutputFlag) String() string { return string(o.Format) }

// Type is part of pflag.Value.
func (o *OutputFlag) Type() string { return "format" }

// Set is part of pflag.Value.
func (o *OutputFlag) Set(s string) error {
	if o.more {
		if e, err := parseExpression(s); e != nil || err != nil {
			o.Format, o.expression = Format(s), e
			return err
		}
	}
	if formats := o.formats(); !slices.Contains(formats, s) {
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
	o.Format, o.expression = Format(s), nil
	return nil
}

// IsTable reports whether a table or text for people is printed.
func (o *OutputFlag) IsTable() bool {
	return o.expression == nil && o.Format != FormatJSON && o.Format != FormatYAML && o.Format != FormatName
}

// Separator is what stands between two answers of a command that goes on; empty for nothing.
func (o *OutputFlag) Separator() string {
	switch {
	case o.Format == FormatYAML:
		return "---\n"
	case o.IsTable():
		return "\n"
	}
	return ""
}

// Print writes value as JSON or YAML or what an expression makes of it, or calls table for other formats.
func (o *OutputFlag) Print(out io.Writer, value any, table func(io.Writer) error) error {
	if o.IsTable() {
		return table(words(out))
	}
	if err := o.declared(value); err != nil {
		return err
	}
	switch {
	case o.expression != nil:
		return printExpression(out, o.expression, value, o.NoHeaders)
	case o.Format == FormatName:
		return printNames(out, value)
	case o.Format == FormatYAML:
		return PrintYAML(out, value)
	}
	return PrintJSON(out, value)
}

// Painter paints text for the output; -o wide is not wrapped.
func (o *OutputFlag) Painter(s *Streams) Painter {
	p := s.OutPainter()
	if o.Format == FormatWide {
		p.Width = 0
	}
	return p
}

// PrintJSON writes value as indented JSON.
func PrintJSON(out io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	_, err = out.Write(append(snapshot.EscapeJSON(data), '\n'))
	return err
}

// PrintYAML writes value as YAML; field names are those of its JSON.
func PrintYAML(out io.Writer, value any) error {
	data, err := snapshot.YAML(value)
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	_, err = out.Write(data)
	return err
}

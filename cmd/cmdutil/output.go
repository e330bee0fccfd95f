package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
)

// OutputFlag is the flag -o.
type OutputFlag struct {
	Format  Format
	allowed []string
	forms   []Form
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
func (o *OutputFlag) Prints(forms ...Form) { o.forms = forms }

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

// AddFlag adds -o to cmd; the first format is the default.
func (o *OutputFlag) AddFlag(cmd *cobra.Command, formats ...Format) {
	o.Format, o.allowed = formats[0], nil
	for _, f := range formats {
		o.allowed = append(o.allowed, string(f))
	}
	cmd.Flags().VarP(o, "output", "o", "output `format`: "+strings.Join(o.allowed, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String is part of pflag.Value.
func (o *OutputFlag) String() string { return string(o.Format) }

// Type is part of pflag.Value.
func (o *OutputFlag) Type() string { return "format" }

// Set is part of pflag.Value.
func (o *OutputFlag) Set(s string) error {
	if !slices.Contains(o.allowed, s) {
		return fmt.Errorf("must be one of %s", strings.Join(o.allowed, ", "))
	}
	o.Format = Format(s)
	return nil
}

// Print writes value as JSON or YAML, or calls table for other formats.
func (o *OutputFlag) Print(out io.Writer, value any, table func(io.Writer) error) error {
	if o.Format == FormatJSON || o.Format == FormatYAML {
		if err := o.declared(value); err != nil {
			return err
		}
	}
	switch o.Format {
	case FormatJSON:
		return PrintJSON(out, value)
	case FormatYAML:
		return PrintYAML(out, value)
	}
	return table(words(out))
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

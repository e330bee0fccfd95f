package help

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// schemas are written by cmd/schema.
//
//go:embed schemas/*.json
var schemas embed.FS

// SchemaTopic is the help topic of the schemas.
const SchemaTopic = "schema"

const schemaIntro = `The answers of commands with -o json and -o yaml are described by JSON Schemas
(draft 2020-12), which say what each field means:

  meshctl help schema COMMAND

prints the schema of what a command prints. Fields that it does not require can
be missing. Later versions may add fields, and do not change those that are
there.

These commands have one:
`

// Schema is the JSON Schema of what a command prints, by its path below meshctl, such as "cluster
// list"; nil if it has none.
func Schema(path string) []byte {
	data, err := schemas.ReadFile("schemas/" + strings.ReplaceAll(path, " ", "-") + ".json")
	if err != nil {
		return nil
	}
	return data
}

// path is the name of a command below the root.
func path(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// described lists the commands at and below c that have a schema.
func described(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	if Schema(path(c)) != nil {
		out = append(out, c)
	}
	for _, child := range c.Commands() {
		out = append(out, described(child)...)
	}
	return out
}

func schemaList(root *cobra.Command) string {
	var b strings.Builder
	for _, c := range described(root) {
		fmt.Fprintf(&b, "\n  %-28s %s", path(c), c.Short)
	}
	return b.String()
}

// printSchema prints the schema of the command that words name.
func printSchema(out io.Writer, root *cobra.Command, words []string) error {
	named := strings.Join(words, " ")
	found, rest, err := root.Find(words)
	if err != nil || len(rest) > 0 {
		var known []string
		for _, c := range described(root) {
			known = append(known, path(c))
		}
		if similar := snapshot.Nearest(named, known); similar != "" {
			return cmdutil.NotFoundErrorf("no command %q has a schema; did you mean %q?", named, similar)
		}
		return cmdutil.NotFoundErrorf("no command %q has a schema; list those that have one with: meshctl help schema", named)
	}
	if data := Schema(path(found)); data != nil {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			return fmt.Errorf("schema of %s: %w", path(found), err)
		}
		_, err := b.WriteTo(out)
		return err
	}
	var below []string
	for _, c := range described(found) {
		below = append(below, path(c))
	}
	if len(below) > 0 {
		return cmdutil.NotFoundErrorf("%q has a schema for each of its commands; choose one of: %s", path(found), strings.Join(below, ", "))
	}
	return cmdutil.NotFoundErrorf("%q has no schema: it has no -o json", path(found))
}

// completeSchema offers the words that lead from those that are typed to a command with a schema.
func completeSchema(root *cobra.Command, typed []string) []string {
	var names []string
	found, rest, err := root.Find(typed)
	if err != nil || len(rest) > 0 {
		return nil
	}
	for _, c := range found.Commands() {
		if len(described(c)) > 0 {
			names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return names
}

// NameSchemas adds to the flag -o of each command below root where its schema is.
func NameSchemas(root *cobra.Command) {
	for _, c := range described(root) {
		if flag := c.Flags().Lookup("output"); flag != nil {
			flag.Usage += "; see meshctl help schema " + path(c)
		}
	}
}

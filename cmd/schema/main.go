// Command schema writes the JSON Schemas of what meshctl prints with -o json and -o yaml:
// FOLDER/COMMAND.json for each command that declares it with OutputFlag.Prints.
//
//	go run ./cmd/schema cmd/help/schemas
//
// It reads the comments of the types, so it runs in the root of the repository. It is no part of
// meshctl, which has the files and so needs no generator.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("schema: name the folder to write to, and nothing else")
	}
	sources, err := readSources(".")
	if err != nil {
		return fmt.Errorf("schema: reading the comments: %w", err)
	}
	files := map[string][]byte{}
	if err := collect(cmd.NewCmdRoot(cmdutil.NewFactory(cmdutil.System())), sources, files); err != nil {
		return err
	}
	return write(args[0], files)
}

// collect makes the files of c and all commands below it.
func collect(c *cobra.Command, sources *sources, files map[string][]byte) error {
	if flag := c.Flags().Lookup("output"); flag != nil {
		if output, ok := flag.Value.(*cmdutil.OutputFlag); ok && len(output.Forms()) > 0 {
			data, err := spell(sources.schema(c.CommandPath(), output.Forms()))
			if err != nil {
				return fmt.Errorf("schema: %s: %w", c.CommandPath(), err)
			}
			_, path, _ := strings.Cut(c.CommandPath(), " ")
			files[strings.ReplaceAll(path, " ", "-")+".json"] = data
		}
	}
	for _, child := range c.Commands() {
		if err := collect(child, sources, files); err != nil {
			return err
		}
	}
	return nil
}

// spell is a schema line by line, so that changes can be read. It is not indented: a quarter of it would be spaces, which are part of the
// binary; who prints it indents it.
func spell(schema any) ([]byte, error) {
	var compact, lines bytes.Buffer
	encoder := json.NewEncoder(&compact)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(schema); err != nil {
		return nil, err
	}
	err := json.Indent(&lines, compact.Bytes(), "", "")
	return lines.Bytes(), err
}

// write writes the files, and removes those of commands that are no more.
func write(dir string, files map[string][]byte) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	for _, path := range old {
		if files[filepath.Base(path)] == nil {
			if err := os.Remove(path); err != nil { //nolint:gosec // the folder is an argument of the developer
				return fmt.Errorf("schema: %w", err)
			}
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil { //nolint:gosec // it is part of the repository
			return fmt.Errorf("schema: %w", err)
		}
	}
	return nil
}

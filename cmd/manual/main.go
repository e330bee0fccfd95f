// Command manual writes what the archives of a release contain beside the binary:
// a man page for each command, and the completions of each shell.
//
//	go run ./cmd/manual FOLDER
//
// SOURCE_DATE_EPOCH is the date of the pages, in seconds since 1970.
// It is no part of meshctl, which so needs no Markdown processor.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

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
		return errors.New("manual: name the folder to write to, and nothing else")
	}
	day := time.Unix(0, 0).UTC()
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("manual: SOURCE_DATE_EPOCH: %w; set it to seconds since 1970", err)
		}
		day = time.Unix(seconds, 0).UTC()
	}
	return write(args[0], day, cmd.NewCmdRoot(cmdutil.NewFactory(cmdutil.System())))
}

// write writes dir/man/man1/*.1, which show the month of day, and dir/completions/*.
func write(dir string, day time.Time, root *cobra.Command) error {
	// The day of the build does not stand in them: the same commit gives the same
	// bytes.
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	pages := filepath.Join(dir, "man", "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil { //nolint:gosec // what a release contains is public
		return fmt.Errorf("manual: creating the folder of the pages: %w", err)
	}
	header := &doc.GenManHeader{Section: "1", Source: "meshctl", Manual: "meshctl", Date: &day}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return fmt.Errorf("manual: writing the man pages: %w", err)
	}
	return writeCompletions(filepath.Join(dir, "completions"), root)
}

// writeCompletions writes a file for each shell, named as the shell expects it.
func writeCompletions(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // what a release contains is public
		return fmt.Errorf("manual: creating the folder of the completions: %w", err)
	}
	for name, write := range map[string]func(string) error{
		"meshctl.bash": func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_meshctl":     root.GenZshCompletionFile,
		"meshctl.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
		"meshctl.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("manual: writing the completion %s: %w", name, err)
		}
	}
	return nil
}

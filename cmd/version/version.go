// Package version is the command `meshctl version`.
package version

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Version cmdutil.Version
	Output  cmdutil.OutputFlag
}

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(*Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Version: f.Version}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of meshctl",
		Example: `  # Print the version as JSON
  meshctl version -o json`,
		Args: cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if runF != nil {
				return runF(opts)
			}
			return versionRun(opts)
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	return cmd
}

// answer has the shape of Gloo Mesh's.
type answer struct {
	Client cmdutil.Version `json:"client"`
}

func versionRun(opts *Options) error {
	return opts.Output.Print(opts.Streams.Out, answer{Client: opts.Version}, func(out io.Writer) error {
		v := opts.Version
		commit := v.Commit
		if v.Modified {
			commit += " (modified)"
		}
		t := cmdutil.Table{}
		t.Add("Version", v.Version)
		t.Add("Commit", commit)
		t.Add("Go", v.Go)
		t.Add("Platform", v.Platform)
		if err := t.Print(out); err != nil {
			return fmt.Errorf("version: %w", err)
		}
		return nil
	})
}

package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// fleet is a fleet as "meshctl debug snapshot" records one, of testdata/translate/fleet; edit are changes of its policies.
var (
	//go:embed recorded/fleet.zip
	fleet []byte
	//go:embed recorded/edit.yaml
	edit []byte
)

// showOptions are those of show.
type showOptions struct {
	// save is a file for the recording; empty to look at it.
	save string
	// find finds a command by its words, and returns what follows them.
	find func(args []string) (*cobra.Command, []string, error)
	run  func(ctx context.Context, args []string) int
}

func newCmdShow(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	cmd := &cobra.Command{
		Use:   "show [COMMAND [ARGUMENT...]]",
		Short: "Look at a recorded fleet, without any cluster",
		Long: `Opens a fleet that is recorded in this program: three clusters, one of which
does not answer, with a shift to another cluster, a conflict, refused callers
and a mistake. No cluster is needed, and nothing is built.

Without a command, it opens in the dashboard; without a terminal, its problems
are listed. With a command, this one reads it, and its exit code counts: these
are dashboard, describe, why, check, plan, translate. Without a file, "plan"
plans an edit that is recorded, too.`,
		Example: `  # Open a recorded fleet in the dashboard
  meshctl demo show

  # Ask whether productpage may call ratings there, and why
  meshctl demo show why productpage-v1 ratings

  # See what an edit of its policies would do to traffic
  meshctl demo show plan

  # Save it as a file, which all of these commands read with --snapshot
  meshctl demo show --save fleet.zip`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.args = args
			opts.show.find, opts.show.run = cmd.Root().Find, f.Run
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return showRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.show.save, "save", "", "write the recording to this `file`, and look at nothing")
	_ = cmd.MarkFlagFilename("save", "zip")
	cmd.Flags().SetInterspersed(false) // what follows the command are its own flags
	return cmd
}

func showRun(ctx context.Context, opts *Options) error {
	if opts.show.save != "" {
		if len(opts.args) > 0 {
			return cmdutil.FlagErrorf("--save takes no command; open the file with it: meshctl %s --snapshot %s", strings.Join(opts.args, " "), opts.show.save)
		}
		return saveFleet(opts)
	}
	args := opts.args
	switch {
	case len(args) == 0 && opts.Streams.OutTTY && opts.Streams.InTTY:
		args = []string{"dashboard"}
	case len(args) == 0:
		args = []string{"describe", "problems"}
	}
	command, rest, err := opts.show.find(args)
	if err != nil || command.Flags().Lookup("snapshot") == nil {
		return cmdutil.FlagErrorf("%q does not read a recorded fleet; these do: dashboard, describe, why, check, plan, translate", args[0])
	}
	dir, err := os.MkdirTemp("", "meshctl-show-")
	if err != nil {
		return fmt.Errorf("a folder for the recording: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	recording := filepath.Join(dir, "fleet.zip")
	if err := os.WriteFile(recording, fleet, 0o600); err != nil {
		return err
	}
	line := append(strings.Fields(command.CommandPath())[1:], "--snapshot", recording)
	if command.Name() == "plan" && !slices.ContainsFunc(rest, namesFile) {
		file := filepath.Join(dir, "edit.yaml")
		if err := os.WriteFile(file, edit, 0o600); err != nil {
			return err
		}
		cmdutil.Say(opts.Streams, "Note: this plans an edit that is recorded with the fleet; with -f, your own.")
		line = append(line, "-f", file)
	}
	if code := opts.show.run(ctx, append(line, rest...)); code != cmdutil.ExitOK {
		return cmdutil.WithCode(code, cmdutil.ErrSilent) // it has said why
	}
	return nil
}

// namesFile reports whether an argument of plan is a flag that names manifests.
func namesFile(arg string) bool {
	return strings.HasPrefix(arg, "-f") || strings.HasPrefix(arg, "--filename")
}

// saveFleet writes the recording to a file that does not exist.
func saveFleet(opts *Options) error {
	file, err := os.OpenFile(opts.show.save, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; choose another name", opts.show.save)
	}
	if err != nil {
		return err
	}
	if _, err := file.Write(fleet); err != nil {
		_ = file.Close()
		return fmt.Errorf("%s: %w", opts.show.save, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("%s: %w", opts.show.save, err)
	}
	cmdutil.Say(opts.Streams, "Wrote %s. Open it with: meshctl dashboard --snapshot %s", opts.show.save, opts.show.save)
	return nil
}

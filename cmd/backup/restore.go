package backup

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cluster"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// RestoreOptions of the command.
type RestoreOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Kube    cmdutil.KubeFlags
	// File to read; - is standard input.
	File   string
	Force  bool
	DryRun bool

	factory *cmdutil.Factory
}

const restoreLong = `Makes the management plane of a file that "meshctl backup" wrote, in a cluster
that has none: for when the management cluster is lost, or moves. The namespace
is the same. Nothing changes in the registered clusters, and a serve that is
then started takes over there what it finds.

Before, see that no serve works any more in the former management cluster: two
with one identity would correct each other. The steps:

  meshctl restore meshctl.backup --context NEW
  meshctl install --context NEW
  meshctl check --context NEW

Of two policies in conflict, the older one applies. API servers give restored
objects a new age, so they are created in the order of the former ones; where
the order of names differs, that takes a second each. A request for another
root that serve had not yet followed has to be made again.

Agents keep their certificates, and come back by themselves once the address
that they dial leads to the new serve: move the name, or the load balancer.

It writes nothing while serve works in the namespace, or if something there is
not as in the file: it says what. With --force, it replaces that. A run that
was interrupted is finished by the next one; registrations come last, so that
no cluster is written to before all policies are there.`

// NewRestoreCmd returns the command `meshctl restore`; runF replaces its run in tests.
func NewRestoreCmd(f *cmdutil.Factory, runF func(context.Context, *RestoreOptions) error) *cobra.Command {
	opts := &RestoreOptions{Streams: f.Streams, factory: f}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the management plane of a backup in another cluster",
		Long:  restoreLong,
		Example: `  # Show what would be written
  meshctl restore meshctl.backup --context new --dry-run

  # Make the management plane in a new cluster, and start serve
  meshctl restore meshctl.backup --context new
  meshctl install --context new`,
		Args: cmdutil.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.File = args[0]; opts.File == stdio && opts.Streams.InTTY {
				return cmdutil.FlagErrorf("a backup is not typed; name a file, or a program with: PROGRAM | %s -", cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return restoreRun(cmd.Context(), opts)
		},
	}
	opts.Kube.AddFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: registration.Report{}})
	cmd.Flags().BoolVar(&opts.Force, "force", false, "replace what is there and not as in the file")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

func restoreRun(ctx context.Context, o *RestoreOptions) error {
	backup, err := read(o.Streams, o.File)
	if err != nil {
		return err
	}
	config, err := o.Kube.Config(o.factory)
	if err != nil {
		return err
	}
	cmdutil.Say(o.Streams, "The backup is of namespace %s of %s, taken at %s.", backup.Namespace, cmdutil.Clean(backup.Server), backup.Taken.UTC().Format(time.RFC3339))
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Restoring namespace " + backup.Namespace + " of " + config.Host)
	report, err := registration.Restore(ctx, backup, registration.RestoreOptions{
		Config: config, Context: o.Kube.Context, Force: o.Force, DryRun: o.DryRun, Progress: func(text string) { progress.Note("%s", text) },
	})
	progress.End(err)
	if len(report.Changes) > 0 {
		err = errors.Join(err, cluster.PrintReport(o.Streams, &o.Output, &report))
	}
	switch {
	case err != nil:
		return typed(err)
	case o.DryRun:
		cmdutil.Say(o.Streams, "Nothing was written.")
	case report.Unchanged():
		cmdutil.Say(o.Streams, "Nothing changed: all of it is there.")
	default:
		cmdutil.Say(o.Streams, "Restored. If no serve works in the former management cluster any more, start it here with: meshctl install")
	}
	return nil
}

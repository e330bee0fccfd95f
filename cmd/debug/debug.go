// Package debug is the command `meshctl debug`: what helps to find out why something went wrong.
//
//   - debug.go: the command, and debug snapshot
//   - bundle.go: debug bundle
//   - diff.go: debug diff
package debug

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of meshctl debug snapshot.
type Options struct {
	Streams *cmdutil.Streams
	Source  cmdutil.Source
	// File is where the snapshot goes.
	File string
	// Now is the clock.
	Now func() time.Time
}

const long = `Records what meshctl works on in one file: what was discovered in every
registered cluster, the policies with their statuses, the objects that follow
from them, and what changed in the last day ("meshctl changes").

The file is a zip archive of folders as for "meshctl translate", with the
generated objects in .outputs. "translate", "plan", "why", "describe",
"dashboard" and others open it with --snapshot, without a cluster.

It has no Secrets and no private keys. Of workloads it has what decides about
meshes: of environment variables and arguments, only those that configure a
control plane. It does have names of services, images, hosts and accounts, and
the settings of meshes.`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug",
		Short: "Record what meshctl works on, and compare recordings",
		Long:  "Helps to find out why something went wrong.",
		Example: `  # Record what there is, and look at it elsewhere
  meshctl debug snapshot -o snapshot.zip
  meshctl dashboard --snapshot snapshot.zip

  # Collect what support needs, with logs
  meshctl debug bundle -o bundle.zip

  # Say what has changed since then
  meshctl debug diff snapshot.zip`,
	}
	cmd.AddCommand(newCmdSnapshot(f, runF), newCmdBundle(f, nil), newCmdDiff(f, nil))
	return cmd
}

func newCmdSnapshot(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Record clusters, policies and what follows from them in a file",
		Long:  long,
		Example: `  # Record what there is now
  meshctl debug snapshot

  # Say what would have become of a request then
  meshctl why productpage-v1 reviews --snapshot meshctl-20260102-150405.zip`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&opts.File, "output", "o", "", "`file` to write (default: meshctl-DATE-TIME.zip)")
	cmd.Flags().StringVar(&opts.Source.Dir, "dir", "", "record the manifests in this `folder`, as they are, instead of a cluster")
	opts.Source.AddClusterFlags(cmd)
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagFilename("output", "zip")
	for _, cluster := range []string{"kubeconfig", "context", "namespace"} {
		cmd.MarkFlagsMutuallyExclusive("dir", cluster)
	}
	return cmd
}

func run(ctx context.Context, o *Options) error {
	read, err := o.Source.ReadAll(ctx, o.Streams)
	if err != nil {
		return err
	}
	now := o.Now()
	if o.File == "" {
		o.File = "meshctl-" + now.Format("20060102-150405") + ".zip"
	}
	recorded := &offline.Snapshot{Input: read.Input, Recorded: now, Served: read.Served, Changes: o.changes(ctx, read)}
	files, err := offline.Save(recorded, engine.Translate(read.Input).Output)
	if err != nil {
		return err
	}
	size, err := write(o.File, files)
	if err != nil {
		return fmt.Errorf("write to %s: %w", o.File, err)
	}
	for _, c := range read.Input.Clusters {
		if c.Frozen() {
			cmdutil.Say(o.Streams, "Note: cluster %s is not in it as it is now: %s.", c.Name, c.Reason)
		}
	}
	cmdutil.Say(o.Streams, "Recorded %s in %s (%d kB). Open it with: meshctl dashboard --snapshot %s", snapshot.Count(len(read.Input.Clusters), "cluster"), o.File, (size+1023)/1024, o.File)
	return nil
}

// changes are what the server recorded of what changed. A snapshot without them is worth as much.
func (o *Options) changes(ctx context.Context, read *reading.Reading) snapshot.Changes {
	if o.Source.Dir != "" {
		return read.Changes
	}
	management, err := o.Source.Management()
	if err == nil {
		var changes snapshot.Changes
		if changes, err = management.Changes(ctx); err == nil {
			return changes
		}
	}
	cmdutil.Say(o.Streams, "Note: what changed is not in it: %s.", cmdutil.Clean(err.Error()))
	return nil
}

// write writes an archive.
func write(file string, files map[string][]byte) (size int64, err error) {
	return cmdutil.WriteFile(file, func(to io.Writer) error { return offline.WriteArchive(to, files) })
}

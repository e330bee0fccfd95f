package trust

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ShowOptions of meshctl trust show.
type ShowOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Clusters reads the members' clusters, too.
	Clusters bool
	// VirtualMesh is a name; empty shows all.
	VirtualMesh string
	// Now is the clock.
	Now func() time.Time
}

const showLong = `Shows where the trust of a VirtualMesh stands: its roots, which of them signs,
what each member has, and what is waited for. Without a name, all are shown.

The information is what "meshctl serve" has stored in the management cluster.
With --clusters, the clusters of the members are read as well, with the stored
credentials: what the workloads of each mesh trust and present.

A root that expires within 60 days is reported. The certificates of the members
renew by themselves, and are reported if they have not.

SIGNS is the root that signs, IN_USE another one that members have certificates
of, and LEAVING one that is still trusted and not used. Tables show the first
digits of fingerprints; -o wide, json and yaml have all of them.`

func newCmdShow(f *cmdutil.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	opts := &ShowOptions{Streams: f.Streams, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:   "show [VIRTUALMESH]",
		Short: "Roots, certificates and stage of a VirtualMesh",
		Long:  showLong,
		Example: `  # Show where the trust of a VirtualMesh stands
  meshctl trust show virtual-mesh

  # Print the roots of all VirtualMeshes with whole fingerprints
  meshctl trust show -o yaml`,
		Args: cmdutil.Args("[VIRTUALMESH]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.VirtualMesh = args[0]
			}
			if opts.Clusters && opts.Source.Dir != "" {
				return cmdutil.FlagErrorf("--clusters and --dir cannot be used together: a folder has all clusters")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return showRun(cmd.Context(), opts)
		},
		ValidArgsFunction: completion(&opts.Source),
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(
		cmdutil.Form{When: "with VIRTUALMESH", Value: explain.Trust{}},
		cmdutil.Form{When: "without VIRTUALMESH", Value: []explain.Trust{}},
	)
	opts.Source.AddFlags(cmd)
	cmd.Flags().BoolVar(&opts.Clusters, "clusters", false, "read the clusters of the members, too")
	return cmd
}

// completion completes one name of a VirtualMesh.
func completion(source *cmdutil.Source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return source.Names(cmd.Context(), snapshot.VirtualMesh), cobra.ShellCompDirectiveNoFileComp
	}
}

func showRun(ctx context.Context, opts *ShowOptions) error {
	read, err := opts.read(ctx)
	if err != nil {
		return err
	}
	index := read.Index(nil)
	if opts.VirtualMesh != "" {
		ref, err := cmdutil.Pick(index, snapshot.VirtualMesh, opts.VirtualMesh)
		if err != nil {
			return err
		}
		answer := index.Trust(ref, opts.Now())
		return opts.Output.Print(opts.Streams.Out, answer, func(out io.Writer) error { return opts.print(out, answer) })
	}
	answers := []*explain.Trust{}
	for _, ref := range index.Refs(snapshot.VirtualMesh) {
		answers = append(answers, index.Trust(ref, opts.Now()))
	}
	return opts.Output.Print(opts.Streams.Out, answers, func(out io.Writer) error {
		if len(answers) == 0 {
			_, err := fmt.Fprintln(opts.Streams.Err, "No VirtualMesh found; create one with: meshctl create virtualmesh")
			return err
		}
		for i, answer := range answers {
			if i > 0 {
				if _, err := fmt.Fprintln(out); err != nil {
					return err
				}
			}
			if err := opts.print(out, answer); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads what the flags name.
func (o *ShowOptions) read(ctx context.Context) (*reading.Reading, error) {
	if !o.Clusters {
		return o.Source.Read(ctx, o.Streams)
	}
	management, err := o.Source.Management()
	if err != nil {
		return nil, err
	}
	return cmdutil.ReadClusters(ctx, o.Streams, cmdutil.NewProgress(o.Streams), management.Clusters)
}

func (o *ShowOptions) print(out io.Writer, answer *explain.Trust) error {
	page := answer.Page()
	if o.Output.Format == cmdutil.FormatWide {
		page = answer.WidePage()
	}
	return cmdutil.PrintPage(out, o.Output.Painter(o.Streams), page)
}

// Package graph is the command `meshctl graph`: who may call what, and where requests go.
package graph

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The formats that draw.
const (
	formatMermaid cmdutil.Format = "mermaid"
	formatDOT     cmdutil.Format = "dot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Service is the name of a service; empty for all.
	Service string
	// Most bounds the edges; 0 is all.
	Most int
}

const long = `Says which workloads may call a service, and where its requests go, with their
shares. Without SERVICE, it is about all services. Calls that are refused are
dotted in a drawing.

The answer follows from the objects that were discovered and from the policies:
what is drawn is what may happen, not what does; "meshctl top" counts that.
Where something decides that cannot be followed, a call is drawn as allowed;
"meshctl why" says UNKNOWN there, and names it.

-o mermaid is for Markdown: GitHub and GitLab draw it. -o dot is for Graphviz.`

const example = `  # Who may call reviews, and where do its requests go?
  meshctl graph reviews.bookinfo.cluster-1

  # All services, for Graphviz
  meshctl graph -o dot > calls.dot

  # Draw them in the description of a repository
  meshctl graph -o mermaid --most 100 --dir ./manifests`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     "graph [SERVICE]",
		Short:   "Draw who may call what, and where requests go",
		Long:    long,
		Example: example,
		Args:    cmdutil.Args("[SERVICE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Service = args[0]
			}
			if opts.Most < 0 {
				return cmdutil.FlagErrorf("--most %d: want the number of edges, or 0 for all", opts.Most)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return opts.Source.Names(cmd.Context(), snapshot.Destination), cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatText, formatMermaid, formatDOT, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: explain.Graph{}})
	opts.Source.AddFlags(cmd)
	cmd.Flags().IntVar(&opts.Most, "most", 0, "leave out edges after this `number` (default: none)")
	return cmd
}

func run(ctx context.Context, o *Options) error {
	read, err := o.Source.Read(ctx, o.Streams)
	if err != nil {
		return err
	}
	index := read.Index(nil)
	services := index.Refs(snapshot.Destination)
	if o.Service != "" {
		ref, err := cmdutil.Pick(index, snapshot.Destination, o.Service)
		if err != nil {
			return err
		}
		services = []snapshot.Ref{ref}
	}
	if not := index.NotRead(); not != "" {
		cmdutil.Say(o.Streams, "Not read: %s", not)
	}
	graph := explain.GraphOf(index, services, o.Most)
	return o.Output.Print(o.Streams.Out, graph, func(out io.Writer) error {
		text := graph.Text()
		switch o.Output.Format {
		case formatMermaid:
			text = graph.Mermaid()
		case formatDOT:
			text = graph.DOT()
		}
		if len(graph.Edges) == 0 {
			cmdutil.Say(o.Streams, "No workload of a mesh was discovered that could call a service.")
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

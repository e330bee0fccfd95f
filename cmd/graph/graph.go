// Package graph is the command `meshctl graph`: who may call what, and where requests go.
package graph

import (
	"context"
	"fmt"
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
	formatSVG     cmdutil.Format = "svg"
	formatHTML    cmdutil.Format = "html"
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
	// Seen leaves out the edges on which nothing was counted.
	Seen bool
}

const long = `Says which workloads may call a service, and where its requests go, with their
shares. Without SERVICE, it is about all services. Calls that are refused are
dotted in a drawing.

What may happen follows from the objects that were discovered and from the
policies. Where something decides that cannot be followed, a call is drawn as
allowed; "meshctl why" says UNKNOWN there, and names it.

What does happen stands beside it, where the meshctl serve that leads counts it
(see "meshctl top"): the requests of the last 15 minutes as a rate, the share
that failed or was refused, TLS where the proxies count its handshakes, and how
they get to another cluster. Calls with "no traffic" were not made; of those
with "no data", nothing is known. Calls that were counted, and that nothing
above explains, are drawn, too. --seen leaves out what was not counted.

-o svg is a drawing, and -o html a page with it that needs no network. -o dot is
for Graphviz. -o mermaid is for Markdown: GitHub and GitLab draw it.`

const example = `  # Who may call reviews, and where do its requests go?
  meshctl graph reviews.bookinfo.cluster-1

  # What is called in the fleet, as a page
  meshctl graph --seen -o html > calls.html

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
	opts.Output.AddFlag(cmd, cmdutil.FormatText, formatMermaid, formatDOT, formatSVG, formatHTML, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: explain.Graph{}})
	opts.Source.AddFlags(cmd)
	opts.Source.AddServerFlag(cmd)
	cmd.Flags().BoolVar(&opts.Seen, "seen", false, "leave out edges on which no request was counted")
	cmd.Flags().IntVar(&opts.Most, "most", 0, "leave out edges after this `number` (default: none)")
	return cmd
}

func run(ctx context.Context, o *Options) error {
	evidence := o.Source.Evidence(ctx)
	read, err := o.Source.Read(ctx, o.Streams)
	if err != nil {
		return err
	}
	read.Evidence = evidence()
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
	graph, err := o.graph(index, services)
	if err != nil {
		return err
	}
	return o.Output.Print(o.Streams.Out, graph, func(out io.Writer) error {
		text := graph.Text()
		switch o.Output.Format {
		case formatMermaid:
			text = graph.Mermaid()
		case formatDOT:
			text = graph.DOT()
		case formatSVG:
			text = graph.SVG()
		case formatHTML:
			text = graph.HTML()
		}
		switch {
		case len(graph.Edges) > 0:
		case o.Seen:
			cmdutil.Say(o.Streams, "No request was counted in the %s.", graph.Window)
		default:
			cmdutil.Say(o.Streams, "No workload of a mesh was discovered that could call a service.")
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

// graph is what is drawn. Without numbers, it says why there are none.
func (o *Options) graph(index *explain.Index, services []snapshot.Ref) (*explain.Graph, error) {
	graph := explain.SeenGraph(index, services, explain.SeenOptions{All: o.Service == "", Only: o.Seen, Most: o.Most})
	switch {
	case graph.Window != "":
	case o.Seen && graph.Unseen != "":
		return nil, fmt.Errorf("--seen: what requests do is not known: %s", graph.Unseen)
	case o.Seen:
		return nil, cmdutil.FlagErrorf("--seen: nobody counts the requests of a folder; name a meshctl serve with --server, or a management cluster")
	case graph.Unseen != "":
		cmdutil.Say(o.Streams, "What requests do is not shown: %s", cmdutil.Clean(graph.Unseen))
	}
	return graph, nil
}

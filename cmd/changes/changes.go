// Package changes is the command `meshctl changes`: what changed for traffic, when, and because of what.
package changes

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Name keeps the changes of what is called so; empty keeps all.
	Name string
	// Since keeps the changes of this last time; zero keeps all.
	Since time.Duration
	Watch bool
	// Now is the clock.
	Now func() time.Time

	// every is the pause between two looks while it watches.
	every time.Duration
}

const long = `Shows what changed for traffic, when, and because of what: other shares of
routes, callers that were refused or let in, settings; edits of policies, and
who made them; clusters, gateways and control planes that were lost and found;
objects of meshctl that somebody else changed, and that were put back;
credentials that were renewed, roots that were exchanged, and which meshctl
serve leads. Pods that come and go are no change, unless the shares change.

The newest change is first. With --watch, the newest is last, and each new one
is printed as it comes.

NAME keeps the changes of one object, and those that follow from it: its name,
that of the Kubernetes object that it represents (reviews, reviews.bookinfo,
reviews.bookinfo.cluster-1), or a cluster.

The meshctl serve that leads records the changes of the last 24 hours, at most
500, in ConfigMap ` + snapshot.ChangesRecord + ` of its namespace. What changed while
none led is not in it. Who made an edit is the name that the client gave
itself (kubectl get -o yaml --show-managed-fields). Of edits by hand, values
are shown that can be no secret: numbers, times, names and hosts.`

const example = `  # Show what changed in the last hour, and why
  meshctl changes --since 1h

  # Show what changed for a service, or because of a policy
  meshctl changes reviews
  meshctl changes reviews-shift

  # Follow an outage
  meshctl changes --since 10m --watch

  # Show what changed before a snapshot was recorded
  meshctl changes --snapshot meshctl-20260102-150405.zip`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now, every: 2 * time.Second}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: "changes [NAME]",
		// What other programs call it.
		SuggestFor: []string{"events", "history", "log", "timeline"},
		Short:      "Show what changed for traffic, when, and why",
		Long:       long,
		Example:    example,
		Args:       cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			if opts.Since < 0 {
				return cmdutil.FlagErrorf("--since %s: want a time such as 10m or 1h", opts.Since)
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
			return opts.Source.Names(cmd.Context(), snapshot.Destination, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.KubernetesCluster),
				cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatText, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: snapshot.Changes{}}, cmdutil.Form{When: "with --watch", Value: snapshot.Change{}})
	opts.Source.AddFlags(cmd)
	cmd.Flags().DurationVar(&opts.Since, "since", 0, "show the changes of this last `time`, such as 1h (default: all that are kept)")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "also show each new change, until interrupted")
	for _, file := range []string{"dir", "snapshot"} {
		cmd.MarkFlagsMutuallyExclusive("watch", file)
	}
	return cmd
}

func run(ctx context.Context, o *Options) error {
	all, now, err := o.read(ctx)
	if err != nil {
		return err
	}
	if o.Watch {
		return o.follow(ctx, all)
	}
	list := o.keep(all, now)
	return o.Output.Print(o.Streams.Out, newestFirst(list), func(out io.Writer) error {
		switch {
		case len(list) == 0:
			cmdutil.Say(o.Streams, "%s", o.empty(all))
			return nil
		case o.Output.Format == cmdutil.FormatWide:
			return cmdutil.FitTable(o.Streams, o.Output.Format, explain.Changes(list, ""), o.Now()).Print(out)
		}
		return printText(out, o.Output.Painter(o.Streams), newestFirst(list), o.Now())
	})
}

// read reads the record, and when it ends: now, or when a snapshot was recorded.
func (o *Options) read(ctx context.Context) (snapshot.Changes, time.Time, error) {
	now := o.Now()
	if o.Source.Dir != "" {
		read, err := cmdutil.ReadFolder(o.Streams, o.Source.Dir)
		if err != nil {
			return nil, now, err
		}
		if !read.Recorded.IsZero() {
			now = read.Recorded
		}
		return read.Changes, now, nil
	}
	management, err := o.Source.Management()
	if err != nil {
		return nil, now, err
	}
	changes, err := management.Changes(ctx)
	if err != nil {
		return nil, now, cmdutil.Advise(ctx, o.Source.Factory, o.Source.Kube.Kubeconfig, err)
	}
	serving, err := management.Serving()
	if err != nil {
		return nil, now, err
	}
	// Who may not read the Lease still gets an answer.
	if s, err := serving(ctx); err == nil && s.Known && !s.Since.IsZero() {
		if leads, _ := s.At(now); !leads {
			cmdutil.Say(o.Streams, "Note: %s.", explain.NotServed(&s))
		}
	}
	return changes, now, nil
}

// keep are the changes that are asked for.
func (o *Options) keep(all snapshot.Changes, now time.Time) snapshot.Changes {
	out := snapshot.Changes{}
	for i := range all {
		old := o.Since > 0 && all[i].Time.Before(now.Add(-o.Since))
		if !old && (o.Name == "" || all[i].Matches(o.Name)) {
			out = append(out, all[i])
		}
	}
	return out
}

// empty says why nothing is listed.
func (o *Options) empty(all snapshot.Changes) string {
	switch {
	case len(all) == 0 && o.Source.Dir != "":
		return "No change is recorded there. meshctl debug snapshot records them from a management cluster."
	case len(all) == 0:
		return explain.NoChanges
	}
	text := "No change"
	if o.Name != "" {
		text += " of " + cmdutil.Clean(o.Name)
	}
	if o.Since > 0 {
		text += " in the last " + o.Since.String()
	}
	if o.Name != "" {
		var names []string
		for i := range all {
			short, _, _ := strings.Cut(all[i].Called, ".")
			names = append(names, all[i].On.Name, all[i].Cluster, short)
		}
		if similar := snapshot.Nearest(o.Name, names); similar != "" {
			return text + "; did you mean " + cmdutil.Clean(similar) + "?"
		}
	}
	return text + " is recorded; show all with: meshctl changes"
}

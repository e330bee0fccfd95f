// Package top is the command `meshctl top`: what requests do.
package top

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	Now     func() time.Time
	Query   traffic.Query
	// Watch prints again and again.
	Watch bool
	// FailBelow is the least share of requests that succeed, in percent; 0 for none.
	FailBelow float64

	// every is the time between two reports with Watch.
	every time.Duration
}

const long = `Shows what requests do, as the proxies of the callers count it: rates, the share
that succeeds (is answered with less than 500, and not refused with 403),
latencies, retries, failures, and the requests of each minute as a trend; what
fails most comes first. A refusal may be that of an AccessPolicy, or of the
application: workloads count those of policies, as denied, and, as audited, what
policies would refuse that are audited. Workloads are shown with the requests
that they get, edges with who calls what, in which subset, and how it gets
there.

Something has numbers, or no traffic: its proxies were read, and counted
nothing; or no data, with the reason: then nothing is known. The words go to the
error stream. Latencies are the upper ends of buckets.

The numbers come from the meshctl serve that leads. It has those of the last 15
minutes in memory, since it began to lead; what proxies counted before is not
traffic. A pod that ends takes what it counted in its last seconds with it;
where the statistics of clusters are counted, see below, so does a
DestinationRule that changes what proxies have for a service.

They come in every 15 s through one door for each cluster, which -o wide names:
by scrape, meshctl serve reads the proxies like kubectl port-forward, for which
it needs a right that registration does not give; by agent, the agent of a
cluster that is reached through it reads them; by push, they send to that agent
by themselves; by prometheus, a Prometheus that has read them is asked. "meshctl
telemetry enable" chooses, and gives the right.

Istio's proxies count requests. Where a Telemetry removes a label that says what
was called or answered, or disables the metrics of a side, there is no data, and
the label or the Telemetry is named. Without a Prometheus among those of
defaultProviders.metrics in its meshConfig, no proxy of a mesh counts them by
itself. Others do if the mesh's configuration includes the statistics of their
clusters: proxyStatsMatcher, with the
inclusionRegexps cluster\.(outbound|inbound).*;\.(upstream_(rq|cx)_|ssl\.).* and
http\..*\.rbac\..*; pods have to be started again after that.`

const example = `  # Show the services of the fleet, those that fail most first
  meshctl top

  # Show who calls reviews, and which share each subset gets
  meshctl top edges --to reviews --window 5m

  # Fail in a pipeline, after a change, if less than 99.5 % succeed
  meshctl top destinations --to reviews --window 1m --fail-below 99.5

  # Ask a meshctl serve that does not run in the management cluster
  meshctl top --server http://127.0.0.1:9091 --watch

  # Let meshctl serve read the proxies of cluster-2
  meshctl telemetry enable cluster-2 --remote-context cluster-2`

// questions are what the command shows; the first is the default.
var questions = []string{string(traffic.ByDestination), string(traffic.ByWorkload), string(traffic.ByEdge)}

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now, every: 5 * time.Second}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: "top [" + strings.Join(questions, "|") + "]",
		// What other programs call it.
		SuggestFor: []string{"stat", "stats", "traffic", "metrics", "edges"},
		Short:      "Show what requests do: rates, failures, latencies",
		Long:       long,
		Example:    example,
		Args:       cmdutil.Args("[" + strings.Join(questions, "|") + "]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Query.By = traffic.ByDestination
			if len(args) > 0 {
				opts.Query.By = traffic.By(args[0])
			}
			if err := opts.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return questions, cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: traffic.Report{}})
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "with --fail-below: less succeeds, or nothing was counted"})
	opts.Output.AddHeadersFlag(cmd)
	opts.Source.AddClusterFlags(cmd)
	opts.Source.AddServerFlag(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&opts.Query.Window, "window", traffic.Kept, "show the requests of this last `time`, up to 15m")
	flags.StringVar(&opts.Query.From, "from", "", "show requests of this `workload`: NAME, NAME.NAMESPACE or NAME.NAMESPACE.CLUSTER")
	flags.StringVar(&opts.Query.To, "to", "", "show requests to this `service` or workload, named in the same way")
	flags.StringVar(&opts.Query.Cluster, "cluster", "", "show services and workloads of this `cluster`")
	flags.StringVar(&opts.Query.Namespace, "in-namespace", "", "show services and workloads of this `namespace`")
	flags.StringVar(&opts.Query.Sort, "sort", traffic.Sorts[0], "`order`: "+strings.Join(traffic.Sorts, ", "))
	flags.BoolVarP(&opts.Watch, "watch", "w", false, "show it again every 5 s until interrupted")
	flags.Float64Var(&opts.FailBelow, "fail-below", 0, "fail if a row has less than this `percentage` of success")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(traffic.Sorts, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagsMutuallyExclusive("watch", "fail-below")
	return cmd
}

func (o *Options) validate() error {
	q := &o.Query
	switch {
	case !slices.Contains(questions, string(q.By)):
		return cmdutil.FlagErrorf("%s: want one of %s", q.By, strings.Join(questions, ", "))
	case q.Window < telemetry.MinWindow || q.Window > traffic.Kept:
		return cmdutil.FlagErrorf("--window %s: want a time from %s to 15m", q.Window, telemetry.MinWindow)
	case !slices.Contains(traffic.Sorts, q.Sort):
		return cmdutil.FlagErrorf("--sort %s: want one of %s", q.Sort, strings.Join(traffic.Sorts, ", "))
	case o.FailBelow < 0 || o.FailBelow > 100:
		return cmdutil.FlagErrorf("--fail-below %v: want a percentage from 0 to 100", o.FailBelow)
	}
	return nil
}

func run(ctx context.Context, o *Options) error {
	for first := true; ; first = false {
		report, err := o.ask(ctx)
		if ctx.Err() != nil && !first {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.print(report, first); err != nil {
			return err
		}
		if !o.Watch {
			return o.judge(report)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
	}
}

// ask gets the report from meshctl serve.
func (o *Options) ask(ctx context.Context) (*traffic.Report, error) {
	if o.Source.Server != "" {
		return reading.Management{Server: o.Source.Server}.Traffic(ctx, o.Query)
	}
	management, err := o.Source.Management()
	if err != nil {
		return nil, err
	}
	return management.Traffic(ctx, o.Query)
}

// print prints a report. On a terminal, one that is watched takes the place of the one before.
func (o *Options) print(report *traffic.Report, first bool) error {
	if o.Watch && o.Streams.OutTTY && o.Output.IsTable() {
		if _, err := io.WriteString(o.Streams.Out, "\x1b[H\x1b[2J"); err != nil {
			return err
		}
	} else if separator := o.Output.Separator(); !first && separator != "" {
		if _, err := io.WriteString(o.Streams.Out, separator); err != nil {
			return err
		}
	}
	return o.Output.Print(o.Streams.Out, report, func(out io.Writer) error {
		table := explain.Traffic(report, o.Query.By)
		if len(table.Rows) > 0 {
			fitted := cmdutil.FitTable(o.Streams, o.Output.Format, table, o.Now())
			if o.Output.NoHeaders {
				fitted.Header = nil
			}
			if err := fitted.Print(out); err != nil {
				return err
			}
		} else {
			cmdutil.Say(o.Streams, "%s", table.Empty)
		}
		var notes strings.Builder
		for _, note := range explain.TrafficNotes(report, o.Query.Window) {
			o.Streams.ErrPainter().Paragraph(&notes, "", "  ", cmdutil.Clean(note))
		}
		_, err := io.WriteString(o.Streams.Err, notes.String())
		return err
	})
}

// judge fails if less succeeds than it has to. Where nothing was counted, nothing is shown to succeed.
func (o *Options) judge(report *traffic.Report) error {
	if o.FailBelow == 0 {
		return nil
	}
	counted, below := 0, []string{}
	for i := range report.Rows {
		row := &report.Rows[i]
		if row.Success == nil {
			continue
		}
		counted++
		if *row.Success < o.FailBelow {
			below = append(below, fmt.Sprintf("%s in %s: %.2f %%", row.To.Name, row.To.Cluster, *row.Success))
		}
	}
	switch {
	case counted == 0:
		cmdutil.Say(o.Streams, "Nothing was counted, so that nothing is known to succeed; send requests, or choose a longer --window.")
	case len(below) > 0:
		cmdutil.Say(o.Streams, "Less than %v %% succeed: %s", o.FailBelow, strings.Join(below[:min(len(below), 5)], "; "))
	default:
		return nil
	}
	return cmdutil.ErrFindings
}

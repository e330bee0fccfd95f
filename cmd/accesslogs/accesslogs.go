// Package accesslogs is the command `meshctl accesslogs`: requests that proxies logged.
package accesslogs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/accesslog"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	Now     func() time.Time
	Query   accesslog.Query
	// Watch goes on with the requests that come.
	Watch bool
	// MaxRPS is how many requests are printed each second at most with Watch.
	MaxRPS int

	// record is the only AccessLogRecord that notes are about, by its Identity; all if it is empty.
	record string
	// every is the time between two questions with Watch, and headed is set once a table has its header.
	every  time.Duration
	headed bool
}

const long = `Shows requests one by one, as proxies logged them: those that an AccessLogRecord
wants. Without any, nothing is logged. NAME is an AccessLogRecord, or the
workload whose proxy logged the request. A record of a registered cluster is
called NAME.NAMESPACE.CLUSTER.

FROM and TO are who called whom, as far as the proxy knew: the caller of a
request that it got by the ServiceAccount in the certificate, and what it called
itself by its service. STATUS is empty where nothing was answered; FLAGS are
Envoy's words for what went wrong, such as UF for no connection, NR for no
route, UT for a timeout. Times are UTC, by the clock of the proxy.

Proxies send their log to the agent of their cluster, which takes from each pod
only its own requests. That takes settings of Istio, and a cluster that is
reached through its agent: "meshctl help access-logs" has both.

Logs are lossy. They are in memory only: the last 200 requests of each workload,
since the meshctl serve that answers began to lead. What was lost is said on the
error stream. Values in queries of URLs, credentials, and headers that may have
secrets are never kept. Who may forward a port to meshctl serve sees all logs;
nobody else does.`

const example = `  # Show the last requests that were logged
  meshctl accesslogs

  # Follow those of reviews-v1 that failed
  meshctl accesslogs reviews-v1 --status '>=500' --watch

  # Show what an AccessLogRecord got of one caller, in full
  meshctl accesslogs books --from productpage -o json

  # Ask a meshctl serve that does not run in the management cluster
  meshctl accesslogs --server http://127.0.0.1:9091 --method POST --path /cart

  # Log the failures of a namespace
  meshctl create accesslogrecord books --workload-namespaces bookinfo \
    --filter 'status>=500' --apply`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now, every: time.Second}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     "accesslogs [NAME]",
		Aliases: []string{"accesslog"},
		// What other programs call it.
		SuggestFor: []string{"logs", "requests", "access-logs"},
		Short:      "Show requests that proxies logged",
		Long:       long,
		Example:    example,
		Args:       cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Query.Name = args[0]
			}
			if err := opts.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.Query.Cluster, "cluster", "", "show what proxies of this `cluster` logged")
	flags.StringVar(&opts.Query.Namespace, "in-namespace", "", "show what proxies of this `namespace` logged")
	flags.IntVar(&opts.Query.Limit, "limit", accesslog.Shown, "show at most the last `number` of requests")
	flags.BoolVarP(&opts.Watch, "watch", "w", false, "go on with the requests that come until interrupted")
	return cmd
}

// addFlags adds the flags of all commands that show requests.
func (o *Options) addFlags(cmd *cobra.Command) {
	o.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	o.Output.Prints(cmdutil.Form{Value: accesslog.Report{}})
	o.Output.AddHeadersFlag(cmd)
	o.Source.AddClusterFlags(cmd)
	o.Source.AddServerFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Query.From, "from", "", "show requests of this `caller`: a workload, or the ServiceAccount of one")
	flags.StringVar(&o.Query.To, "to", "", "show requests to this `service` or workload: NAME, NAME.NAMESPACE or NAME.NAMESPACE.CLUSTER")
	flags.StringVar(&o.Query.Status, "status", "", "show requests with this `status`: 503, 5xx, '>=500'")
	flags.StringVar(&o.Query.Method, "method", "", "show requests with this `method`")
	flags.StringVar(&o.Query.Path, "path", "", "show requests whose path begins with this `text`")
	flags.StringArrayVar(&o.Query.Headers, "header", nil, "show requests with this request header, as `NAME=VALUE`; may be repeated")
	flags.IntVar(&o.MaxRPS, "max-rps", 100, "print at most this `number` of requests each second while they come")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{"2xx", "3xx", "4xx", "5xx", ">=400", ">=500"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *Options) validate() error {
	if err := o.Query.Check(); err != nil {
		return cmdutil.FlagErrorf("--%w", err)
	}
	switch {
	case o.Query.Limit < 1 || o.Query.Limit > accesslog.MaxShown:
		return cmdutil.FlagErrorf("--limit %d: want a number from 1 to %d", o.Query.Limit, accesslog.MaxShown)
	case o.MaxRPS < 1 || o.MaxRPS > accesslog.MaxShown:
		return cmdutil.FlagErrorf("--max-rps %d: want a number from 1 to %d", o.MaxRPS, accesslog.MaxShown)
	}
	return nil
}

// run prints what there is, and with Watch what comes. A meshctl serve that begins to lead counts from 1 again.
func run(ctx context.Context, o *Options) error {
	for first := true; ; first = false {
		report, err := o.ask(ctx)
		if ctx.Err() != nil && !first {
			return nil
		}
		if err != nil {
			return err
		}
		if !first && report.Next < o.Query.After {
			o.Query.After = 0
			continue
		}
		if first || len(report.Entries) > 0 || report.Missed > 0 {
			if err := o.print(report, first); err != nil {
				return err
			}
		}
		if !o.Watch {
			return nil
		}
		// After 0 asks for all: with nothing yet, the next one is still the first.
		o.Query.After, o.Query.Limit = report.Next, max(int(float64(o.MaxRPS)*o.every.Seconds()), 1)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
	}
}

// ask gets the requests from meshctl serve.
func (o *Options) ask(ctx context.Context) (*accesslog.Report, error) {
	management := reading.Management{Server: o.Source.Server}
	if o.Source.Server == "" {
		var err error
		if management, err = o.Source.Management(); err != nil {
			return nil, err
		}
	}
	report, err := management.AccessLogs(ctx, &o.Query)
	if err == nil && o.record != "" {
		report.Records = slices.DeleteFunc(report.Records, func(r accesslog.RecordReport) bool { return r.Identity() != o.record })
		report.MoreRecords = 0
	}
	return report, err
}

// print prints a report. The header of a table comes once.
func (o *Options) print(report *accesslog.Report, first bool) error {
	if separator := o.Output.Separator(); !first && separator != "" && !o.Output.IsTable() {
		if _, err := io.WriteString(o.Streams.Out, separator); err != nil {
			return err
		}
	}
	return o.Output.Print(o.Streams.Out, report, func(out io.Writer) error {
		if table := explain.AccessLogs(report); len(table.Rows) > 0 {
			fitted := cmdutil.FitTable(o.Streams, o.Output.Format, table, o.Now())
			if o.Output.NoHeaders || o.headed {
				fitted.Header = nil
			}
			o.headed = true
			if err := fitted.Print(out); err != nil {
				return err
			}
		} else if first {
			cmdutil.Say(o.Streams, "%s", table.Empty)
		}
		var notes strings.Builder
		for _, note := range o.notes(report, first) {
			o.Streams.ErrPainter().Paragraph(&notes, "", "  ", cmdutil.Clean(note))
		}
		_, err := io.WriteString(o.Streams.Err, notes.String())
		return err
	})
}

// notes are about the whole at first, and then about what was left out.
func (o *Options) notes(report *accesslog.Report, first bool) []string {
	if first {
		return explain.AccessLogNotes(report)
	}
	if lost := uint64(report.More) + report.Missed; lost > 0 {
		return []string{fmt.Sprintf("… %d requests left out; --max-rps prints more", lost)}
	}
	return nil
}

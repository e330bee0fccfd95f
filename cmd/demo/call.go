package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
)

// callOptions of `demo call`.
type callOptions struct {
	headers []string
	method  string
	count   int
	callers int
	rate    int
	timeout time.Duration
	watch   bool
	verdict verdict
}

// verdict is what fails a call.
type verdict struct {
	// fail: any request that nobody served.
	fail bool
	// expect is the status that all answers must have; 0 takes any.
	expect int
}

// watchEvery is the time between two lines of `demo call --watch`, watchRate the
// requests per second if none are set.
const (
	watchEvery = time.Second
	watchRate  = 50
)

func newCmdCall(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "call WORKLOAD URL", "Send requests as a workload, and show who answers", `  # Send 200 requests from productpage to reviews
  meshctl demo call productpage-v1 http://reviews:9080/reviews/1 -n 200

  # Keep on, and see shares change while a policy is edited in another window
  meshctl demo call productpage-v1 http://reviews:9080/reviews/1 --watch

  # Fail a script if any request is not answered with 200
  meshctl demo call productpage-v1 reviews:9080 --expect 200

  # Send a header
  meshctl demo call productpage-v1 http://reviews:9080 --header 'end-user: jason'`, callRun, runF)
	cmd.Args = cmdutil.Args("WORKLOAD", "URL")
	cmd.Long = `Sends requests as a workload of the demo, through its proxy, and prints a table
by answering pod, status and latency.

WORKLOAD is the name of a Workload as "describe workload" takes it, or the
beginning of one. URL is HOST:PORT, with http://, grpc:// or
tcp:// before it and a path behind it as needed.

What becomes of the requests does not fail the command, unless --fail or
--expect is given.`
	c := &opts.call
	cmd.Flags().IntVarP(&c.count, "requests", "n", 100, "`number` of requests")
	cmd.Flags().IntVarP(&c.callers, "callers", "c", 10, "`number` of parallel callers, each with its own connection")
	cmd.Flags().IntVar(&c.rate, "rate", 0, fmt.Sprintf("limit of requests per second; 0 means none, and %d with --watch", watchRate))
	cmd.Flags().StringArrayVar(&c.headers, "header", nil, "header as `'NAME: VALUE'`; can be repeated")
	cmd.Flags().StringVar(&c.method, "method", http.MethodGet, "HTTP `method`")
	cmd.Flags().DurationVar(&c.timeout, "timeout", 30*time.Second, "time for each request")
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "send until interrupted, and print the shares each second")
	cmd.Flags().BoolVar(&c.verdict.fail, "fail", false, "fail if a request gets no answer, or one with an error")
	cmd.Flags().IntVar(&c.verdict.expect, "expect", 0, "fail if an answer has another `status`, such as 200 or 403")
	for _, flag := range []string{"fail", "expect"} {
		cmd.MarkFlagsMutuallyExclusive("watch", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("fail", "expect")
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFailure, Means: "the requests cannot be sent or, with --fail or --expect, some failed"})
	opts.Output.AddOnly(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{When: "with --watch, one for each second", Value: demo.Traffic{}})
	return cmd
}

func callRun(ctx context.Context, opts *Options) error {
	call, err := opts.call.requests(opts.args[1])
	if err != nil {
		return err
	}
	if opts.call.watch {
		return watchRun(ctx, opts, call)
	}
	var traffic demo.Traffic
	if err := demo.Send(ctx, opts.demo(), opts.args[0], call, func(t demo.Traffic) { traffic = t }); err != nil {
		return notFound(err)
	}
	interrupted := context.Cause(ctx)
	if interrupted != nil && traffic.Requests == 0 {
		return interrupted
	}
	err = opts.Output.Print(opts.Streams.Out, traffic, func(out io.Writer) error { return trafficTable(traffic).Print(out) })
	return cmp.Or(err, interrupted, opts.call.verdict.of(traffic))
}

// of says how many requests failed; nil if none did, or if nobody asked.
func (v verdict) of(t demo.Traffic) error {
	failed, wanted := 0, "an answer without an error"
	for _, a := range t.Answers {
		switch {
		case v.expect != 0 && a.Status != v.expect, v.fail && a.Failed():
			failed += a.Count
		}
	}
	if v.expect != 0 {
		wanted = fmt.Sprintf("status %d", v.expect)
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d requests did not get %s: the table shows what they got", failed, t.Requests, wanted)
}

// requests checks the flags.
func (c *callOptions) requests(target string) (app.Call, error) {
	if c.count < 1 || c.callers < 1 || c.rate < 0 || c.timeout <= 0 {
		return app.Call{}, cmdutil.FlagErrorf("--requests, --callers and --timeout must be positive, --rate must not be negative")
	}
	to, err := cmdutil.ParseTarget("URL", target)
	switch {
	case err != nil:
		return app.Call{}, err
	case to.Port == 0 && to.Scheme != "http":
		return app.Call{}, cmdutil.FlagErrorf("URL %q: it has no port; want http://HOST:PORT/PATH, HOST:PORT, grpc://HOST:PORT or tcp://HOST:PORT", target)
	case c.verdict.expect != 0 && (c.verdict.expect < 100 || c.verdict.expect > 599) && to.Scheme != "grpc":
		return app.Call{}, cmdutil.FlagErrorf("--expect %d is not a status of HTTP; want one from 100 to 599", c.verdict.expect)
	case c.verdict.expect != 0 && to.Scheme == "tcp":
		return app.Call{}, cmdutil.FlagErrorf("--expect: tcp has no status; use --fail")
	}
	if _, err := http.NewRequest(c.method, "http://host", nil); err != nil {
		return app.Call{}, cmdutil.FlagErrorf("--method %q is not an HTTP method", c.method)
	}
	headers := http.Header{}
	for _, h := range c.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return app.Call{}, cmdutil.FlagErrorf("--header %q: want 'NAME: VALUE'", h)
		}
		headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	call := app.Call{
		URL: to.String(), Method: c.method, Headers: headers, Count: c.count, Parallel: min(c.callers, c.count),
		Rate: c.rate, TimeoutMs: int(c.timeout.Milliseconds()),
	}
	if c.watch {
		call.Count, call.Parallel, call.EveryMs = 0, c.callers, int(watchEvery.Milliseconds())
		if call.Rate == 0 {
			call.Rate = watchRate
		}
	}
	return call, nil
}

// watchRun prints the shares of each interval until ctx ends.
func watchRun(ctx context.Context, opts *Options, call app.Call) error {
	var writeErr error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if opts.Output.Format == cmdutil.FormatTable {
		_, _ = fmt.Fprintln(opts.Streams.Err, "Sending requests; ctrl-c ends it.")
	}
	err := demo.Send(ctx, opts.demo(), opts.args[0], call, func(t demo.Traffic) {
		var err error
		switch opts.Output.Format {
		case cmdutil.FormatTable:
			_, err = fmt.Fprintf(opts.Streams.Out, "%s  %4d requests: %s\n", time.Now().Format(time.TimeOnly), t.Requests, shares(t))
		case cmdutil.FormatYAML:
			_, err = fmt.Fprintln(opts.Streams.Out, "---")
			err = cmp.Or(err, cmdutil.PrintYAML(opts.Streams.Out, t))
		default:
			err = json.NewEncoder(opts.Streams.Out).Encode(t)
		}
		if err != nil {
			writeErr = err
			stop()
		}
	})
	return errors.Join(notFound(err), writeErr)
}

// shares says which share of the requests each answer had.
func shares(t demo.Traffic) string {
	if t.Requests == 0 {
		return "no answer"
	}
	parts := make([]string, 0, len(t.Answers))
	for _, a := range t.Answers {
		parts = append(parts, fmt.Sprintf("%.0f %% %s", 100*float64(a.Count)/float64(t.Requests), answerText(a)))
	}
	return strings.Join(parts, ", ")
}

// answerText says who answered what.
func answerText(a demo.Answer) string {
	switch {
	case a.Workload == "" && a.Status == 0:
		return "no answer (" + a.Error + ")"
	case a.Workload == "":
		return fmt.Sprintf("%d from a proxy (%s)", a.Status, cmdutil.Clean(a.Error))
	case a.Status != http.StatusOK && a.Status != 0:
		return fmt.Sprintf("%d from %s %s", a.Status, a.Cluster, a.Workload)
	}
	return a.Cluster + " " + a.Workload
}

func trafficTable(t demo.Traffic) *cmdutil.Table {
	table := &cmdutil.Table{Header: []string{"CLUSTER", "WORKLOAD", "POD", "STATUS", "REQUESTS", "SHARE", "P50", "P99", "ERROR"}}
	for _, a := range t.Answers {
		status := ""
		if a.Status != 0 {
			status = strconv.Itoa(a.Status)
		}
		table.Add(a.Cluster, a.Workload, a.Pod, status, strconv.Itoa(a.Count),
			fmt.Sprintf("%.1f %%", 100*float64(a.Count)/float64(t.Requests)), fmt.Sprintf("%.1f ms", a.P50Ms), fmt.Sprintf("%.1f ms", a.P99Ms), a.Error)
	}
	return table
}

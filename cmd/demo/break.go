package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/proxies"
)

// breakOptions of `demo break`.
type breakOptions struct {
	fail          int
	slow          time.Duration
	kill, unready bool
}

func newCmdBreak(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "break WORKLOAD", "Break a workload, to see what policies do about it", `  # Let reviews-v3 answer 503, and see outlier detection and failover
  meshctl demo break reviews-v3 --fail

  # Let it answer after 5 seconds
  meshctl demo break reviews-v3 --slow=5s`, breakRun, runF)
	one := cmdutil.Args("WORKLOAD")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"fail", "slow"} {
			if len(args) == 2 && cmd.Flags().Changed(name) {
				return cmdutil.FlagErrorf("unexpected argument %q; the value of --%s follows an equals sign: --%s=%s", args[1], name, name, args[1])
			}
		}
		return one(cmd, args)
	}
	b := &opts.fault
	cmd.Flags().IntVar(&b.fail, "fail", 0, "answer each request with this HTTP `status` (503 if none is given)")
	cmd.Flags().Lookup("fail").NoOptDefVal = "503"
	cmd.Flags().DurationVar(&b.slow, "slow", 0, "answer after this `time` (2s if none is given)")
	cmd.Flags().Lookup("slow").NoOptDefVal = "2s"
	cmd.Flags().BoolVar(&b.kill, "kill", false, "kill its application and keep it down")
	cmd.Flags().BoolVar(&b.unready, "unready", false, "let its pods be not ready")
	cmd.MarkFlagsOneRequired("fail", "slow", "kill", "unready")
	return cmd
}

func newCmdRepair(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "repair [WORKLOAD]", "Repair what was broken", `  # Repair all workloads
  meshctl demo repair`, repairRun, runF)
	cmd.Args = cmdutil.Args("[WORKLOAD]")
	return cmd
}

func breakRun(ctx context.Context, opts *Options) error {
	b := opts.fault
	if b.fail != 0 && (b.fail < http.StatusBadRequest || b.fail > 599) {
		return cmdutil.FlagErrorf("--fail %d: want an HTTP status from 400 to 599", b.fail)
	}
	if b.slow < 0 {
		return cmdutil.FlagErrorf("--slow %s: want a positive time", b.slow)
	}
	fault := proxies.Fault{Status: b.fail, DelayMs: int(b.slow.Milliseconds()), Killed: b.kill, Unready: b.unready}
	if fault == (proxies.Fault{}) {
		return cmdutil.FlagErrorf("nothing to break: set --fail, --slow, --kill or --unready")
	}
	return setFault(ctx, opts, opts.args[0], fault, "broken")
}

func repairRun(ctx context.Context, opts *Options) error {
	workload := ""
	if len(opts.args) > 0 {
		workload = opts.args[0]
	}
	return setFault(ctx, opts, workload, proxies.Fault{}, "repaired")
}

func setFault(ctx context.Context, opts *Options, workload string, fault proxies.Fault, done string) error {
	names, err := demo.Break(ctx, opts.demo(), workload, fault)
	if err != nil {
		return notFound(err)
	}
	for _, name := range names {
		if _, err := fmt.Fprintf(opts.Streams.Out, "workload %s %s\n", name, done); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		_, err = fmt.Fprintln(opts.Streams.Err, "Nothing was broken.")
	}
	return err
}

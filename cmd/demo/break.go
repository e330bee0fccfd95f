package demo

import (
	"context"
	"errors"
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
	// cut and rate are about the relay.
	cut  bool
	rate int
}

// relayName stands for the way from an agent to meshctl serve, where a workload is named.
const relayName = "relay"

func newCmdBreak(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "break WORKLOAD|relay", "Break a workload or the relay, to see what comes of it", `  # Let reviews-v3 answer 503, and see outlier detection and failover
  meshctl demo break reviews-v3 --fail

  # Let it answer after 5 seconds
  meshctl demo break reviews-v3 --slow=5s

  # Cut the agent of cluster-2 off, in a demo with --relay
  meshctl demo break relay --cut`, breakRun, runF)
	one := cmdutil.Args("WORKLOAD|relay")
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
	cmd.Flags().BoolVar(&b.cut, "cut", false, "let no connection of the relay through")
	cmd.Flags().IntVar(&b.rate, "rate", 0, "let this many `bytes` through the relay a second in each direction")
	cmd.MarkFlagsOneRequired("fail", "slow", "kill", "unready", "cut", "rate")
	return cmd
}

func newCmdRepair(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "repair [WORKLOAD|relay]", "Repair what was broken", `  # Repair all workloads, and the relay
  meshctl demo repair`, repairRun, runF)
	cmd.Args = cmdutil.Args("[WORKLOAD|relay]")
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
	if opts.args[0] == relayName {
		return breakRelay(opts)
	}
	if b.cut || b.rate != 0 {
		return cmdutil.FlagErrorf("--cut and --rate are about the relay: meshctl demo break %s", relayName)
	}
	fault := proxies.Fault{Status: b.fail, DelayMs: int(b.slow.Milliseconds()), Killed: b.kill, Unready: b.unready}
	if fault == (proxies.Fault{}) {
		return cmdutil.FlagErrorf("nothing to break: set --fail, --slow, --kill or --unready")
	}
	_, err := setFault(ctx, opts, opts.args[0], fault, "broken")
	return err
}

// breakRelay cuts or slows the way from the agent to meshctl serve.
func breakRelay(opts *Options) error {
	b := opts.fault
	switch {
	case b.fail != 0 || b.slow != 0 || b.kill || b.unready:
		return cmdutil.FlagErrorf("--fail, --slow, --kill and --unready are about workloads; the relay has --cut and --rate")
	case b.rate < 0:
		return cmdutil.FlagErrorf("--rate %d: want a positive number", b.rate)
	case b.cut == (b.rate > 0):
		return cmdutil.FlagErrorf("set either --cut or --rate")
	}
	if _, err := demo.BreakRelay(opts.demo(), demo.RelayFault{Cut: b.cut, Rate: b.rate}); err != nil {
		return notFound(err)
	}
	_, err := fmt.Fprintln(opts.Streams.Out, "relay broken")
	return err
}

func repairRun(ctx context.Context, opts *Options) error {
	workload := ""
	if len(opts.args) > 0 {
		workload = opts.args[0]
	}
	repaired := false
	if workload == relayName || workload == "" {
		var err error
		repaired, err = demo.BreakRelay(opts.demo(), demo.RelayFault{})
		if err != nil && (workload == relayName || !errors.Is(err, demo.ErrNoRelay)) {
			return notFound(err)
		}
		if repaired {
			if _, err := fmt.Fprintln(opts.Streams.Out, "relay repaired"); err != nil {
				return err
			}
		}
	}
	if workload != relayName {
		some, err := setFault(ctx, opts, workload, proxies.Fault{}, "repaired")
		if err != nil {
			return err
		}
		repaired = repaired || some
	}
	if !repaired {
		_, err := fmt.Fprintln(opts.Streams.Err, "Nothing was broken.")
		return err
	}
	return nil
}

// setFault gives a workload a fault, or all of them, and says of which ones that is another than before. It reports whether there is one.
func setFault(ctx context.Context, opts *Options, workload string, fault proxies.Fault, done string) (changed bool, err error) {
	names, err := demo.Break(ctx, opts.demo(), workload, fault)
	if err != nil {
		return false, notFound(err)
	}
	for _, name := range names {
		if _, err := fmt.Fprintf(opts.Streams.Out, "workload %s %s\n", name, done); err != nil {
			return false, err
		}
	}
	return len(names) > 0, nil
}

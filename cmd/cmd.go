// Package cmd is the whole program: it parses the command line, calls the
// engine and prints the result. Each command has a package of its own.
package cmd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/help"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/engine/kube"
)

// Main runs the program on the process's own streams and returns its exit
// code. The first ctrl-c (or SIGTERM) asks the command to end; the second one kills.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// For clients that are not made of a configuration of the Factory.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	context.AfterFunc(ctx, stop)
	f := cmdutil.NewFactory(cmdutil.System())
	f.Demo.Find = func() (string, error) { return demo.Kubeconfig(ctx, demo.Options{}) }
	f.Demo.Server = func() string { return demo.Server(demo.Options{}) }
	return run(ctx, f, args)
}

// Run is the program as a function: what tests call. It knows no demo of this machine.
func Run(ctx context.Context, streams *cmdutil.Streams, args []string) int {
	return run(ctx, cmdutil.NewFactory(streams), args)
}

func run(ctx context.Context, f *cmdutil.Factory, args []string) int {
	f.Run = func(ctx context.Context, args []string) int { return run(ctx, f, args) }
	root := NewCmdRoot(f)
	root.SetArgs(help.Args(args))
	executed, err := root.ExecuteContextC(ctx)
	err = asFlagError(executed, err)
	if err != nil && ctx.Err() != nil {
		// Whatever broke, it broke because of the interruption.
		err = ctx.Err()
	}
	err = cmdutil.Failure(executed, err)
	report(f.Streams, executed, err)
	return cmdutil.ExitCode(err)
}

// exclusive is what cobra says of flags that exclude each other.
var exclusive = regexp.MustCompile(`^if any flags in the group .* \[(.*)\] were all set$`)

// asFlagError types the errors that cobra makes without a type of its own.
func asFlagError(executed *cobra.Command, err error) error {
	if err == nil || executed == nil {
		return err
	}
	if found := exclusive.FindStringSubmatch(err.Error()); found != nil {
		return cmdutil.FlagErrorf("--%s cannot be used together", strings.Join(strings.Fields(found[1]), " and --"))
	}
	for _, cobras := range []string{"unknown command ", "required flag(s) ", "at least one of the flags "} {
		if strings.HasPrefix(err.Error(), cobras) {
			return &cmdutil.FlagError{Err: err}
		}
	}
	return err
}

// report says on the error stream why the command failed.
func report(streams *cmdutil.Streams, executed *cobra.Command, err error) {
	if err == nil || cmdutil.IsSilent(err) {
		return
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(streams.Err, format, args...) }
	code := cmdutil.ExitCode(err)
	if code == cmdutil.ExitInterrupted {
		say("Interrupted\n")
		return
	}
	var b strings.Builder
	painter := streams.ErrPainter()
	painter.Lines(&b, painter.Severity("Error:")+" ", strings.TrimRight(cmdutil.CleanLines(kube.Text(err)), "\n"))
	say("%s", b.String())
	if code == cmdutil.ExitUsage {
		say("Run '%s --help' for usage\n", executed.CommandPath())
	}
}

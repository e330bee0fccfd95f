// Package demo is the command `meshctl demo`: real clusters on this machine,
// with meshctl at work in them.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/helper"
)

// Options of the subcommands.
type Options struct {
	Streams *cmdutil.Streams
	// Dir holds the demo; empty means the usual place.
	Dir     string
	Runtime string
	// OSM prepares what only tests use, too.
	OSM    bool
	Output cmdutil.OutputFlag
}

// demo is what package demo takes.
func (o *Options) demo() demo.Options {
	return demo.Options{
		Dir: o.Dir, Runtime: o.Runtime, Terminal: o.Streams.ErrTTY,
		Progress: cmdutil.NewProgress(o.Streams), Out: o.Streams.Out,
	}
}

const long = `Shows meshctl at work on this machine: two clusters, each with a real API server
and a real istiod, joined into one VirtualMesh, with a small application and
policies in force. No containers and no root are needed; the first "up" needs Go
and some ten minutes, in which it builds Kubernetes and Istio, later ones start
within a minute or so.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work on this machine: two clusters with Istio, joined",
		Long:  long,
		Example: `  meshctl demo up
  export KUBECONFIG=$(meshctl demo kubeconfig)
  meshctl describe destination reviews-bookinfo-cluster-1
  meshctl demo down`,
	}
	cmd.AddCommand(newCmdUp(f, runF), newCmdStatus(f, runF), newCmdKubeconfig(f, runF), newCmdDown(f, runF), newCmdPrepare(f, runF))
	return cmd
}

// newSub makes what the subcommands have in common.
func newSub(f *cmdutil.Factory, use, short string, run, runF func(context.Context, *Options) error) (*cobra.Command, *Options) {
	opts := &Options{Streams: f.Streams, Runtime: demo.RuntimeLocal}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Dir, "dir", "", "`folder` of the demo; demos in different folders run side by side (default: in your cache folder)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd, opts
}

func newCmdUp(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "up", "Start the demo, or say what is running", upRun, runF)
	cmd.Flags().StringVar(&opts.Runtime, "runtime", opts.Runtime, "`sort` of clusters: "+demo.RuntimeLocal+" runs them as processes")
	return cmd
}

func newCmdStatus(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "status", "Say what runs, and where its logs are", statusRun, runF)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	return cmd
}

func newCmdKubeconfig(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "kubeconfig", "Print the path of the demo's kubeconfig", kubeconfigRun, runF)
	return cmd
}

func newCmdDown(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "down", "End the demo and remove its folder", downRun, runF)
	return cmd
}

func newCmdPrepare(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "prepare", "Build Kubernetes and Istio now, so that up starts at once", prepareRun, runF)
	cmd.Flags().BoolVar(&opts.OSM, "osm", false, "build Open Service Mesh, too; the demo does without, tests of meshctl itself use it")
	return cmd
}

func upRun(ctx context.Context, opts *Options) error { return demo.Up(ctx, opts.demo()) }

func statusRun(ctx context.Context, opts *Options) error {
	report, err := demo.Status(ctx, opts.demo())
	if err != nil {
		return notFound(err)
	}
	if err := opts.Output.Print(opts.Streams.Out, report, func(out io.Writer) error { return report.Write(out) }); err != nil {
		return err
	}
	if !report.Healthy() {
		// The report has said what is wrong.
		return cmdutil.ErrSilent
	}
	return nil
}

func kubeconfigRun(ctx context.Context, opts *Options) error {
	path, err := demo.Kubeconfig(ctx, opts.demo())
	if err != nil {
		return notFound(err)
	}
	_, err = fmt.Fprintln(opts.Streams.Out, path)
	return err
}

func downRun(ctx context.Context, opts *Options) error {
	err := demo.Down(ctx, opts.demo())
	if errors.Is(err, demo.ErrNotRunning) {
		// It is down, which is what was asked for.
		_, err = fmt.Fprintln(opts.Streams.Err, "No demo is running here.")
	}
	return err
}

func prepareRun(ctx context.Context, opts *Options) error {
	if err := build(ctx, opts, "Building Kubernetes and Istio", helper.Build); err != nil || !opts.OSM {
		return err
	}
	return build(ctx, opts, "Building Open Service Mesh", helper.BuildOSM)
}

// build prints the path of a binary that is built now or was before.
func build(ctx context.Context, opts *Options, title string, binary func(context.Context, helper.Progress) (string, error)) error {
	progress := cmdutil.NewProgress(opts.Streams)
	every := 10 * time.Second
	if opts.Streams.ErrTTY {
		every = time.Second
	}
	progress.Start(title)
	path, err := binary(ctx, helper.Progress{Say: func(sentence string) { progress.Note("%s", sentence) }, Every: every})
	progress.End(err)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(opts.Streams.Out, path)
	return err
}

// notFound types the error that says that there is no demo.
func notFound(err error) error {
	if errors.Is(err, demo.ErrNotRunning) {
		return &cmdutil.NotFoundError{Err: err}
	}
	return err
}

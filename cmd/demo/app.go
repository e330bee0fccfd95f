package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/app"
)

// newCmdApp is the application in the pods of a demo.
func newCmdApp(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	cmd := opts.hidden("app", "Answer requests as the application in a pod of a demo",
		func(ctx context.Context, opts *Options) error { return app.Run(ctx, opts.app) }, runF)
	o := &opts.app
	flags := cmd.Flags()
	flags.StringVar(&o.Cluster, "cluster", "", "`name` of the cluster")
	flags.StringVar(&o.Namespace, "namespace", "", "`namespace` of the pod")
	flags.StringVar(&o.Workload, "workload", "", "`name` of the workload")
	flags.StringVar(&o.Pod, "pod", "", "`name` of the pod")
	flags.IntSliceVar(&o.HTTP, "http", nil, "`ports` for HTTP and gRPC")
	flags.IntSliceVar(&o.TCP, "tcp", nil, "`ports` for TCP")
	flags.StringVar(&o.Control, "control", "", "`path` of the socket where it is controlled")
	flags.IntVar(&o.Dial.Mark, "mark", 0, "`mark` of its packets")
	flags.IntVar(&o.Dial.DNS, "dns", 0, "`port` of this host where names are resolved")
	return cmd
}

// newCmdSend sends requests from inside a pod of a demo.
func newCmdSend(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	return opts.hidden("send", "Send the requests that standard input asks for, and print their outcomes", sendRun, runF)
}

func (o *Options) hidden(use, short string, run, runF func(context.Context, *Options) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cmdutil.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				run = runF
			}
			return run(cmd.Context(), o)
		},
	}
}

func sendRun(ctx context.Context, opts *Options) error {
	var call app.Call
	if err := json.NewDecoder(opts.Streams.In).Decode(&call); err != nil {
		return fmt.Errorf("standard input: %w; want a call as JSON", err)
	}
	out := json.NewEncoder(opts.Streams.Out)
	return app.Send(ctx, call, app.Dial{}, func(report app.Report) error { return out.Encode(report) })
}

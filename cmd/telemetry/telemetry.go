// Package telemetry is the command `meshctl telemetry`: how what proxies count comes in.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
)

// Options of meshctl telemetry enable and disable.
type Options struct {
	Streams *cmdutil.Streams
	Source  cmdutil.Source

	Cluster       string
	RemoteContext string
	Door          string
	URL, Secret   string
	MatchLabels   map[string]string
	DryRun        bool
	// Disable is the other command.
	Disable bool
}

const long = `Says through which door what the proxies of a cluster count comes in, which
"meshctl top" shows. It stands in spec.telemetry of the KubernetesCluster, which
an administrator of the management cluster writes.`

const enableLong = `Has meshctl serve take in what the proxies of a cluster count, through one door:

  scrape      meshctl serve reads each proxy by way of the API server, as by
              kubectl port-forward. Its account needs the right to create
              pods/portforward in the cluster, which reaches all ports of all
              pods: registration does not give it, and this command does.
  agent       The agent of a cluster that is reached through it reads the
              proxies at the addresses of their pods, and sends what they count.
              Istio's proxies serve that at port 15090 to everybody in the
              cluster, by plain HTTP and without anything else, so that it takes
              no right; NetworkPolicies have to let the agent in. A proxy whose
              settings name ENVOY_SECURE_METRICS_PORT (Istio 1.31) is read
              there, by mutual TLS, and in no other way. The annotation
              traffic.sidecar.istio.io/excludeInboundPorts of its pod has to
              name this port, too, or policies have to let the agent in.
  push        The proxies of a cluster that is reached through its agent send it
              what they count, by Envoy's metrics service: the mesh has to say
              so, and pods that run are restarted. Choose it where the agent
              cannot reach the proxies. What is needed is printed: a Service,
              settings of Istio, and whom to restart. Nothing of that is written.
              The agent knows a sender by the address of its pod and by the
              certificate of that pod's ServiceAccount before it reads anything,
              and takes from it what it says of itself. A proxy that sends, and
              gets no request, has no traffic; after 90 s without a message, or
              if its settings leave these statistics out, it has no data.
  prometheus  A Prometheus that has read the proxies is asked, by pod: its
              series need the labels pod and namespace. Restarts of containers
              are only seen if it also has envoy_server_uptime.

Without --door, it is prometheus if --prometheus-url is given, else agent for a
cluster that is reached through its agent, and scrape for others. These two are
also what counts where nothing was said.

The rights for scrape are written with the context of --remote-context. Without
it they are printed, for an administrator of the cluster to apply. A cluster
that is registered again has another account, and needs them again.

With --dry-run, the API servers check what would be written, and it is printed;
nothing changes.

--prometheus-secret names a Secret in the namespace of the management plane: its
key ca.crt has the certificates by which the server is known, its key token is a
bearer token. It is used with https only.`

const disableLong = `Has meshctl serve read nothing of the proxies of a cluster. With the context of
--remote-context, it also takes the right that "meshctl telemetry enable" gave.`

// doors are those that can be enabled.
var doors = []string{
	string(multiclusterv1alpha1.TelemetryDoorScrape), string(multiclusterv1alpha1.TelemetryDoorAgent), string(multiclusterv1alpha1.TelemetryDoorPush),
	string(multiclusterv1alpha1.TelemetryDoorPrometheus),
}

// NewCmd returns the command.
func NewCmd(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "telemetry",
		Short: "Choose how what proxies count comes in",
		Long:  long,
		Example: `  # Let meshctl serve read the proxies of cluster-2
  meshctl telemetry enable cluster-2 --remote-context cluster-2`,
	}
	cmd.AddCommand(newCmdEnable(f, nil), newCmdDisable(f, nil))
	return cmd
}

func newCmdEnable(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	cmd := newCmd(f, opts, runF, &cobra.Command{
		Use:   "enable CLUSTER",
		Short: "Take in what the proxies of a cluster count",
		Long:  enableLong,
		Example: `  # Print what would change
  meshctl telemetry enable cluster-2 --dry-run

  # Let meshctl serve read the proxies, and give it the right there
  meshctl telemetry enable cluster-2 --remote-context cluster-2

  # The same, if somebody else administrates the cluster
  meshctl telemetry enable cluster-2 > rights.yaml

  # Have the proxies send to the agent; print what the mesh needs for that
  meshctl telemetry enable cluster-2 --door push > push.yaml

  # Ask a Prometheus that has the proxies of several clusters
  meshctl telemetry enable cluster-2 --prometheus-url https://prometheus.example \
    --prometheus-secret prometheus --match-label cluster=cluster-2`,
	})
	flags := cmd.Flags()
	flags.StringVar(&opts.Door, "door", "", "`door`: "+strings.Join(doors, ", ")+" (default: what fits the cluster)")
	flags.StringVar(&opts.URL, "prometheus-url", "", "`URL` of a Prometheus, without /api/v1, as meshctl serve reaches it")
	flags.StringVar(&opts.Secret, "prometheus-secret", "", "`name` of a Secret with ca.crt and token for it, beside meshctl serve")
	flags.StringToStringVar(&opts.MatchLabels, "match-label", nil, "`LABEL=VALUE` that its series of this cluster have; may be repeated")
	flags.Lookup("match-label").DefValue = "" // not []
	_ = cmd.RegisterFlagCompletionFunc("door", cobra.FixedCompletions(doors, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newCmdDisable(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	return newCmd(f, &Options{Streams: f.Streams, Disable: true}, runF, &cobra.Command{
		Use:   "disable CLUSTER",
		Short: "Read nothing of the proxies of a cluster",
		Long:  disableLong,
		Example: `  # Read them no more, and take the right to
  meshctl telemetry disable cluster-2 --remote-context cluster-2`,
	})
}

func newCmd(f *cmdutil.Factory, opts *Options, runF func(context.Context, *Options) error, cmd *cobra.Command) *cobra.Command {
	opts.Source.Factory = f
	cmd.Args = cmdutil.Args("CLUSTER")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts.Cluster = args[0]
		if err := opts.validate(); err != nil {
			return err
		}
		if runF != nil {
			return runF(cmd.Context(), opts)
		}
		return run(cmd.Context(), opts)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return opts.Source.Clusters(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
	opts.Source.AddClusterFlags(cmd)
	cmd.Flags().StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the cluster, to write the rights there")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "print what would change, and change nothing")
	_ = cmd.RegisterFlagCompletionFunc("remote-context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := cmdutil.Contexts(opts.Source.Kube.Kubeconfig)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (o *Options) validate() error {
	if err := registration.CheckName(o.Cluster); err != nil {
		return &cmdutil.FlagError{Err: err}
	}
	const prometheus = string(multiclusterv1alpha1.TelemetryDoorPrometheus)
	if o.Door == "" && o.URL != "" {
		o.Door = prometheus
	}
	switch {
	case o.Door != "" && !slices.Contains(doors, o.Door):
		return cmdutil.FlagErrorf("--door %s: want one of %s", o.Door, strings.Join(doors, ", "))
	case o.Door == prometheus && o.URL == "":
		return cmdutil.FlagErrorf("--door prometheus needs --prometheus-url")
	case o.Door != prometheus && (o.URL != "" || o.Secret != "" || len(o.MatchLabels) > 0):
		return cmdutil.FlagErrorf("--prometheus-url, --prometheus-secret and --match-label go with --door prometheus")
	}
	return nil
}

// want is what the KubernetesCluster is to say.
func (o *Options) want() multiclusterv1alpha1.Telemetry {
	out := multiclusterv1alpha1.Telemetry{Door: multiclusterv1alpha1.TelemetryDoor(o.Door)}
	if o.Disable {
		out.Door = multiclusterv1alpha1.TelemetryDoorNone
	}
	if o.URL != "" {
		out.Prometheus = &multiclusterv1alpha1.PrometheusSource{Url: o.URL, SecretName: o.Secret}
		for name, value := range o.MatchLabels {
			if out.Prometheus.MatchLabels == nil {
				out.Prometheus.MatchLabels = map[string]multiclusterv1alpha1.MatchedLabel{}
			}
			out.Prometheus.MatchLabels[name] = multiclusterv1alpha1.MatchedLabel(value)
		}
	}
	return out
}

func run(ctx context.Context, o *Options) error {
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	var remote *rest.Config
	if o.RemoteContext != "" {
		if remote, err = o.Source.Factory.Config(o.Source.Kube.Kubeconfig, o.RemoteContext); err != nil {
			return fmt.Errorf("remote cluster: %w", err)
		}
	}
	report, err := registration.SetTelemetry(ctx, registration.TelemetryOptions{
		Name: o.Cluster, Want: o.want(), MgmtConfig: management.Config, MgmtContext: o.Source.Kube.Context, MgmtNamespace: o.Source.Namespace,
		RemoteConfig: remote, RemoteContext: o.RemoteContext, DryRun: o.DryRun,
	})
	var unreachable *registration.UnreachableError
	var unknown *registration.NotRegisteredError
	switch {
	case errors.As(err, &unreachable):
		return &cmdutil.UnreachableError{Err: err}
	case errors.As(err, &unknown):
		return &cmdutil.NotFoundError{Err: err}
	case err != nil:
		return err
	}
	return o.print(report)
}

// print says what was done, or would be; manifests for somebody else go to the output.
func (o *Options) print(report *registration.TelemetryReport) error {
	did := map[registration.Action]string{registration.Created: "Created", registration.Updated: "Updated", registration.Deleted: "Deleted"}
	if o.DryRun {
		did = map[registration.Action]string{registration.Created: "Would create", registration.Updated: "Would update", registration.Deleted: "Would delete"}
	}
	before := "not said"
	if report.Before != nil {
		before = string(report.Before.Door)
	}
	cmdutil.Say(o.Streams, "Cluster %s: door %s; before: %s.", report.Cluster, report.After.Door, before)
	for _, c := range report.Changes {
		name := c.Name
		if c.Namespace != "" {
			name = c.Namespace + "/" + name
		}
		if c.Action == registration.Unchanged {
			cmdutil.Say(o.Streams, "Unchanged: %s %s (%s).", c.Kind, name, c.Server)
			continue
		}
		cmdutil.Say(o.Streams, "%s %s %s (%s).", did[c.Action], c.Kind, name, c.Server)
	}
	if len(report.Rights) > 0 {
		cmdutil.Say(o.Streams, "meshctl serve needs this right in cluster %s; an administrator there applies it with kubectl apply -f, or give --remote-context:", report.Cluster)
	}
	var out strings.Builder
	if report.After.Door == multiclusterv1alpha1.TelemetryDoorPush {
		cmdutil.Say(o.Streams, "An administrator of cluster %s does this, in this order:", report.Cluster)
		for i, step := range pushSteps {
			cmdutil.Say(o.Streams, "  %d. %s", i+1, step)
		}
		out.WriteString(strings.ReplaceAll(pushPlan, "AGENT", report.Agent))
	}
	for _, manifest := range report.Rights {
		text, err := yaml.Marshal(manifest)
		if err != nil {
			return fmt.Errorf("the rights for %s: %w", report.Cluster, err)
		}
		out.WriteString("---\n" + string(text))
	}
	if o.DryRun {
		cmdutil.Say(o.Streams, "Nothing was changed.")
	}
	_, err := io.WriteString(o.Streams.Out, out.String())
	return err
}

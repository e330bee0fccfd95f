// Package install are the commands `meshctl install`, `upgrade` and `uninstall`: running the management
// plane in a cluster.
package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cluster"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// Options of the commands.
type Options struct {
	Streams *cmdutil.Streams
	Config  func() (*rest.Config, error)
	Output  cmdutil.OutputFlag
	Context string

	Install        registration.InstallOptions
	ServiceMonitor bool
	Relay          bool
	Webhook        WebhookFlags
	Replicas       int32
	DryRun         bool
	Wait           bool
	Timeout        time.Duration
}

const long = `Runs "meshctl serve" in the management cluster, with two replicas of which one
works and the other stands by.

The command creates the namespace, the custom resource types, a ServiceAccount
with the permissions that serve uses and no others, a Deployment that meets the
restricted Pod Security Standard, a PodDisruptionBudget, a NetworkPolicy that
lets only requests for metrics in, and a Service for these. With --relay, it
also creates the Service gloo-mesh-mgmt-server, whose port 9900 agents dial.
With --webhook, API servers ask serve about each policy that is written: kubectl
prints what it does to traffic. With --roles enforce, what no Role allows is
rejected, also while serve does not answer; see "meshctl help roles".

It first checks your permissions and what is there; if a check fails, nothing is
written. Installing again changes what differs. What no flag sets stays as it
was installed before.

With --dry-run, the command prints the manifests and does not need a cluster:
for GitOps, or to read them.`

const upgradeLong = `Brings what "meshctl install" installed to the version of this meshctl: first
the custom resource types, then the permissions, then the Deployment, whose pods
are replaced one after the other. What was set when meshctl was installed stays,
unless a flag sets it anew, and no object is deleted at any time, but how API
servers ask an admission webhook that a flag switches off.

An older meshctl refuses to go back where its types would drop what a newer one
has stored: it lists the fields.`

// WebhookFlags are those of the admission webhook.
type WebhookFlags struct {
	Enabled bool
	Roles   string
}

// NewCmd returns the command `meshctl install`; runF replaces its run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts, kube := newOptions(f)
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Run the management plane in a cluster",
		Long:  long,
		Example: `  # Install in the cluster of a context, and wait until it runs
  meshctl install --context cluster-1

  # Let agents of other clusters dial it, also by a name of your own
  meshctl install --context cluster-1 --relay --relay-host relay.example.com

  # Have kubectl say what a policy does, and say what Roles would reject
  meshctl install --context cluster-1 --webhook --roles warn

  # Use images of your own registry
  meshctl install --context cluster-1 --registry registry.example.com/mirror

  # Print the manifests, for GitOps
  meshctl install --dry-run -o yaml`,
		Args: cmdutil.NoArgs,
		RunE: opts.run(kube, f, runF),
	}
	opts.addFlags(cmd, kube)
	opts.Output.Prints(
		cmdutil.Form{When: "without --dry-run", Value: registration.Report{}},
		cmdutil.Form{When: "with --dry-run and -o json", Value: ManifestList{}},
		cmdutil.Form{When: "with --dry-run and -o yaml, a document for each object", Value: cmdutil.Manifest{}},
	)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "print the manifests, without reading or writing anything")
	return cmd
}

// NewUpgradeCmd returns the command `meshctl upgrade`; runF replaces its run in tests.
func NewUpgradeCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts, kube := newOptions(f)
	opts.Install.Upgrade = true
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade the management plane in a cluster",
		Long:  upgradeLong,
		Example: `  # Upgrade to the version of this meshctl, and wait until it runs
  meshctl upgrade --context cluster-1`,
		Args: cmdutil.NoArgs,
		RunE: opts.run(kube, f, runF),
	}
	opts.addFlags(cmd, kube)
	opts.Output.Prints(cmdutil.Form{Value: registration.Report{}})
	return cmd
}

func newOptions(f *cmdutil.Factory) (*Options, *cmdutil.KubeFlags) {
	return &Options{Streams: f.Streams, Install: registration.InstallOptions{Version: f.Version.Tag()}}, &cmdutil.KubeFlags{}
}

func (o *Options) addFlags(cmd *cobra.Command, kube *cmdutil.KubeFlags) {
	o.Output.AddOnly(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	kube.AddFlags(cmd)
	usual := registration.DefaultResources()
	flags := cmd.Flags()
	flags.StringVarP(&o.Install.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	flags.StringVar(&o.Install.Image, "image", "", "`image` of meshctl (default: the image of this version)")
	flags.StringVar(&o.Install.Registry, "registry", "", "`registry` that has "+registration.DefaultRepository+", with a path if it has one")
	flags.StringSliceVar(&o.Install.PullSecrets, "image-pull-secret", nil, "`Secret` in the namespace with which to pull the image; may be repeated")
	flags.Int32Var(&o.Replicas, "replicas", 0, fmt.Sprintf("`number` of replicas: one works, the others stand by (default: as installed before, else %d)", registration.DefaultReplicas))
	flags.StringVar(&o.Install.Resources.CPURequest, "cpu-request", "", "CPU that a replica requests (default: as installed before, else "+usual.CPURequest+")")
	flags.StringVar(&o.Install.Resources.MemoryRequest, "memory-request", "", "memory that a replica requests (default: as installed before, else "+usual.MemoryRequest+")")
	flags.StringVar(&o.Install.Resources.MemoryLimit, "memory-limit", "", "memory that a replica may use (default: as installed before, else "+usual.MemoryLimit+")")
	flags.BoolVar(&o.ServiceMonitor, "service-monitor", false, "create a ServiceMonitor for the Prometheus operator (default: as installed before)")
	flags.BoolVar(&o.Relay, "relay", false, "let agents of other clusters dial serve, see \"meshctl help relay\" (default: as installed before)")
	flags.StringVar(&o.Install.Relay.ServiceType, "relay-service-type", "", "`type` of the Service that agents dial: "+strings.Join(registration.RelayServiceTypes(), ", ")+" (default: as installed before, else "+registration.DefaultRelayServiceType+")")
	flags.StringSliceVar(&o.Install.Relay.Hosts, "relay-host", nil, "further DNS `name` by which agents know serve; may be repeated (default: as installed before)")
	flags.BoolVar(&o.Webhook.Enabled, "webhook", false, "have kubectl say what a policy does, see \"meshctl help roles\" (default: as installed before)")
	flags.StringVar(&o.Webhook.Roles, "roles", "", "what Roles do: "+strings.Join(webhook.Modes(), ", ")+" (default: as installed before, else off)")
	flags.StringVar(&o.Install.Webhook.FailurePolicy, "webhook-failure-policy", "", "with --roles enforce, whether writes fail while serve does not answer: `Fail` or Ignore (default: as installed before, else Fail)")
	_ = cmd.RegisterFlagCompletionFunc("roles", cobra.FixedCompletions(webhook.Modes(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("webhook-failure-policy", cobra.FixedCompletions(webhook.FailurePolicies(), cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&o.Wait, "wait", true, "wait until all replicas run")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait")
	cmd.MarkFlagsMutuallyExclusive("image", "registry")
}

func (o *Options) run(kube *cmdutil.KubeFlags, f *cmdutil.Factory, runF func(context.Context, *Options) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		o.Config = func() (*rest.Config, error) { return kube.Config(f) }
		o.Install.Context = kube.Context
		if cmd.Flags().Changed("service-monitor") {
			o.Install.ServiceMonitor = &o.ServiceMonitor
		}
		if cmd.Flags().Changed("relay") {
			o.Install.Relay.Enabled = &o.Relay
		}
		if cmd.Flags().Changed("webhook") {
			o.Install.Webhook.Enabled = &o.Webhook.Enabled
		}
		o.Install.Webhook.Roles = webhook.Mode(o.Webhook.Roles)
		if cmd.Flags().Changed("replicas") {
			if o.Replicas < 1 {
				return cmdutil.FlagErrorf("--replicas must be at least 1")
			}
			o.Install.Replicas = &o.Replicas
		}
		if o.Wait {
			o.Install.Wait = o.Timeout
		}
		if runF != nil {
			return runF(cmd.Context(), o)
		}
		if o.DryRun {
			return printManifests(o)
		}
		return installRun(cmd.Context(), o)
	}
}

// ManifestList is what --dry-run prints with -o json, as kubectl apply takes it.
type ManifestList struct {
	// APIVersion is v1.
	APIVersion string `json:"apiVersion"`
	// Kind is List.
	Kind string `json:"kind"`
	// Items are the objects, in the order in which they are written.
	Items []json.RawMessage `json:"items"`
}

// printManifests prints what would be written at first.
func printManifests(o *Options) error {
	manifests, err := registration.InstallManifests(o.Install)
	if err != nil {
		return invalid(err)
	}
	if o.Output.Format == cmdutil.FormatJSON {
		list := ManifestList{APIVersion: "v1", Kind: "List"}
		for _, manifest := range manifests {
			data, err := json.Marshal(manifest)
			if err != nil {
				return fmt.Errorf("print manifests: %w", err)
			}
			list.Items = append(list.Items, data)
		}
		return cmdutil.PrintJSON(o.Streams.Out, list)
	}
	for _, manifest := range manifests {
		if _, err := io.WriteString(o.Streams.Out, "---\n"); err != nil {
			return fmt.Errorf("print manifests: %w", err)
		}
		if err := cmdutil.PrintYAML(o.Streams.Out, manifest); err != nil {
			return err
		}
	}
	return nil
}

func installRun(ctx context.Context, o *Options) error {
	config, err := o.Config()
	if err != nil {
		return err
	}
	o.Install.Config = config
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Installing meshctl in namespace " + o.Install.Namespace + " of " + config.Host)
	o.Install.Progress = func(text string) { progress.Note("%s", text) }
	report, err := registration.Install(ctx, o.Install)
	progress.End(err)
	if len(report.Changes) > 0 {
		err = errors.Join(err, cluster.PrintReport(o.Streams, &o.Output, &report))
	}
	if err != nil {
		return invalid(err)
	}
	if report.Unchanged() {
		say(o.Streams, "Nothing changed: it is installed as asked for.")
		return nil
	}
	say(o.Streams, "Installed. Register clusters with `meshctl cluster register`, and see them with `meshctl cluster list`.")
	return nil
}

// invalid gives errors the types that become exit codes.
func invalid(err error) error {
	var (
		unreachable *registration.UnreachableError
		absent      *registration.NotInstalledError
	)
	switch {
	case errors.As(err, &unreachable):
		return &cmdutil.UnreachableError{Err: err}
	case errors.As(err, &absent):
		return &cmdutil.NotFoundError{Err: err}
	}
	return err
}

func say(s *cmdutil.Streams, format string, args ...any) { cmdutil.Say(s, format, args...) }

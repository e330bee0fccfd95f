package describe

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	Kind    snapshot.Kind
	// Name of the object; empty lists all.
	Name string
	// Search keeps the objects whose name contains one of these.
	Search []string
	// Now is the clock, for ages.
	Now func() time.Time
}

// kind is a subcommand.
type kind struct {
	kind    snapshot.Kind
	use     string
	aliases []string
	short   string
	example string
	// one and list are of the types that are printed with and without NAME.
	one, list any
}

func kinds() []kind {
	return []kind{
		{
			snapshot.KubernetesCluster, "cluster", []string{"clusters"},
			"A registered cluster: connection and contents",
			"cluster-1",
			explain.Cluster{}, []explain.ClusterItem{},
		},
		{
			snapshot.Mesh, "mesh", []string{"meshes"},
			"A mesh: version, trust, gateways, contents",
			"istiod-istio-system-cluster-1",
			explain.Mesh{}, []explain.MeshItem{},
		},
		{
			snapshot.Workload, "workload", []string{"workloads"},
			"A workload: identity, policies, and what it can call",
			"productpage-v1.bookinfo.cluster-1",
			explain.Workload{}, []explain.WorkloadItem{},
		},
		{
			snapshot.Destination, "destination", []string{"destinations", "traffictarget", "traffictargets", "tt"},
			"A service: policies, routes, callers, federation",
			"reviews.bookinfo.cluster-1",
			explain.Destination{}, []explain.DestinationItem{},
		},
		{
			snapshot.VirtualMesh, "virtualmesh", []string{"virtualmeshes", "vmesh", "vmeshes", "vm"},
			"A VirtualMesh: members, federation, trust, global access",
			"virtual-mesh",
			explain.VirtualMesh{}, []explain.VirtualMeshItem{},
		},
		{
			snapshot.VirtualDestination, "virtualdestination", []string{"virtualdestinations", "vdest"},
			"A VirtualDestination: its services, and their failover",
			"reviews-global",
			explain.VirtualDestination{}, []explain.VirtualDestinationItem{},
		},
		{
			snapshot.ServiceDependency, "servicedependency", []string{"servicedependencies", "sdep"},
			"A ServiceDependency: the workloads it limits, and how",
			"productpage-deps",
			explain.ServiceDependency{}, []explain.ServiceDependencyItem{},
		},
		{
			snapshot.TrafficPolicy, "trafficpolicy", []string{"trafficpolicies", "tp"},
			"A TrafficPolicy: where it applies, and what it sets there",
			"reviews-shift",
			explain.Policy{}, []explain.PolicyItem{},
		},
		{
			snapshot.AccessPolicy, "accesspolicy", []string{"accesspolicies", "ap"},
			"An AccessPolicy: where it applies and where not",
			"productpage-calls",
			explain.Policy{}, []explain.PolicyItem{},
		},
	}
}

const long = `Explains clusters, meshes, workloads, destinations and policies. The
information comes from the management cluster and all registered ones or, with
--dir, from a folder of manifests as for "meshctl translate".

From a cluster, states are those that the server wrote. If something else
follows from what is there now, both are shown, with the reason if it is known,
such as an edit that the server has not processed; and what is in force in the
clusters where that is not what should be. If a cluster cannot be read, the
first line says so. With --no-clusters, only the management cluster is read.

NAME is the name of the object, such as reviews-bookinfo-cluster-1, or that of
the Kubernetes object it represents: reviews, reviews.bookinfo or
reviews.bookinfo.cluster-1.

Without NAME, all objects of the kind are listed; -o json and -o yaml print a
summary and the issues of each one. If a terminal is too narrow for all
columns, the less important ones are left out; -o wide prints all of them.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe",
		// What other programs call it.
		SuggestFor: []string{"get", "list", "ls", "show"},
		Short:      "Explain clusters, meshes, workloads, destinations and policies",
		Long:       long,
		Example: `  # Show which policies apply to the service reviews, and who may call it
  meshctl describe destination reviews-bookinfo-cluster-1

  # List the services whose name contains "rev" as JSON
  meshctl describe destinations -s rev -o json

  # List the meshes in a folder of manifests
  meshctl describe mesh --dir ./manifests`,
	}
	for _, k := range kinds() {
		cmd.AddCommand(newCmdKind(f, k, runF))
	}
	cmd.ValidArgsFunction = completeAliases
	cmd.AddCommand(newCmdProblems(f, runF))
	return cmd
}

// completeAliases completes the other names of kinds, such as tp; cobra completes the names only.
func completeAliases(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, k := range kinds() {
		for _, alias := range k.aliases {
			if len(args) == 0 && typed != "" && strings.HasPrefix(alias, typed) {
				out = append(out, cobra.CompletionWithDesc(alias, k.short))
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func newCmdKind(f *cmdutil.Factory, k kind, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Kind: k.kind, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     k.use + " [NAME]",
		Aliases: k.aliases,
		Short:   k.short,
		Example: fmt.Sprintf(`  # Show one object
  meshctl describe %[1]s %[2]s

  # List all objects of this kind in a folder of manifests
  meshctl describe %[1]s --dir ./manifests`, k.use, k.example),
		Args: cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			if opts.Name != "" && len(opts.Search) > 0 {
				return cmdutil.FlagErrorf("NAME and --search cannot be used together")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return describeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return opts.Source.Names(cmd.Context(), opts.Kind), cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{When: "with NAME", Value: k.one}, cmdutil.Form{When: "without NAME", Value: k.list})
	opts.Source.AddFlags(cmd)
	opts.Source.AddClustersFlag(cmd)
	cmd.Flags().StringSliceVarP(&opts.Search, "search", "s", nil, "list only objects whose name contains this `text`; may be repeated")
	return cmd
}

func describeRun(ctx context.Context, opts *Options) error {
	index, err := opts.ask(ctx)
	if err != nil {
		return err
	}
	if opts.Name == "" {
		return list(opts, index)
	}
	ref, err := cmdutil.Pick(index, opts.Kind, opts.Name)
	if err != nil {
		return err
	}
	answer := index.Describe(ref)
	if vm, ok := answer.(*explain.VirtualMesh); ok {
		if vm.Modes, err = explain.FederationSizes(index, ref, engine.Translate); err != nil {
			return err
		}
	}
	if f := opts.Output.Format; f == cmdutil.FormatJSON || f == cmdutil.FormatYAML {
		sayNotRead(opts, index)
	}
	return opts.Output.Print(opts.Streams.Out, answer, func(out io.Writer) error {
		page := answer.Page()
		page.NotRead = index.NotRead()
		return cmdutil.PrintPage(out, opts.Output.Painter(opts.Streams), page)
	})
}

// ask reads what the flags name and indexes it for questions.
func (o *Options) ask(ctx context.Context) (*explain.Index, error) {
	// Files that were ignored do not matter here; translate reports them.
	reading, err := o.Source.ReadInForce(ctx, o.Streams)
	if err != nil {
		return nil, err
	}
	return reading.Index(nil), nil
}

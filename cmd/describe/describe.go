package describe

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/check"
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
	// List says which objects are listed, and how.
	List ListOptions
	// Proxies asks the control planes how many proxies have what follows from the object.
	Proxies bool
	// Watch goes on, and prints what has changed.
	Watch bool
	// Now is the clock, for ages.
	Now func() time.Time

	// pause is the least time between two readings with Watch.
	pause time.Duration
}

// kind is a subcommand.
type kind struct {
	// kind is that of the objects; NoKind means all policies.
	kind    snapshot.Kind
	use     string
	aliases []string
	short   string
	example string
	// one and list are of the types that are printed with and without NAME.
	one, list any
}

// inProxies reports whether descriptions say how many proxies have what follows from an object.
func (k *kind) inProxies() bool {
	return k.kind == snapshot.TrafficPolicy || k.kind == snapshot.AccessPolicy || k.kind == snapshot.Destination
}

// isPolicy reports whether the objects are policies, which users write in namespaces of their own.
func (k *kind) isPolicy() bool {
	return k.kind == snapshot.NoKind || k.kind == snapshot.Role || slices.Contains(explain.PolicyKinds(), k.kind)
}

// forms are what is printed.
func (k *kind) forms() []cmdutil.Form {
	list := cmdutil.Form{When: "without NAME", Value: k.list}
	if k.kind != snapshot.NoKind {
		return []cmdutil.Form{{When: "with NAME", Value: k.one}, list}
	}
	return []cmdutil.Form{
		{When: "with NAME of a TrafficPolicy or AccessPolicy", Value: k.one},
		{When: "with NAME of a VirtualDestination", Value: explain.VirtualDestination{}},
		{When: "with NAME of a ServiceDependency", Value: explain.ServiceDependency{}},
		list,
	}
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
			snapshot.Role, "role", []string{"roles"},
			"A Role: what it lets somebody write, and who has it",
			"bookinfo-team",
			explain.Role{}, []explain.RoleItem{},
		},
		{
			snapshot.TrafficPolicy, "trafficpolicy", []string{"trafficpolicies", "tp"},
			"A TrafficPolicy: where it applies, and what it sets there",
			"reviews-shift",
			explain.Policy{}, []explain.PolicyItem{},
		},
		{
			snapshot.AccessPolicy, "accesspolicy", []string{"accesspolicies", "ap", "map"},
			"An AccessPolicy: where it applies and where not",
			"productpage-calls",
			explain.Policy{}, []explain.PolicyItem{},
		},
		{
			snapshot.NoKind, "policies", []string{"policy"},
			"Policies of all kinds together; NAME finds its kind",
			"reviews-shift",
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

What proxies have counted in the last 15 minutes is shown beside what policies
ask for: the shares of a shift, timeouts and retries, who is refused, where the
requests of a VirtualDestination went. It comes from the meshctl serve that
leads, as for "meshctl top"; where it cannot be had, a line says why. With a
folder, it is asked for only with --server.

NAME is the name of the object, such as reviews-bookinfo-cluster-1, or that of
the Kubernetes object it represents: reviews, reviews.bookinfo or
reviews.bookinfo.cluster-1.

Without NAME, all objects of the kind are listed; -o json and -o yaml print a
summary and the issues of each one. If a terminal is too narrow for all
columns, the less important ones are left out; -o wide prints all of them.

The other formats of kubectl take what -o json prints: -o name, and jsonpath=,
custom-columns= and go-template=, or the same with -file= and the path of a
file. The objects of a list are .items: -o jsonpath='{.items[*].ref.name}'. With
--watch, a list goes on with the objects that change, and one object is printed
again when it changes; --dir reads the folder again.

Policies are those of all namespaces unless -n chooses one; there, the namespace
of the management plane is --mgmt-namespace.`

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
  meshctl describe mesh --dir ./manifests

  # Follow all policies line by line, as in a pipe or with a screen reader
  meshctl describe policies --watch

  # Print the policies that are not in force everywhere, and why
  meshctl describe policies -o custom-columns=NAME:.ref.name,STATE:.state,WHY:.issues[*].code`,
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
	opts := &Options{Streams: f.Streams, Kind: k.kind, Now: f.Now, pause: cmdutil.FollowPause}
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
			if opts.Name != "" {
				if err := onlyOfLists(cmd); err != nil {
					return err
				}
			} else if opts.Proxies {
				return cmdutil.FlagErrorf("--proxies goes with NAME: it asks about one object")
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
			kinds := []snapshot.Kind{opts.Kind}
			if opts.Kind == snapshot.NoKind {
				kinds = explain.PolicyKinds()
			}
			return opts.Source.Names(cmd.Context(), kinds...), cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(k.forms()...)
	opts.addSourceFlags(cmd, &k)
	opts.Source.AddClustersFlag(cmd)
	opts.Source.AddServerFlag(cmd)
	opts.List.addFlags(cmd, &k)
	opts.Output.AddHeadersFlag(cmd)
	cmdutil.AddWatchFlag(cmd, &opts.Watch)
	if k.inProxies() {
		cmd.Flags().BoolVar(&opts.Proxies, "proxies", false, "ask the control planes how many proxies have what follows from it")
		for _, other := range []string{"dir", "snapshot", "watch"} {
			cmd.MarkFlagsMutuallyExclusive("proxies", other)
		}
	}
	cmd.MarkFlagsMutuallyExclusive("watch", "snapshot")
	cmd.MarkFlagsMutuallyExclusive("watch", "server") // numbers change always
	return cmd
}

func describeRun(ctx context.Context, opts *Options) error {
	if opts.Watch {
		return watch(ctx, opts)
	}
	index, err := opts.ask(ctx)
	if err != nil {
		return err
	}
	if opts.Name == "" {
		return list(opts, index)
	}
	answer, err := opts.describe(index)
	if err != nil {
		return err
	}
	if opts.Proxies {
		if err := opts.askProxies(ctx, index, answer); err != nil {
			return err
		}
	}
	return opts.printOne(index, answer)
}

// askProxies adds to an answer what the control planes say of their proxies.
func (o *Options) askProxies(ctx context.Context, index *explain.Index, answer explain.Description) error {
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Asking the control planes")
	explain.AskSyncs(index, answer, check.NewProxies(ctx, management.Detours, index.Input().Management.KubernetesClusters, proxyTimeout))
	progress.End(ctx.Err())
	return ctx.Err()
}

// proxyTimeout bounds each request for a control plane.
const proxyTimeout = 20 * time.Second

// describe answers the question about one object.
func (o *Options) describe(index *explain.Index) (explain.Description, error) {
	ref, err := o.pick(index)
	if err != nil {
		return nil, err
	}
	answer := index.Describe(ref)
	if vm, ok := answer.(*explain.VirtualMesh); ok {
		if vm.Modes, err = explain.FederationSizes(index, ref, engine.Translate); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// pick finds the object that the name means.
func (o *Options) pick(index *explain.Index) (snapshot.Ref, error) {
	if o.Kind != snapshot.NoKind && o.List.Namespace == "" {
		return cmdutil.Pick(index, o.Kind, o.Name)
	}
	kinds, about, word := explain.PolicyKinds(), "policy", "policies"
	if o.Kind != snapshot.NoKind {
		kinds, about = []snapshot.Kind{o.Kind}, strings.ToLower(o.Kind.String())
		word = about
	}
	return cmdutil.PickPolicy(index, kinds, about, o.Name, o.List.Namespace, "list all with: meshctl describe "+word)
}

// printOne prints the answer about one object.
func (o *Options) printOne(index *explain.Index, answer explain.Description) error {
	if !o.Output.IsTable() { // of text, it is the first line
		sayNotRead(o, index)
	}
	return o.Output.Print(o.Streams.Out, answer, func(out io.Writer) error {
		page := answer.Page()
		page.NotRead = index.NotRead()
		if err := cmdutil.PrintPage(out, o.Output.Painter(o.Streams), page); err != nil {
			return err
		}
		cmdutil.SayExplained(o.Streams, cmdutil.CodesOf(page.Issues))
		return nil
	})
}

// ask reads what the flags name and indexes it for questions.
func (o *Options) ask(ctx context.Context) (*explain.Index, error) {
	// Numbers change always: a list that is watched would be printed again each time.
	evidence := func() *explain.Evidence { return nil }
	if !o.Watch {
		evidence = o.Source.Evidence(ctx)
	}
	// Files that were ignored do not matter here; translate reports them.
	reading, err := o.Source.ReadInForce(ctx, o.Streams)
	if err != nil {
		return nil, err
	}
	reading.Evidence = evidence()
	return reading.Index(nil), nil
}

// Package describe is the command `meshctl describe`: what is this mesh, who
// shifts the traffic of this service, who may call it.
package describe

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/load"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  load.Source
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
}

func kinds() []kind {
	return []kind{
		{
			snapshot.KubernetesCluster, "cluster", []string{"clusters"},
			"A registered cluster: whether it is read and written, what is in it",
			"cluster-1",
		},
		{
			snapshot.Mesh, "mesh", []string{"meshes"},
			"A mesh: version, trust, gateways, what is in it",
			"istiod-istio-system-cluster-1",
		},
		{
			snapshot.Workload, "workload", []string{"workloads"},
			"A workload: its identity, the policies about it, what it can call",
			"productpage-v1.bookinfo.cluster-1",
		},
		{
			snapshot.Destination, "destination", []string{"destinations", "traffictarget", "traffictargets", "tt"},
			"A service: who shifts its traffic, who may call it, who sees it",
			"reviews.bookinfo.cluster-1",
		},
		{
			snapshot.VirtualMesh, "virtualmesh", []string{"virtualmeshes", "vmesh", "vmeshes", "vm"},
			"A VirtualMesh: its members, federation, trust, global access",
			"virtual-mesh",
		},
		{
			snapshot.VirtualDestination, "virtualdestination", []string{"virtualdestinations", "vdest"},
			"A VirtualDestination: who stands behind it, and who takes over",
			"reviews-global",
		},
		{
			snapshot.ServiceDependency, "servicedependency", []string{"servicedependencies", "sdep"},
			"A ServiceDependency: which workloads it limits, and to what",
			"productpage-deps",
		},
		{
			snapshot.TrafficPolicy, "trafficpolicy", []string{"trafficpolicies", "tp"},
			"A TrafficPolicy: where it applies, what it sets and lost there",
			"reviews-shift",
		},
		{
			snapshot.AccessPolicy, "accesspolicy", []string{"accesspolicies", "ap"},
			"An AccessPolicy: where it applies, and where not",
			"productpage-calls",
		},
	}
}

const long = `Answers questions about the meshes: from a cluster, or with --dir from a folder
of manifests as for "meshctl translate".

A name is that of the object, such as reviews-bookinfo-cluster-1, or that of
what it was made for: reviews, reviews.bookinfo, reviews.bookinfo.cluster-1.
Without a name, all are listed: -o json and -o yaml have a summary of each, and
its issues. On a terminal, columns that matter less are left out where there is
no room for them; -o wide prints all, and so does a pipe.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Explain a cluster, mesh, workload, policy, virtual mesh or destination",
		Long:  long,
		Example: `  # who shifts the traffic of reviews, and who may call it?
  meshctl describe destination reviews-bookinfo-cluster-1

  # all services whose name contains "rev", as data
  meshctl describe destinations -s rev -o json

  # the same questions to files
  meshctl describe mesh --dir ./manifests`,
	}
	for _, k := range kinds() {
		cmd.AddCommand(newCmdKind(f, k, runF))
	}
	cmd.AddCommand(newCmdProblems(f, runF))
	return cmd
}

func newCmdKind(f *cmdutil.Factory, k kind, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Kind: k.kind, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     k.use + " [NAME]",
		Aliases: k.aliases,
		Short:   k.short,
		Example: "  meshctl describe " + k.use + " " + k.example + "\n  meshctl describe " + k.use + " --dir ./manifests",
		Args:    cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			if opts.Name != "" && len(opts.Search) > 0 {
				return cmdutil.FlagErrorf("give a NAME or --search, not both")
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
			return completeNames(cmd.Context(), opts), cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Source.AddFlags(cmd)
	cmd.Flags().StringSliceVarP(&opts.Search, "search", "s", nil, "only objects whose name contains this `text`; of several, one is enough")
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
	ref, err := pick(index, opts.Kind, opts.Name)
	if err != nil {
		return err
	}
	answer := index.Describe(ref)
	return opts.Output.Print(opts.Streams.Out, answer, func(out io.Writer) error { return printPage(out, answer.Page()) })
}

// pick finds the one object that a name means.
func pick(index *explain.Index, kind snapshot.Kind, name string) (snapshot.Ref, error) {
	found := index.Find(kind, name)
	if len(found) == 1 {
		return found[0], nil
	}
	names := make([]string, 0, len(found))
	for _, ref := range found {
		names = append(names, ref.Name)
	}
	if len(found) > 1 {
		return snapshot.Ref{}, cmdutil.FlagErrorf("%s could be several; say which: %s", name, strings.Join(names, ", "))
	}
	for _, ref := range index.Refs(kind) {
		names = append(names, ref.Name)
	}
	hint := "there is none at all"
	if similar := closest(name, names); len(similar) > 0 {
		hint = "did you mean " + strings.Join(similar, " or ") + "?"
	} else if len(names) > 0 {
		hint = "see all with: meshctl describe " + strings.ToLower(kind.String())
	}
	return snapshot.Ref{}, cmdutil.NotFoundErrorf("no %s is called %s; %s", strings.ToLower(kind.String()), name, hint)
}

// closest lists up to three names that contain, or are contained in, the one asked for.
func closest(name string, names []string) []string {
	var similar []string
	for _, n := range names {
		if len(similar) < 3 && (strings.Contains(n, name) || strings.HasPrefix(name, n)) {
			similar = append(similar, n)
		}
	}
	return similar
}

// ask reads what the flags name and indexes it for questions.
func (o *Options) ask(ctx context.Context) (*explain.Index, error) {
	// What was left out of a folder does not bear on the answers; translate reports it.
	reading, err := o.Source.Read(ctx)
	if err != nil {
		return nil, err
	}
	return reading.Index(nil), nil
}

// completionTimeout is how long a shell may wait for names.
const completionTimeout = 2 * time.Second

// completeNames lists names for the shell; a mistake or a slow cluster gives none.
func completeNames(ctx context.Context, opts *Options) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	index, err := opts.ask(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, ref := range index.Refs(opts.Kind) {
		names = append(names, ref.Name)
	}
	return names
}

// Package translate is the command `meshctl translate`: the engine on files.
package translate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	// Dir is the folder to read.
	Dir string
	// To is a folder to write to instead of printing.
	To string
	// Cluster limits the objects to one cluster; "management" is the management plane.
	Cluster string
	// Statuses are printed too.
	Statuses bool
	// DisallowIntersecting refuses policies that users' own objects intersect with.
	DisallowIntersecting bool
	FailOn               failOn
}

const long = `Translates manifests in files as "meshctl serve" translates those in clusters,
and prints the objects that it would write. No cluster is read or written.

The folder DIR contains a folder for each cluster, named after it, and a folder
named management for the policies and VirtualMeshes:

  DIR/management/*.yaml   TrafficPolicies, AccessPolicies, VirtualMeshes, ...
  DIR/cluster-1/*.yaml    Deployments, Services, Pods, ConfigMaps of Istio, ...

You can use the output of "kubectl get -o yaml" as it is. To declare that a
cluster does not answer at present, put this document in its folder:

  apiVersion: offline/v1
  kind: Cluster
  spec: {sync: stale, domain: cluster.local}

With --snapshot, it reads a file of "meshctl debug snapshot" instead.

Issues are written to standard error, the worst first.`

const example = `  # Print the objects that would be written, and the issues
  meshctl translate --dir ./manifests

  # Compare two versions of the manifests
  meshctl translate --dir ./before --to /tmp/before
  meshctl translate --dir ./after --to /tmp/after
  diff -r /tmp/before /tmp/after`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, FailOn: failOnError}
	cmd := &cobra.Command{
		Use:     "translate --dir DIR",
		Short:   "Print what meshctl would write for manifests in files",
		Long:    long,
		Example: example,
		Args:    cmdutil.Args("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmdutil.FolderArgument(args, &opts.Dir); err != nil {
				return err
			}
			if opts.Dir == "" {
				return cmdutil.FlagErrorf("%s: either --dir or --snapshot is required; usage: %s", cmd.CommandPath(), cmd.UseLine())
			}
			if opts.To != "" && cmd.Flags().Changed("output") {
				return cmdutil.FlagErrorf("--to and --output cannot be used together: --to writes YAML files")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return translateRun(opts)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	opts.Output.AddOnly(cmd, cmdutil.FormatYAML, cmdutil.FormatJSON)
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "there is an issue of the severity of --fail-on, or a worse one"})
	opts.Output.Prints(
		cmdutil.Form{When: "with -o json", Value: Answer{}},
		cmdutil.Form{When: "with -o yaml, a document for each object and status", Value: cmdutil.Manifest{}},
	)
	cmdutil.AddFileFlags(cmd, &opts.Dir)
	cmd.Flags().StringVar(&opts.To, "to", "", "write the objects to this `folder`, with a folder for each cluster, instead of printing them")
	cmd.Flags().StringVar(&opts.Cluster, "cluster", "", "print only the objects of this `cluster`; management selects the management plane")
	cmd.Flags().BoolVar(&opts.Statuses, "statuses", false, "also print the statuses of objects in the management plane")
	cmd.Flags().BoolVar(&opts.DisallowIntersecting, "disallow-intersecting-config", false, "reject TrafficPolicies and AccessPolicies that intersect with hand-written objects in the namespace of the service or the root namespace of the mesh, instead of warning")
	cmd.Flags().Var(&opts.FailOn, "fail-on", "exit with code 5 if there is an issue of this `severity` or worse: error, warning, never")
	_ = cmd.MarkFlagDirname("to")
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		source := &cmdutil.Source{Dir: opts.Dir, Factory: f}
		if len(args) > 0 {
			source.Dir = args[0]
		}
		if source.Dir == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return append(source.Clusters(cmd.Context()), offline.ManagementFolder), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"error", "warning", "never"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func translateRun(opts *Options) error {
	reading, err := cmdutil.ReadFolder(opts.Streams, opts.Dir)
	if err != nil {
		return err
	}
	input := reading.Input
	input.RefuseIntersecting = input.RefuseIntersecting || opts.DisallowIntersecting
	output := engine.Translate(input).Output
	issues := append(reading.Issues, output.Issues...)
	slices.SortFunc(issues, snapshot.Issue.Compare)

	objects, err := choose(output, opts.Cluster)
	if err != nil {
		return err
	}
	var statuses []*snapshot.Status
	if opts.Statuses {
		statuses = output.Statuses.Slice()
	}
	switch {
	case opts.To != "":
		err = writeFolder(opts.To, objects, statuses)
	case opts.Output.Format == cmdutil.FormatJSON:
		err = printJSON(opts.Streams.Out, objects, statuses, issues)
	default:
		err = printYAML(opts.Streams.Out, objects, statuses)
	}
	if err != nil {
		return err
	}
	if err := tell(opts.Streams, len(objects), output, issues); err != nil {
		return err
	}
	if opts.FailOn.fails(issues) {
		return cmdutil.ErrFindings
	}
	return nil
}

// choose lists the objects cluster by cluster, each in the order of applying;
// the management plane comes first.
func choose(output *snapshot.Output, cluster string) ([]*snapshot.Object, error) {
	byCluster := output.ByCluster()
	known := append([]string{""}, output.Clusters...)
	if cluster != "" {
		name := strings.TrimSuffix(cluster, offline.ManagementFolder)
		if !slices.Contains(known, name) {
			known[0] = offline.ManagementFolder
			return nil, cmdutil.NotFoundErrorf("cluster %s does not exist; choose one of: %s", cluster, strings.Join(known, ", "))
		}
		known = []string{name}
	}
	var objects []*snapshot.Object
	for _, name := range known {
		objects = append(objects, byCluster[name]...)
	}
	return objects, nil
}

// tell writes the issues and a summary to the error stream.
func tell(s *cmdutil.Streams, objects int, output *snapshot.Output, issues []snapshot.Issue) error {
	if err := cmdutil.PrintIssues(s.Err, s.ErrPainter(), "", issues); err != nil {
		return err
	}
	cmdutil.SayExplained(s, cmdutil.CodesOf(issues))
	frozen := ""
	if len(output.Frozen) > 0 {
		frozen = "; unreachable: " + strings.Join(output.Frozen, ", ")
	}
	_, err := fmt.Fprintf(s.Err, "%s, %s, %s%s\n", snapshot.Count(objects, "object"), snapshot.Count(len(output.Clusters), "cluster"), explain.Count(issues), frozen)
	return err
}

package load

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Source is what the flags of a command name: a folder, or a management cluster.
type Source struct {
	// Dir is a folder as for translate; empty asks the cluster.
	Dir       string
	Kube      cmdutil.KubeFlags
	Namespace string
	// AllClusters also reads the registered clusters; see ReadInForce.
	AllClusters bool
	Factory     *cmdutil.Factory
}

// AddFlags adds the source's flags to cmd.
func (s *Source) AddFlags(cmd *cobra.Command) {
	AddFileFlags(cmd, &s.Dir)
	s.AddClusterFlags(cmd)
	for _, cluster := range []string{"kubeconfig", "context", "namespace"} {
		cmd.MarkFlagsMutuallyExclusive("dir", cluster)
		cmd.MarkFlagsMutuallyExclusive("snapshot", cluster)
	}
}

// AddFileFlags adds the flags for a folder and for an archive, which Folder reads, too.
func AddFileFlags(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "dir", "", "read the manifests in this `folder` instead of a cluster")
	cmd.Flags().StringVar(path, "snapshot", "", "read this `file`, which \"meshctl debug snapshot\" recorded, instead of a cluster")
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagFilename("snapshot", "zip")
	cmd.MarkFlagsMutuallyExclusive("dir", "snapshot")
}

// FolderArgument takes an argument for --dir, where commands took it before they had the flag.
func FolderArgument(args []string, path *string) error {
	switch {
	case len(args) == 0:
		return nil
	case *path != "":
		return cmdutil.FlagErrorf("the argument %s is a folder, and %s is given as well; leave one of them out", args[0], *path)
	}
	*path = args[0]
	return nil
}

// AddClusterFlags adds the flags that name a management cluster.
func (s *Source) AddClusterFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	s.Kube.AddFlags(cmd)
}

// Read reads the folder, or what the management cluster has stored.
func (s *Source) Read(ctx context.Context, streams *cmdutil.Streams) (*Reading, error) {
	if s.Dir != "" {
		return FolderWith(streams, s.Dir)
	}
	progress := cmdutil.NewProgress(streams)
	progress.StartLate("Reading the management cluster", silence)
	reading, err := s.read(ctx, func(m Management) (*Reading, error) { return m.Stored(ctx) })
	progress.End(err)
	if err != nil {
		return nil, err
	}
	reading.say(streams)
	return reading, nil
}

// ReadAll reads the folder, or the management cluster and every registered cluster, as serve does.
func (s *Source) ReadAll(ctx context.Context, streams *cmdutil.Streams) (*Reading, error) {
	if s.Dir != "" {
		return FolderWith(streams, s.Dir)
	}
	return s.read(ctx, func(m Management) (*Reading, error) {
		return m.ClustersWith(ctx, streams, cmdutil.NewProgress(streams))
	})
}

// AddClustersFlag adds the flag of commands that use ReadInForce. Call it after AddFlags.
func (s *Source) AddClustersFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.AllClusters, "clusters", false, "read the registered clusters, too, and show where they differ from what should be")
	for _, file := range []string{"dir", "snapshot"} {
		cmd.MarkFlagsMutuallyExclusive("clusters", file)
	}
}

// ReadInForce is Read that, with --clusters, reads every registered cluster and compares what was
// written there with what follows.
func (s *Source) ReadInForce(ctx context.Context, streams *cmdutil.Streams) (*Reading, error) {
	if !s.AllClusters {
		return s.Read(ctx, streams)
	}
	reading, err := s.read(ctx, func(m Management) (*Reading, error) {
		progress := cmdutil.NewProgress(streams)
		progress.Start("Reading the registered clusters")
		reading, err := m.InForce(ctx)
		progress.End(err)
		return reading, err
	})
	if err != nil {
		return nil, err
	}
	reading.say(streams)
	return reading, nil
}

// silence is how long reading may take before it shows.
const silence = 2 * time.Second

// FolderWith is Folder that shows its progress, and says how it was read.
func FolderWith(s *cmdutil.Streams, dir string) (*Reading, error) {
	progress := cmdutil.NewProgress(s)
	progress.StartLate("Reading "+dir, silence)
	reading, err := Folder(dir)
	progress.End(err)
	if err != nil {
		return nil, err
	}
	reading.say(s)
	return reading, nil
}

// say tells how it was read.
func (r *Reading) say(streams *cmdutil.Streams) {
	for _, note := range r.Notes {
		cmdutil.Say(streams, "Note: %s.", note)
	}
}

// Management is the cluster that the flags name.
func (s *Source) Management() (Management, error) {
	config, err := s.Kube.Config(s.Factory)
	if err != nil {
		return Management{}, err
	}
	return Management{Config: config, Namespace: s.Namespace, Version: s.Factory.Version.Version, Detours: Detours(s.Factory, s.Kube.Kubeconfig)}, nil
}

package cmdutil

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Source is what the flags of a command name: a folder, or a management cluster.
type Source struct {
	// Dir is a folder as for translate; empty asks the cluster.
	Dir       string
	Kube      KubeFlags
	Namespace string
	// NoClusters leaves the registered clusters unread; see ReadInForce.
	NoClusters bool
	// Server is the URL of the metrics of meshctl serve; see AddServerFlag.
	Server  string
	Factory *Factory
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
		return FlagErrorf("the argument %s is a folder, and %s is given as well; leave one of them out", args[0], *path)
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
func (s *Source) Read(ctx context.Context, streams *Streams) (*reading.Reading, error) {
	if s.Dir != "" {
		return ReadFolder(streams, s.Dir)
	}
	progress := NewProgress(streams)
	progress.StartLate("Reading the management cluster", silence)
	read, err := s.read(ctx, func(m reading.Management) (*reading.Reading, error) { return m.Stored(ctx) })
	return finish(streams, progress, read, err)
}

// ReadAll reads the folder, or the management cluster and every registered cluster, as serve does.
func (s *Source) ReadAll(ctx context.Context, streams *Streams) (*reading.Reading, error) {
	if s.Dir != "" {
		return ReadFolder(streams, s.Dir)
	}
	return s.read(ctx, func(m reading.Management) (*reading.Reading, error) {
		return ReadClusters(ctx, streams, NewProgress(streams), m.Clusters)
	})
}

// AddClustersFlag adds the flags of commands that use ReadInForce. Call it after AddFlags.
func (s *Source) AddClustersFlag(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&s.NoClusters, "no-clusters", false, "do not read the registered clusters: faster, and less certain")
	// The clusters were once read only if this was given.
	flags.Var((*inverse)(&s.NoClusters), "clusters", "read the registered clusters, as is the default")
	flags.Lookup("clusters").NoOptDefVal, flags.Lookup("clusters").Hidden = "true", true
	cmd.MarkFlagsMutuallyExclusive("clusters", "no-clusters")
	for _, file := range []string{"dir", "snapshot"} {
		cmd.MarkFlagsMutuallyExclusive("clusters", file)
		cmd.MarkFlagsMutuallyExclusive("no-clusters", file)
	}
}

// inverse is a flag that is set where another one is not.
type inverse bool

// String is part of pflag.Value.
func (i *inverse) String() string { return strconv.FormatBool(i == nil || !bool(*i)) }

// Set is part of pflag.Value.
func (i *inverse) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*i = inverse(!on)
	return err //nolint:wrapcheck // pflag names the flag and the value
}

// Type is part of pflag.Value.
func (i *inverse) Type() string { return "bool" }

// ReadInForce reads the folder, or the management cluster and every registered cluster, and compares the objects there
// with those that serve would write. With --no-clusters, and where the credentials of the clusters may not be read, it
// reads what the management cluster has stored; see explain.Index.NotRead.
func (s *Source) ReadInForce(ctx context.Context, streams *Streams) (*reading.Reading, error) {
	if s.NoClusters || s.Dir != "" {
		return s.Read(ctx, streams)
	}
	return s.read(ctx, func(m reading.Management) (*reading.Reading, error) {
		return ReadClusters(ctx, streams, NewProgress(streams), m.Live)
	})
}

// read reads the management cluster that the flags name. If the cluster or the namespace has no management
// plane, the error names where there is one.
func (s *Source) read(ctx context.Context, read func(reading.Management) (*reading.Reading, error)) (*reading.Reading, error) {
	management, err := s.Management()
	if err != nil {
		return nil, err
	}
	quietClient()
	result, err := read(management)
	if err != nil {
		return nil, Advise(ctx, s.Factory, s.Kube.Kubeconfig, err)
	}
	if err := management.CheckNamespace(ctx, result.Input); err != nil {
		return nil, err
	}
	return result, nil
}

// Management is the cluster that the flags name.
func (s *Source) Management() (reading.Management, error) {
	config, err := s.Kube.Config(s.Factory)
	if err != nil {
		return reading.Management{}, err
	}
	return reading.Management{Config: config, Namespace: s.Namespace, Version: s.Factory.Version.Version, Detours: Detours(s.Factory, s.Kube.Kubeconfig), Server: s.server()}, nil
}

// silence is how long reading may take before its progress shows.
const silence = 2 * time.Second

// ReadFolder reads a folder or an archive, shows the progress, and prints the notes on how it was read.
func ReadFolder(s *Streams, dir string) (*reading.Reading, error) {
	progress := NewProgress(s)
	progress.StartLate("Reading "+dir, silence)
	read, err := reading.Folder(dir)
	return finish(s, progress, read, err)
}

// ReadClusters reads the registered clusters with a method of reading.Management, shows the progress, and
// prints the notes on how they were reached.
func ReadClusters(ctx context.Context, s *Streams, progress *Progress, read func(context.Context) (*reading.Reading, error)) (*reading.Reading, error) {
	quietClient()
	progress.StartLate("Reading the registered clusters", silence)
	result, err := read(ctx)
	return finish(s, progress, result, err)
}

// finish ends the progress, and prints the notes of a reading.
func finish(s *Streams, progress *Progress, read *reading.Reading, err error) (*reading.Reading, error) {
	progress.End(err)
	if err != nil {
		return nil, err
	}
	for _, note := range read.Notes {
		Say(s, "Note: %s.", note)
	}
	return read, nil
}

// quietClient discards what client-go logs when it is stopped.
func quietClient() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }

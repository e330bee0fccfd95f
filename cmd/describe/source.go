package describe

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/translate"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// completionTimeout is how long a shell may wait for names.
const completionTimeout = 2 * time.Second

// Source is where answers come from: a folder, or the management cluster.
type Source struct {
	// Dir is a folder as for translate; empty asks the cluster.
	Dir       string
	Kube      cmdutil.KubeFlags
	Namespace string

	factory *cmdutil.Factory
}

// AddFlags adds the source's flags to cmd.
func (s *Source) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Dir, "dir", "", "ask the manifests in this `folder` instead of a cluster")
	cmd.Flags().StringVarP(&s.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	s.Kube.AddFlags(cmd)
	_ = cmd.MarkFlagDirname("dir")
	cmd.MarkFlagsMutuallyExclusive("dir", "kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("dir", "context")
	cmd.MarkFlagsMutuallyExclusive("dir", "namespace")
}

// Ask reads the source and makes it ready for questions.
func (s *Source) Ask(ctx context.Context) (*explain.Index, error) {
	if s.Dir != "" {
		// What was left out does not bear on the answers; translate tells it.
		input, _, err := translate.Load(s.Dir)
		if err != nil {
			return nil, err
		}
		return explain.New(engine.Translate(input)), nil
	}
	config, err := s.Kube.Config(s.factory)
	if err != nil {
		return nil, err
	}
	input, err := watch.ReadOnce(ctx, config, s.Namespace)
	if err != nil {
		return nil, err
	}
	return explain.NewStored(engine.Translate(input)), nil
}

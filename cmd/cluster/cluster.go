// Package cluster is the command `meshctl cluster`: which clusters meshctl
// manages, and how they are.
package cluster

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
)

const long = `Registers clusters with the management plane, shows their health, and
deregisters them.

On a registered cluster, meshctl has a ServiceAccount with only the permissions
that it needs. Its token is valid for a day unless you choose another lifetime,
and "meshctl serve" renews it. The management cluster stores the token in a
Secret, beside a KubernetesCluster object.`

// NewCmd returns the command.
func NewCmd(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Register, list and deregister clusters",
		Long:  long,
		Example: `  # Register a cluster
  meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # List the registered clusters and their health
  meshctl cluster list --mgmt-context cluster-1

  # Deregister a cluster
  meshctl cluster deregister cluster-2 --remote-context cluster-2 --mgmt-context cluster-1`,
	}
	cmd.AddCommand(newCmdRegister(f, nil), newCmdList(f, nil), newCmdInvite(f, nil), newCmdApprove(f, nil), newCmdRevoke(f, nil), newCmdVerify(f, nil), newCmdDeregister(f, nil), newCmdRelease(f, nil))
	return cmd
}

// management says where the management plane is.
type management struct {
	factory        *cmdutil.Factory
	kubeconfig     string
	mgmtKubeconfig string
	context        string
	namespace      string
}

func (m *management) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&m.mgmtKubeconfig, "mgmt-kubeconfig", "", "kubeconfig `file` of the management cluster (default: the file of --kubeconfig)")
	flags.StringVar(&m.context, "mgmt-context", "", "`context` of the management cluster (default: the current one)")
	flags.StringVar(&m.namespace, "mgmt-namespace", cluster.DefaultNamespace, "`namespace` of the management plane")
	m.completeContexts(cmd, "mgmt-context")
}

// completeContexts offers the contexts of the kubeconfig to the shell.
func (m *management) completeContexts(cmd *cobra.Command, flag string) {
	// An error here means that the flag does not exist; the caller has just added it.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := cmdutil.Contexts(m.kubeconfig)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeClusters offers the names of the registered clusters to the shell.
func (m *management) completeClusters(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	kube := cmdutil.KubeFlags{Kubeconfig: cmp.Or(m.mgmtKubeconfig, m.kubeconfig), Context: m.context}
	source := &cmdutil.Source{Kube: kube, Namespace: m.namespace, Factory: m.factory}
	return source.Clusters(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
}

// config reaches the management cluster.
func (m *management) config() (*rest.Config, error) {
	path := m.mgmtKubeconfig
	if path == "" {
		path = m.kubeconfig
	}
	config, err := m.factory.Config(path, m.context)
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	return config, nil
}

// remote reaches the cluster to register or deregister.
func (m *management) remote(context string) (*rest.Config, error) {
	config, err := m.factory.Config(m.kubeconfig, context)
	if err != nil {
		return nil, fmt.Errorf("remote cluster: %w", err)
	}
	return config, nil
}

func (m *management) userAgent() string { return "meshctl/" + m.factory.Version.Version }

// typed gives errors of package registration the types that become exit codes.
func typed(err error) error {
	var (
		unreachable *registration.UnreachableError
		unknown     *registration.NotRegisteredError
	)
	switch {
	case errors.As(err, &unreachable):
		return &cmdutil.UnreachableError{Err: err}
	case errors.As(err, &unknown):
		return &cmdutil.NotFoundError{Err: err}
	}
	return err
}

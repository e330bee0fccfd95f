// Package mesh is the command `meshctl mesh`: what an administrator does to a mesh in its own cluster.
//
//	mesh.go     the command, and where the clusters are
//	restart.go  meshctl mesh restart
//	roll.go     its rollouts
package mesh

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
)

// NewCmd returns the command.
func NewCmd(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mesh",
		Short: "Restart the pods of a mesh",
		Long: `Works on a mesh in its own cluster, with your permissions there. The management
plane is only read.`,
		Example: `  # Show what would restart
  meshctl mesh restart istiod-istio-system-cluster-2 --dry-run`,
	}
	cmd.AddCommand(newCmdRestart(f, nil))
	return cmd
}

// find reads the Mesh and finds its cluster.
func (o *RestartOptions) find(ctx context.Context) (*discoveryv1.IstioMesh, *rest.Config, error) {
	path := o.MgmtKubeconfig
	if path == "" {
		path = o.Kubeconfig
	}
	management, err := o.factory.Config(path, o.MgmtContext)
	if err != nil {
		return nil, nil, fmt.Errorf("management cluster: %w", err)
	}
	plane := reading.Management{Config: management, Namespace: o.MgmtNamespace, Version: o.factory.Version.Version}
	read, err := plane.Stored(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := plane.CheckNamespace(ctx, read.Input); err != nil {
		return nil, nil, err
	}
	var found *discoveryv1.IstioMesh
	for _, m := range read.Input.Management.Meshes {
		if m.Name == o.Mesh && m.Namespace == o.MgmtNamespace {
			if found = m.Spec.Istio; found == nil {
				return nil, nil, fmt.Errorf("mesh %s is not an Istio mesh; restart its pods with kubectl", o.Mesh)
			}
		}
	}
	if found == nil {
		return nil, nil, cmdutil.NotFoundErrorf("mesh %s does not exist; list the meshes with `meshctl describe mesh`", o.Mesh)
	}
	uid, registered := "", false
	for _, kc := range read.Input.Management.KubernetesClusters {
		if kc.Name == found.Installation.Cluster {
			uid, registered = kc.Annotations[cluster.UIDAnnotation], true
		}
	}
	if !registered {
		return nil, nil, cmdutil.NotFoundErrorf("mesh %s: its cluster %s is not registered; register it with `meshctl cluster register`", o.Mesh, found.Installation.Cluster)
	}
	config, err := o.remote(ctx, found.Installation.Cluster, uid)
	return found, config, err
}

// remote reaches the mesh's cluster: by the context that was chosen, if it leads there, or by one that does.
func (o *RestartOptions) remote(ctx context.Context, name, uid string) (*rest.Config, error) {
	if o.RemoteContext == "" {
		contexts, err := (&interview.Flags{}).Contexts(ctx, o.factory, o.Kubeconfig, o.MgmtNamespace)
		if err != nil {
			return nil, err
		}
		for _, c := range contexts {
			if uid != "" && c.UID == uid {
				return o.factory.Config(o.Kubeconfig, c.Name)
			}
		}
		return nil, cmdutil.UnreachableErrorf("cluster %s: no context of the kubeconfig leads to it; set one with --remote-context", name)
	}
	config, err := o.factory.Config(o.Kubeconfig, o.RemoteContext)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	seen, err := registration.Inspect(ctx, registration.InspectOptions{Config: config, Context: o.RemoteContext})
	if err != nil {
		return nil, &cmdutil.UnreachableError{Err: err}
	}
	if uid != "" && seen.UID != uid {
		return nil, cmdutil.FlagErrorf("context %s is not cluster %s: its kube-system namespace has UID %s, the registered one has %s; use the right --remote-context", o.RemoteContext, name, seen.UID, uid)
	}
	return config, nil
}

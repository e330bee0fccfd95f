package registration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// RevokeOptions configure Revoke. Store is required.
type RevokeOptions struct {
	// Name of the cluster.
	Name string
	// MgmtConfig is the client configuration of the management cluster, with the permissions of an administrator, and MgmtContext what
	// messages call it; optional.
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace is that of the management plane; cluster.DefaultNamespace if empty.
	MgmtNamespace string
	// Store returns what knows the agents of a management plane.
	Store func(client kube.Clientset, plane snapshot.Plane) RelayStore
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
}

// Revoke ends all certificates of the agent of a cluster, and its token. The cluster stays registered. It is an error if the cluster is
// registered to be reached with a credential, or not at all.
func Revoke(ctx context.Context, o RevokeOptions) error {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	s, err := newServer(managementSide, o.MgmtContext, o.MgmtConfig, o.Timeout)
	if err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	record := secrets.access(o.MgmtNamespace, snapshot.RelayRecordPrefix+o.Name)
	wanted := append(record.each("get", "patch"), secrets.access(o.MgmtNamespace, "").each("create")...)
	wanted = append(wanted, kubernetesClusters.access(o.MgmtNamespace, o.Name).each("get")...)
	if err := s.require(ctx, wanted); err != nil {
		return err
	}
	known, err := s.getKubernetesCluster(ctx, o.MgmtNamespace, o.Name)
	switch {
	case err != nil:
		return err
	case known == nil:
		return &NotRegisteredError{Name: o.Name, Namespace: o.MgmtNamespace}
	case known.Spec.SecretName != "":
		return fmt.Errorf("cluster %s: it is reached with a credential, and has no agent that dials; to revoke the credential, run `meshctl cluster register %s` again", o.Name, o.Name)
	}
	plane, err := s.plane(ctx, o.MgmtNamespace)
	if err != nil {
		return err
	}
	if err := o.Store(s.clientset, plane).Revoke(ctx, o.Name); err != nil {
		return fmt.Errorf("%s: cluster %s: revoking: %w", s.label, o.Name, err)
	}
	return nil
}

package registration

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// VerifyOptions configure Verify.
type VerifyOptions struct {
	Name        string
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace defaults to cluster.DefaultNamespace.
	MgmtNamespace string
	// Wait bounds the wait for the answer of serve; DefaultVerifyWait if zero.
	Wait time.Duration
}

// DefaultVerifyWait is longer than a comparison may take.
const DefaultVerifyWait = 150 * time.Second

// Verify has serve compare the objects that it has of a cluster with those that the agent there reports, and with those that the cluster
// has. It asks by an annotation of the KubernetesCluster, so that whoever may write that may ask, and reads the answer in its status.
func Verify(ctx context.Context, o VerifyOptions) (*multiclusterv1alpha1.Verified, error) {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	if err := CheckName(o.Name); err != nil {
		return nil, err
	}
	s, err := newServer(managementSide, o.MgmtContext, o.MgmtConfig, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	known, _, err := s.known(ctx, o.MgmtNamespace)
	if err != nil {
		return nil, err
	}
	if _, ok := known[o.Name]; !ok {
		return nil, &NotRegisteredError{Name: o.Name, Namespace: o.MgmtNamespace}
	}
	kc, err := s.getKubernetesCluster(ctx, o.MgmtNamespace, o.Name)
	switch {
	case err != nil:
		return nil, err
	case kc == nil:
		return nil, &NotRegisteredError{Name: o.Name, Namespace: o.MgmtNamespace}
	case kc.Status.Connection == nil:
		return nil, fmt.Errorf("cluster %s: meshctl serve dials it, or takes no agents, so that there is no relay to verify; `meshctl check` compares what was written there", o.Name)
	}
	request := rand.Text()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{cluster.VerifyAnnotation: request}}})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	client := s.dynamic.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(o.MgmtNamespace)
	if _, err := client.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: snapshot.FieldManager + "-verify"}); err != nil {
		return nil, fmt.Errorf("%s: KubernetesCluster %s/%s cannot be annotated: %w", s.label, o.MgmtNamespace, o.Name, err)
	}
	return awaitVerified(ctx, s, &o, request)
}

// awaitVerified waits until serve has answered a request.
func awaitVerified(ctx context.Context, s *server, o *VerifyOptions, request string) (*multiclusterv1alpha1.Verified, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Wait, DefaultVerifyWait))
	defer cancel()
	for {
		kc, err := s.getKubernetesCluster(ctx, o.MgmtNamespace, o.Name)
		if err == nil && kc != nil && kc.Status.Connection != nil {
			if v := kc.Status.Connection.Verified; v != nil && v.Request == request {
				if v.Error != "" {
					return nil, fmt.Errorf("cluster %s: nothing was compared: %s; see `meshctl check`", o.Name, v.Error)
				}
				return v, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cluster %s: meshctl serve has not answered; check that it runs: `meshctl check`", o.Name)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

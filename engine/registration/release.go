package registration

import (
	"cmp"
	"context"
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

// ReleaseOptions configure Release.
type ReleaseOptions struct {
	Name string
	// Code identifies what may be deleted; if empty, nothing is released.
	Code        string
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace defaults to cluster.DefaultNamespace.
	MgmtNamespace string
	// ServeWait bounds the wait for a running serve; DefaultServeWait if zero.
	ServeWait time.Duration
}

// Release lets serve delete objects in a cluster that are no longer wanted, and of which
// no edit says so (see snapshot.WithdrawalHeld). It returns what serve said of them
// before; empty if serve holds nothing back.
func Release(ctx context.Context, o ReleaseOptions) (held string, err error) {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	if err := CheckName(o.Name); err != nil {
		return "", err
	}
	s, err := newServer(managementSide, o.MgmtContext, o.MgmtConfig, DefaultTimeout)
	if err != nil {
		return "", err
	}
	known, _, err := s.known(ctx, o.MgmtNamespace)
	if err != nil {
		return "", err
	}
	if _, ok := known[o.Name]; !ok {
		return "", &NotRegisteredError{Name: o.Name, Namespace: o.MgmtNamespace}
	}
	all, err := s.serveMessages(ctx, o.MgmtNamespace)
	if err != nil {
		return "", err
	}
	reason := all[o.Name].held()
	code := reason.ReleaseCode
	held = reason.String()
	switch {
	case o.Code == "":
		return held, nil
	case code == "":
		return "", fmt.Errorf("cluster %s: serve holds nothing back there, so there is nothing to release", o.Name)
	case code != o.Code:
		return held, fmt.Errorf("cluster %s: the deletions that meshctl serve holds back have the code %s, not %s; check them again: %s", o.Name, code, o.Code, held)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{cluster.ReleaseAnnotation: code}}})
	if err != nil {
		return held, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	client := s.dynamic.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(o.MgmtNamespace)
	if _, err := client.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: snapshot.FieldManager + "-release"}); err != nil {
		return held, fmt.Errorf("%s: KubernetesCluster %s/%s cannot be annotated: %w", s.label, o.MgmtNamespace, o.Name, err)
	}
	return held, s.awaitRelease(ctx, &o)
}

// awaitRelease waits until serve has taken notice.
func (s *server) awaitRelease(ctx context.Context, o *ReleaseOptions) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.ServeWait, DefaultServeWait))
	defer cancel()
	for {
		all, err := s.serveMessages(ctx, o.MgmtNamespace)
		if err == nil && all[o.Name].held().ReleaseCode != o.Code {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %s: serve has not taken notice of the release yet; is `meshctl serve` running? It will when it runs", o.Name)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// serveMessage is what serve reports in the status of a cluster.
type serveMessage struct {
	message string
	reasons snapshot.Reasons
}

// credentialCodes are those of reasons about the credential.
var credentialCodes = []snapshot.Code{snapshot.CredentialNotRenewed, snapshot.SecretRefused}

// messageIn returns what a status reports. An earlier serve gives no reasons.
func messageIn(status *multiclusterv1alpha1.ClusterStatus) serveMessage {
	out := serveMessage{message: status.Message}
	for _, r := range status.Reasons {
		out.reasons = append(out.reasons, snapshot.Reason{Code: snapshot.Code(r.Code), Cause: snapshot.Code(r.Cause), What: r.What, Hint: r.Hint, ReleaseCode: r.ReleaseCode})
	}
	return out
}

// held is why deletions are held; zero if they are not.
func (s serveMessage) held() snapshot.Reason {
	if r := s.reasons.Of(snapshot.WithdrawalHeld); r != nil {
		return *r
	}
	return snapshot.Reason{}
}

// serveMessages returns what serve reports about clusters that it can read, by name: why it deletes nothing
// there, what is wrong with the credential, or other notes.
func (s *server) serveMessages(ctx context.Context, namespace string) (map[string]serveMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all, err := s.listKubernetesClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]serveMessage{}
	for _, kc := range all {
		for i := range kc.Status.Status {
			status := &kc.Status.Status[i]
			m := messageIn(status)
			if status.State == multiclusterv1alpha1.ClusterStateAccepted || m.reasons.Of(append(credentialCodes, snapshot.WithdrawalHeld)...) != nil {
				out[kc.Name] = m
			}
		}
	}
	return out, nil
}

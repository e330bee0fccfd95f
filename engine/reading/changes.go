package reading

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Changes are what the server recorded of what changed, the oldest first. None means that no server has recorded anything
// yet. It reads one ConfigMap, and needs the right to get it.
func (m Management) Changes(ctx context.Context) (snapshot.Changes, error) {
	client, err := m.clientset()
	if err != nil {
		return nil, err
	}
	record, err := client.CoreV1().ConfigMaps(m.Namespace).Get(ctx, snapshot.ChangesRecord, metav1.GetOptions{})
	name := "ConfigMap " + m.Namespace + "/" + snapshot.ChangesRecord
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s: %w; a Role in the namespace that lets you get it allows it", name, err)
	case err != nil:
		return nil, fmt.Errorf("management cluster %s: %s: %w", m.Config.Host, name, kube.WithNextStep(err))
	}
	changes, err := snapshot.ParseChanges(record.Data[snapshot.ChangesKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w; meshctl serve writes it anew when it starts", name, err)
	}
	return changes, nil
}

package reading

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
)

// Live reads as InForce does. For a user who may not read the credentials of the registered clusters, it reads as Stored does;
// explain.Index.NotRead then says why.
func (m Management) Live(ctx context.Context) (*Reading, error) {
	reason, err := m.noCredentials(ctx)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		return m.InForce(ctx)
	}
	stored, err := m.Stored(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range stored.Input.Clusters { // nobody else has them yet
		c.Reason = reason
	}
	return stored, nil
}

// noCredentials says why the credentials of the registered clusters may not be read; empty if they may, or if the management cluster
// says nothing about it.
func (m Management) noCredentials(ctx context.Context) (string, error) {
	client, err := m.clientset()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	// Reading needs a list and a watch of all of them; what is refused is refused for one, too.
	_, err = client.CoreV1().Secrets(m.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + cluster.SecretType, Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("you may not list Secrets in namespace %s of the management cluster, where their credentials are (%s)", m.Namespace, kube.Message(err)), nil
	case err != nil:
		return "", nil // who reads next says it
	}
	return "", nil
}

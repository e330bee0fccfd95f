package serve

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// secretOf reads Secrets of a namespace, for those who ask a Prometheus.
func secretOf(config *rest.Config, namespace string) func(ctx context.Context, name string) (map[string][]byte, error) {
	client := sync.OnceValues(func() (kube.Clientset, error) { return kube.NewClientset(kube.Unlimited(config)) })
	return func(ctx context.Context, name string) (map[string][]byte, error) {
		c, err := client()
		if err != nil {
			return nil, err
		}
		secret, err := c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("Secret %s/%s: %w", namespace, name, err)
		}
		return secret.Data, nil
	}
}

package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/kube"
)

// The bounds of what API servers accept as the lifetime of a token.
const (
	MinTokenLifetime = 10 * time.Minute
	MaxTokenLifetime = (1 << 32) * time.Second
)

// RequestToken requests a bounded token of a ServiceAccount. The API server
// may grant less than ttl: the Lifetime is what it granted.
func RequestToken(ctx context.Context, clientset kube.Clientset, namespace, name string, ttl time.Duration) (string, Lifetime, error) {
	seconds := int64(ttl / time.Second)
	request, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", Lifetime{}, fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	if request.Spec.ExpirationSeconds != nil {
		seconds = *request.Spec.ExpirationSeconds
	}
	expires := request.Status.ExpirationTimestamp.Time
	return request.Status.Token, Lifetime{
		Issued:  expires.Add(-time.Duration(seconds) * time.Second),
		Expires: expires,
	}, nil
}

// WhoAmI returns the user that the cluster sees in the credential. The UID of a
// ServiceAccount identifies its cluster too; the name does not.
func WhoAmI(ctx context.Context, clientset kube.Clientset) (*authenticationv1.UserInfo, error) {
	review, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("checking the credential: %w", err)
	}
	return &review.Status.UserInfo, nil
}

// Connect builds clients the way that the engine will: by encoding the
// credential, reading it back through the allow-list, and connecting.
func Connect(name string, c *Credential, userAgent string) (*Client, kube.Clientset, error) {
	data, err := EncodeKubeconfig(name, c)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := ParseKubeconfig(data)
	if err != nil {
		return nil, nil, err
	}
	client, err := NewClient(parsed, userAgent)
	if err != nil {
		return nil, nil, err
	}
	clientset, err := kube.NewClientset(client.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: building a client: %w", name, err)
	}
	return client, clientset, nil
}

// Verify sends the credential to its server, and checks that the cluster sees the
// ServiceAccount with that UID in it.
func Verify(ctx context.Context, name string, c *Credential, user, uid string) error {
	client, clientset, err := Connect(name, c, "")
	if err != nil {
		return err
	}
	defer client.Close()
	who, err := WhoAmI(ctx, clientset)
	switch {
	case err != nil:
		return fmt.Errorf("credential of cluster %s at %s: %w", name, c.Server, err)
	case who.Username != user || who.UID != uid:
		return fmt.Errorf("credential of cluster %s: %s is another cluster: it sees %s with UID %s instead of %s with UID %s",
			name, c.Server, who.Username, who.UID, user, uid)
	}
	return nil
}

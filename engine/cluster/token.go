package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// grantTimeout bounds the wait until an API server's authorizer knows a role
// that was just written: milliseconds, unless it is very busy.
const grantTimeout = 15 * time.Second

// requestToken asks for a bounded token of a ServiceAccount. The API server
// may grant less than ttl: the Lifetime is what it granted.
func requestToken(ctx context.Context, clientset kubernetes.Interface, namespace, name string, ttl time.Duration) (string, Lifetime, error) {
	seconds := int64(ttl / time.Second)
	request, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", Lifetime{}, fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", namespace, name, err)
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

// whoami asks the cluster whom it takes the credential for. The UID of a
// ServiceAccount proves more than its name: no two clusters have the same.
func whoami(ctx context.Context, clientset kubernetes.Interface) (*authenticationv1.UserInfo, error) {
	review, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("showing the credential: %w", err)
	}
	return &review.Status.UserInfo, nil
}

// connect builds clients the way that the engine will: by encoding the
// credential, reading it back through the allow-list, and connecting.
func connect(name string, c *Credential, userAgent string) (*client, kubernetes.Interface, error) {
	data, err := EncodeKubeconfig(name, c)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := ParseKubeconfig(data)
	if err != nil {
		return nil, nil, err
	}
	way, err := newClient(parsed, userAgent)
	if err != nil {
		return nil, nil, err
	}
	clientset, err := kubernetes.NewForConfig(way.config)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: building a client: %w", name, err)
	}
	return way, clientset, nil
}

// verify shows the credential to the address in it, and checks that the
// cluster takes it for the ServiceAccount with that UID.
func verify(ctx context.Context, name string, c *Credential, user, uid string) error {
	way, clientset, err := connect(name, c, "")
	if err != nil {
		return err
	}
	defer way.close()
	who, err := whoami(ctx, clientset)
	switch {
	case err != nil:
		return fmt.Errorf("credential of cluster %s at %s: %w", name, c.Server, err)
	case who.Username != user || who.UID != uid:
		return fmt.Errorf("credential of cluster %s: %s is another cluster: it takes the credential for %s with UID %s instead of %s with UID %s",
			name, c.Server, who.Username, who.UID, user, uid)
	}
	return nil
}

// verifyGrants waits until the credential may do all that the role grants.
func verifyGrants(ctx context.Context, name string, c *Credential, wanted []access) error {
	way, clientset, err := connect(name, c, "")
	if err != nil {
		return err
	}
	defer way.close()
	var missing []string
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, grantTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = missingAccess(ctx, clientset, wanted)
		return err == nil && len(missing) == 0, err
	})
	if err != nil && len(missing) > 0 {
		return &PermissionError{Server: "the new credential of cluster " + name, Missing: missing}
	}
	if err != nil {
		return fmt.Errorf("credential of cluster %s: asking what it may do: %w", name, err)
	}
	return nil
}

// isDenied reports that a server answered and refused the credential.
func isDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

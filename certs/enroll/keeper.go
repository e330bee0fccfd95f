package enroll

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Names of Secrets on the agent's side, as in Gloo Mesh.
const (
	// ClientSecret has the certificate of an agent: tls.crt, tls.key and ca.crt.
	ClientSecret = snapshot.RelayClientSecret
	// TokenSecret has the token of an agent that has no certificate yet, in the key TokenKey.
	TokenSecret = snapshot.RelayTokenSecret
	TokenKey    = snapshot.RelayTokenKey
)

// Hub issues certificates to agents.
type Hub interface {
	Enroll(ctx context.Context, config *tls.Config, token string, request []byte) (cluster string, chain, roots []byte, err error)
	Renew(ctx context.Context, config *tls.Config, request []byte) (cluster string, chain, roots []byte, err error)
}

// Keeper keeps the certificate of an agent in a Secret of its cluster. Own and what TLS returns may be used from any goroutine, the other
// methods from one.
type Keeper struct {
	// Client reaches the agent's cluster, and Namespace is that of the agent.
	Client    kube.Clientset
	Namespace string
	// Cluster is the name with which the cluster is registered, and Plane the UID of the management plane: as Start finds them in the
	// certificate or the token, if they are empty. With a token that agents share, Cluster is the name to ask for.
	Cluster, Plane string
	// ServerName is that of the hub's certificate.
	ServerName string
	Hub        Hub
	Log        *slog.Logger
	// Now is the clock.
	Now func() time.Time

	// asked is the token for which a certificate was asked for last, with the key and the request: the hub gives no other key a
	// certificate for it, also if its answer was lost, or could not be stored.
	asked struct {
		token   string
		key     pki.Key
		request []byte
	}

	// users is the resource version of the Secret whose certificate is of the user's own PKI; empty if it is of the relay's.
	users string

	mu  sync.Mutex
	own identity.Own
}

// Own is the certificate that there is; an error if there is none.
func (k *Keeper) Own() (identity.Own, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.own.Chain) == 0 {
		return identity.Own{}, errors.New("the agent has no certificate yet")
	}
	return k.own, nil
}

// TLS is that of the agent, with whatever certificate there is at the time of a connection.
func (k *Keeper) TLS() *tls.Config { return identity.AgentTLS(k.Own, k.ServerName, k.Plane, k.Now) }

// Start reads the certificate, and gets another one for the token in TokenSecret, if there is one: an administrator has put it there since.
// If the hub does not take the token, a certificate that there is goes on to be used.
func (k *Keeper) Start(ctx context.Context) error {
	secret, err := k.secret(ctx, ClientSecret)
	if err != nil {
		return err
	}
	if secret != nil && isUsers(secret) {
		return k.takeUsers(ctx, secret)
	}
	var ended time.Time
	kept := false
	if secret != nil {
		read, err := pki.ReadGatewayTLS(secret.Data)
		if err != nil {
			return fmt.Errorf("Secret %s/%s: %w; delete it, and make a token with `meshctl cluster invite`", k.Namespace, ClientSecret, err)
		}
		if err := k.named(read.Chain[0]); err != nil {
			return err
		}
		ended = read.Chain[0].NotAfter
		if kept = k.Now().Before(ended.Add(identity.Overdue)); kept {
			k.set(identity.Own{Chain: read.Chain, Key: read.Key, Roots: read.Roots})
		}
	}
	found, err := k.useToken(ctx)
	switch {
	case kept && err != nil:
		k.Log.Warn("the token is of no use; the agent goes on with the certificate that it has", "error", err)
		return nil
	case err != nil:
		return err
	case !found && !kept && secret != nil:
		return fmt.Errorf("cluster %s: the certificate in Secret %s/%s ended at %s, which is too long ago to renew it, and there is no token (Secret %s); make one with `meshctl cluster invite %s` on the management cluster",
			k.Cluster, k.Namespace, ClientSecret, ended.UTC().Format(time.RFC3339), TokenSecret, k.Cluster)
	case !found && !kept:
		return fmt.Errorf("cluster %s: the agent has neither a certificate (Secret %s/%s) nor a token (Secret %s); make one with `meshctl cluster invite %s` on the management cluster",
			k.Cluster, k.Namespace, ClientSecret, TokenSecret, k.Cluster)
	}
	return nil
}

// named takes over the names in a certificate that is stored.
func (k *Keeper) named(cert *x509.Certificate) error {
	plane, cluster, ok := identity.Named(cert)
	if k.Cluster != "" && ok && cluster != k.Cluster {
		return fmt.Errorf("Secret %s/%s: the certificate is that of cluster %s, and the agent is to be that of %s; correct --relay-cluster, or delete the Secret", k.Namespace, ClientSecret, cluster, k.Cluster)
	}
	if k.Cluster == "" {
		k.Cluster = cluster
	}
	if k.Plane == "" {
		k.Plane = plane
	}
	return nil
}

// useToken gets a certificate for the token in TokenSecret, which is deleted then. It reports whether there is one.
func (k *Keeper) useToken(ctx context.Context) (found bool, err error) {
	text, err := k.secret(ctx, TokenSecret)
	if err != nil || text == nil {
		return false, err
	}
	token, err := identity.ParseToken(string(text.Data[TokenKey]))
	if err != nil {
		return k.useShared(ctx, text, err)
	}
	if k.Cluster == "" {
		k.Cluster = token.Cluster
	}
	if k.Plane == "" {
		k.Plane = token.Plane
	}
	if token.Cluster != k.Cluster || token.Plane != k.Plane {
		return true, fmt.Errorf("Secret %s/%s: the token is for cluster %s of the management plane %s, and the agent is that of %s of %s; delete Secret %s, and start the agent again, if the token is right",
			k.Namespace, TokenSecret, token.Cluster, token.Plane, k.Cluster, k.Plane, ClientSecret)
	}
	if k.asked.token != token.Text() {
		k.asked.token = ""
		if k.asked.key, k.asked.request, err = k.request(); err != nil {
			return true, err
		}
		k.asked.token = token.Text()
	}
	_, chain, roots, err := k.Hub.Enroll(ctx, identity.EnrollTLS(token, k.ServerName, k.Now), token.Text(), k.asked.request)
	if err := k.take(ctx, k.asked.key, chain, roots, err); err != nil {
		return true, err
	}
	k.used(ctx, text)
	return true, nil
}

// used deletes a token that was used.
func (k *Keeper) used(ctx context.Context, text *corev1.Secret) {
	k.asked.token = ""
	err := k.Client.CoreV1().Secrets(k.Namespace).Delete(ctx, TokenSecret, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &text.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		k.Log.Warn("the token stays, which is of no more use", "secret", k.Namespace+"/"+TokenSecret, "error", err)
	}
}

// request asks for a certificate of another key.
func (k *Keeper) request() (pki.Key, []byte, error) {
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return key, nil, err
	}
	request, err := identity.Request(rand.Reader, key, k.Plane, k.Cluster)
	return key, request, err
}

// take checks and stores what the hub has issued.
func (k *Keeper) take(ctx context.Context, key pki.Key, chainText, rootsText []byte, err error) error {
	if err != nil {
		return err
	}
	roots, err := pki.ReadBundle(rootsText)
	if err != nil {
		return fmt.Errorf("roots from the hub: %w", err)
	}
	chain, err := readChain(chainText)
	if err != nil {
		return fmt.Errorf("certificate from the hub: %w", err)
	}
	want := pki.Want{Usage: pki.ForWorkload, Hosts: []string{identity.AgentName(k.Plane, k.Cluster)}, Key: key}
	if err := pki.Verify(chain, roots, k.Now(), want); err != nil {
		return fmt.Errorf("certificate from the hub: %w", err)
	}
	data, err := pki.GatewayTLS{Chain: chain, Key: key, Roots: roots}.Data()
	if err != nil {
		return err
	}
	if err := k.store(ctx, data); err != nil {
		return err
	}
	k.set(identity.Own{Chain: chain, Key: key, Roots: roots})
	k.Log.Info("the agent has a certificate", "until", chain[0].NotAfter)
	return nil
}

// readChain reads a certificate that is no CA, and those above it.
func readChain(text []byte) (pki.Chain, error) {
	leaf, others, err := leafOf(text)
	if err != nil {
		return nil, err
	}
	return pki.NewChain(leaf, others...)
}

func (k *Keeper) set(own identity.Own) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own = own
}

func (k *Keeper) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := k.Client.CoreV1().Secrets(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("Secret %s/%s: %w", k.Namespace, name, err)
	}
	return secret, nil
}

func (k *Keeper) store(ctx context.Context, data map[string][]byte) error {
	secrets := k.Client.CoreV1().Secrets(k.Namespace)
	known, err := k.secret(ctx, ClientSecret)
	if err != nil {
		return err
	}
	if known == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: madeMeta(ClientSecret), Type: corev1.SecretTypeTLS, Data: data}, metav1.CreateOptions{})
	} else {
		known.Data = data
		_, err = secrets.Update(ctx, known, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", k.Namespace, ClientSecret, err)
	}
	return nil
}

// renewFirst and renewMost are the pauses between two attempts to renew, and tokenEvery is that between two looks for a token: one that
// is made for an agent whose certificate does not count any more.
const (
	renewFirst, renewMost = 30 * time.Second, time.Hour
	tokenEvery            = 15 * time.Second
)

// Run renews the certificate when it is time, and exchanges it for a token that is put there, until ctx ends. One of the user's own PKI is
// read again when it changes.
func (k *Keeper) Run(ctx context.Context) {
	if k.users != "" {
		k.follow(ctx)
		return
	}
	failures, refused := 0, ""
	for due := k.due(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tokenEvery):
		}
		found, err := k.useToken(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != refused:
			refused = err.Error() // said once: not a decision
			k.Log.Warn("the token is of no use; the agent goes on with the certificate that it has", "error", err)
		case err == nil && found:
			due, failures, refused = k.due(), 0, ""
		}
		if k.Now().Before(due) {
			continue
		}
		if err := k.Renew(ctx); err != nil {
			failures++
			due = k.Now().Add(kube.Jitter(kube.Backoff(renewFirst, renewMost, failures)))
			k.Log.Warn("the certificate of the agent was not renewed; trying again", "error", err)
			continue
		}
		due, failures = k.due(), 0
	}
}

// due is when the certificate is to be renewed.
func (k *Keeper) due() time.Time {
	own, err := k.Own()
	if err != nil {
		return k.Now().Add(renewMost)
	}
	return identity.RenewAt(own.Chain[0])
}

// Renew gets a certificate for another key.
func (k *Keeper) Renew(ctx context.Context) error {
	key, request, err := k.request()
	if err != nil {
		return err
	}
	_, chain, roots, err := k.Hub.Renew(ctx, k.TLS(), request)
	return k.take(ctx, key, chain, roots, err)
}

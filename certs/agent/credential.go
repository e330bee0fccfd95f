package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/meshctl/meshctl/certs/vault"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

const (
	// defaultTokens is where tokens are mounted, and vaultAccount the folder in it with that for Vault.
	defaultTokens = "/var/run/secrets"
	vaultAccount  = "vault"
	// tokenKey is the key of a token in a Secret, and the name of its file.
	tokenKey = "token"
	// maxToken is in bytes.
	maxToken = 16 << 10
	// tokenSeconds is the life of a token that is made to log in once: the shortest that Kubernetes gives.
	tokenSeconds = 600
)

// logIn gives a client the token of a Secret, or has it log in with a service account.
func (a *agent) logIn(ctx context.Context, client *vault.Client, ca *certificatesv1.VaultCA) error {
	if ca.KubernetesAuth == nil {
		token, err := a.vaultToken(ctx, ca.TokenSecretRef)
		if err != nil {
			return err
		}
		client.UseToken(token)
		return nil
	}
	token, err := a.accountToken(ctx, ca.KubernetesAuth)
	if err != nil {
		return err
	}
	return client.Login(ctx, ca.KubernetesAuth, token)
}

// vaultToken reads the token of Vault in a Secret.
func (a *agent) vaultToken(ctx context.Context, ref *commonv1.ObjectRef) (string, error) {
	if ref == nil {
		return "", errors.New("the VirtualMesh does not say how to log in to Vault; set tokenSecretRef or kubernetesAuth")
	}
	if err := a.inOwnNamespace("tokenSecretRef", ref); err != nil {
		return "", err
	}
	secret, err := a.store.secret(ctx, a.options.Namespace, ref.Name)
	if err != nil {
		return "", fmt.Errorf("the token of Vault: %w; if the agent may not read it, register the cluster again with --vault-token-secret %s", err, ref.Name)
	}
	object := "Secret " + a.options.Namespace + "/" + ref.Name
	if secret == nil {
		return "", fmt.Errorf("%s with the token of Vault does not exist; create it in this cluster with the key %q", object, tokenKey)
	}
	return usable(object+", key "+tokenKey, secret.Data[tokenKey])
}

// accountToken is a token of a service account: from a file, or made for it.
func (a *agent) accountToken(ctx context.Context, auth *certificatesv1.VaultKubernetesAuth) (string, error) {
	if ref := auth.ServiceAccountRef; ref != nil {
		if err := a.inOwnNamespace("kubernetesAuth.serviceAccountRef", ref); err != nil {
			return "", err
		}
		token, err := a.store.makeToken(ctx, ref.Name, a.vaultAudience())
		if err != nil {
			return "", err
		}
		return a.forVaultOnly("ServiceAccount "+a.options.Namespace+"/"+ref.Name+": the token that was made of it", token)
	}
	folder := auth.MountedSaPath
	if folder == "" {
		folder = filepath.Join(a.options.tokens, vaultAccount)
	}
	key := auth.SecretTokenKey
	if key == "" {
		key = tokenKey
	}
	// Who edits the VirtualMesh also names the server that gets the contents: no file but tokens may be read.
	inside, err := filepath.Rel(a.options.tokens, filepath.Join(folder, key))
	if err != nil || !filepath.IsLocal(inside) || strings.ContainsRune(key, filepath.Separator) {
		return "", fmt.Errorf("kubernetesAuth.mountedSaPath %.120q is not below %s; mount the token there", folder, a.options.tokens)
	}
	root, err := os.OpenRoot(a.options.tokens)
	if err != nil {
		return "", fmt.Errorf("the token for Vault: %w; register the cluster again with --vault-server, which mounts it into the Pod of the agent, or use serviceAccountRef", err)
	}
	defer func() { _ = root.Close() }()
	file, err := root.Open(inside)
	if err != nil {
		return "", fmt.Errorf("the token for Vault: %w; register the cluster again with --vault-server, which mounts it into the Pod of the agent, or correct mountedSaPath and secretTokenKey", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("the token for Vault: %w; mount it into the Pod of the agent", err)
	}
	object := "file " + filepath.Join(folder, key)
	token, err := usable(object, text)
	if err != nil {
		return "", err
	}
	return a.forVaultOnly(object, token)
}

// inOwnNamespace refuses what is elsewhere: the agent reads no credentials of others.
func (a *agent) inOwnNamespace(field string, ref *commonv1.ObjectRef) error {
	if ref.Namespace == "" || ref.Namespace == a.options.Namespace {
		return nil
	}
	return fmt.Errorf("%s is in namespace %s; the agent uses only what is in its own, %s of this cluster: create it there, and name it", field, ref.Namespace, a.options.Namespace)
}

// usable is the text of a token that a header can have.
func usable(object string, text []byte) (string, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || len(text) > maxToken || bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s has no token: one line of at most %d printable characters is needed", object, maxToken)
	}
	return string(text), nil
}

// makeToken makes a token for Vault of a service account in the agent's namespace.
func (s *store) makeToken(ctx context.Context, account, audience string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds}}
	request.APIVersion, request.Kind = authenticationv1.SchemeGroupVersion.String(), "TokenRequest"
	answer := &authenticationv1.TokenRequest{}
	err := s.client.Post().AbsPath("/api/v1", "namespaces", s.namespace, "serviceaccounts", account, "token").Body(request).Do(ctx).Into(answer)
	if err != nil {
		return "", fmt.Errorf("ServiceAccount %s/%s: no token for Vault is made: %w; create it, and register the cluster again with --vault-service-account %s", s.namespace, account, sentence(err), account)
	}
	return usable("ServiceAccount "+s.namespace+"/"+account, []byte(answer.Status.Token))
}

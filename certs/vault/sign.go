package vault

import (
	"context"
	"fmt"
	"strings"
	"time"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// defaultMount is that of the Kubernetes method, as in Gloo Mesh 1.x.
const defaultMount = "auth/kubernetes"

// revokeTimeout bounds the end of a Client, also if it was cancelled.
const revokeTimeout = 5 * time.Second

// maxCommonName is in bytes (X.520, upper bounds).
const maxCommonName = 64

// UseToken signs with a token of Vault.
func (c *Client) UseToken(token string) {
	c.secrets = append(c.secrets, token)
	c.api.SetToken(token)
}

// Login gets a token by the Kubernetes method, for the token of a service account. Close revokes it.
func (c *Client) Login(ctx context.Context, auth *certificatesv1.VaultKubernetesAuth, serviceAccount string) error {
	c.secrets = append(c.secrets, serviceAccount)
	at := withoutVersion(auth.MountPath)
	if at == "" {
		at = defaultMount
	}
	at += "/login"
	secret, err := c.api.Logical().WriteWithContext(ctx, at, map[string]any{"role": auth.Role, "jwt": serviceAccount})
	if err != nil {
		return c.failed("log in at "+at+" with the role "+fmt.Sprintf("%.60q", auth.Role), err)
	}
	if secret == nil {
		return c.nothing(at)
	}
	if secret.Auth == nil || secret.Auth.ClientToken == "" {
		return fmt.Errorf("%s gives no token at %s; check that this is the login of a Kubernetes method", c, at)
	}
	c.UseToken(secret.Auth.ClientToken)
	c.revoke = true
	return nil
}

// Close revokes the token of a login, so that Vault does not fill with them, and closes the connections.
func (c *Client) Close(ctx context.Context) {
	if c.revoke {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
		defer cancel()
		// A token that may not revoke itself expires; it is nobody's any more.
		_ = c.api.Auth().Token().RevokeSelfWithContext(ctx, "")
	}
	c.transport.CloseIdleConnections()
}

// Request is the certificate that is wanted.
type Request struct {
	// CSR is the signing request in PEM. Vault takes its key, and the other fields from here.
	CSR []byte
	// CommonName is for people; it is cut to 64 bytes. Organization is that of the subject.
	CommonName, Organization string
	// Identities are the subject alternative names that are SPIFFE identities, and DNSNames the others.
	Identities, DNSNames []string
	// TrustDomains restrict the identities below the certificate; empty for no restriction.
	TrustDomains []string
	// TTL is the life that is asked for. Vault gives no more than the mount has.
	TTL time.Duration
}

// Sign has a CA certificate signed. It returns the certificate and those above it in PEM, as Vault sent them: who calls
// verifies all of it.
func (c *Client) Sign(ctx context.Context, r Request) ([]byte, error) {
	at := c.path.sign()
	data := map[string]any{
		"csr": string(r.CSR), "format": "pem", "use_csr_values": false,
		"common_name": r.CommonName[:min(len(r.CommonName), maxCommonName)], "exclude_cn_from_sans": true,
		"organization": []string{r.Organization}, "uri_sans": r.Identities, "alt_names": strings.Join(r.DNSNames, ","),
		"ttl": fmt.Sprintf("%ds", int64(r.TTL/time.Second)), "max_path_length": 0,
	}
	if len(r.TrustDomains) > 0 {
		data["permitted_uri_domains"] = r.TrustDomains
	}
	secret, err := c.api.Logical().WriteWithContext(ctx, at, data)
	if err != nil {
		return nil, c.failed("sign at "+at, err)
	}
	if secret == nil {
		return nil, c.nothing(at)
	}
	return certificates(secret, "certificate", "ca_chain", "issuing_ca"), nil
}

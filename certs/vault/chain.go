package vault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/vault/api"

	"github.com/meshctl/meshctl/certs/pki"
)

// Chain reads the certificate of the CA that signs, and those above it up to its root. It needs no login. That the
// certificates lead from one to the next was checked, and nothing else.
func (c *Client) Chain(ctx context.Context) (pki.Chain, error) {
	var text []byte
	for _, at := range c.path.reads() {
		secret, err := c.api.Logical().ReadWithContext(ctx, at)
		if err != nil {
			return nil, c.failed("read "+at, err)
		}
		if secret == nil {
			return nil, c.nothing(at)
		}
		text = append(text, certificates(secret, "certificate", "ca_chain")...)
	}
	certs, err := pki.ReadCertificates(text)
	if err != nil {
		return nil, fmt.Errorf("%s, CA of mount %s: %w", c, c.path.mount, err)
	}
	chain, err := pki.NewChain(certs[0], certs[1:]...)
	if err != nil {
		return nil, fmt.Errorf("%s, CA of mount %s: %w to the chain of the CA in Vault (import it with %[2]s/intermediate/set-signed or %[2]s/issuers/import/cert)", c, c.path.mount, err)
	}
	return chain, nil
}

// certificates are the PEM texts in fields of an answer: each one text, or several.
func certificates(secret *api.Secret, fields ...string) []byte {
	var out strings.Builder
	for _, field := range fields {
		values, ok := secret.Data[field].([]any)
		if !ok {
			values = []any{secret.Data[field]}
		}
		for _, value := range slices.Clone(values) {
			if text, ok := value.(string); ok {
				out.WriteString(text)
				out.WriteByte('\n')
			}
		}
	}
	return []byte(out.String())
}

package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/certs/pki"
)

// minShared is the least length of a shared token: that of those which the charts of Gloo Mesh make.
const minShared = 16

// CheckShared returns an error for a text that cannot be the token that all agents share. Errors do not have it.
func CheckShared(text string) error {
	_, err := ParseToken(text)
	switch {
	case err == nil:
		return errors.New("the token is for one agent, and not one that agents share")
	case len(text) < minShared || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("the shared token must have at least %d characters of ASCII, and no spaces", minShared)
	}
	return nil
}

// SameShared reports whether two shared tokens are the same, in a time that does not tell where they differ.
func SameShared(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// SharedRequest asks for a certificate with a token that does not say for whom: the cluster is the only DNS name. The hub gives it to none but
// the one whose key an administrator has approved.
func SharedRequest(random io.Reader, key pki.Key, cluster string) ([]byte, error) {
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		return nil, &pki.Error{Object: "request of an agent", Reason: pki.NotAllowed, Problem: fmt.Sprintf("cannot have the name %q", cluster), Next: "use lower-case letters, digits and dashes"}
	}
	return pki.NewRequest(random, key, organization, []string{cluster})
}

// SharedName is the cluster for which SharedRequest asks.
func SharedName(read *pki.Request) (string, error) {
	hosts := read.Hosts()
	if len(hosts) != 1 || len(validation.IsDNS1123Label(hosts[0])) > 0 {
		return "", &pki.Error{Object: "request of an agent", Reason: pki.NotAllowed, Problem: "does not have the name of its cluster as its only DNS name", Next: "start the agent with --relay-cluster NAME"}
	}
	return hosts[0], nil
}

// SharedTLS is the TLS of an agent that has a shared token and the roots of the hub, and does not know the management plane. The hub's
// certificate must have the DNS name.
func SharedTLS(roots pki.Bundle, name string, now func() time.Time) *tls.Config {
	return agentTLS(func() (Own, error) { return Own{}, nil }, name, func(shown []*x509.Certificate) error {
		chain, err := pki.NewChain(shown[0], append(slices.Clone(shown[1:]), roots.Certificates()...)...)
		if err != nil {
			return err
		}
		return pki.Verify(chain, roots, now(), pki.Want{Usage: pki.ForWorkload})
	})
}

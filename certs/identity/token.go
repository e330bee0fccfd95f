package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/certs/pki"
)

// secretSize is that of the secret of a token, in bytes.
const secretSize = 32

// tokenVersion is the first part of a token.
const tokenVersion = "mr1"

// Token lets an agent get its first certificate, once. It names the hub's root, so that it is sent to no other server.
type Token struct {
	// Plane is the UID of the management plane.
	Plane string
	// Cluster is the name with which the agent's cluster is registered.
	Cluster string
	// Root is the SHA-256 of the root certificate of the hub.
	Root [sha256.Size]byte
	// secret is shown by Text only.
	secret [secretSize]byte
}

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewToken makes a token for a cluster.
func NewToken(random io.Reader, plane, cluster string, root *x509.Certificate) (Token, error) {
	for _, name := range []string{plane, cluster} {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return Token{}, &pki.Error{Object: "token", Reason: pki.Unsupported, Problem: fmt.Sprintf("cannot have the name %q", name), Next: "use lower-case letters, digits and dashes"}
		}
	}
	t := Token{Plane: plane, Cluster: cluster, Root: sha256.Sum256(root.Raw)}
	if _, err := io.ReadFull(random, t.secret[:]); err != nil {
		return Token{}, fmt.Errorf("token: no entropy: %w", err)
	}
	return t, nil
}

// Text is the token as it is passed on. It is a secret.
func (t Token) Text() string {
	return strings.Join([]string{tokenVersion, t.Plane, t.Cluster, encoding.EncodeToString(t.Root[:]), encoding.EncodeToString(t.secret[:])}, ".")
}

// String does not show the secret.
func (t Token) String() string { return "token for cluster " + t.Cluster }

// GoString does not show the secret.
func (t Token) GoString() string { return t.String() }

// Digest is what the hub keeps of a token, from which it cannot be made.
func (t Token) Digest() string {
	sum := sha256.Sum256([]byte(t.Text()))
	return hex.EncodeToString(sum[:])
}

// Is reports whether a digest is that of the token.
func (t Token) Is(digest string) bool {
	return subtle.ConstantTimeCompare([]byte(t.Digest()), []byte(digest)) == 1
}

// ParseToken reads a token. Errors do not have it.
func ParseToken(text string) (Token, error) {
	bad := &pki.Error{Object: "token", Reason: pki.Unreadable, Problem: "is none of meshctl's", Next: "copy all of what `meshctl cluster invite` printed"}
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 5 || parts[0] != tokenVersion || len(validation.IsDNS1123Label(parts[1])) > 0 || len(validation.IsDNS1123Label(parts[2])) > 0 {
		return Token{}, bad
	}
	t := Token{Plane: parts[1], Cluster: parts[2]}
	root, err := encoding.DecodeString(parts[3])
	if err != nil || len(root) != len(t.Root) {
		return Token{}, bad
	}
	secret, err := encoding.DecodeString(parts[4])
	if err != nil || len(secret) != len(t.secret) {
		return Token{}, bad
	}
	copy(t.Root[:], root)
	copy(t.secret[:], secret)
	if t.Text() != strings.TrimSpace(text) {
		return Token{}, bad // the last letter of an encoding has bits that do not count
	}
	return t, nil
}

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// Sizes of RSA keys in bits. The API has the same bounds.
const (
	minRSABits = 2048
	maxRSABits = 16384
)

// Key is a private key, RSA or ECDSA. It implements crypto.Signer, so that a tls.Certificate can have it. It shows only
// what is public. The zero Key is no key.
type Key struct {
	// reveal hides the key from reflection: dumpers follow pointers, but cannot look into a function.
	reveal func() crypto.Signer
}

// NewRSAKey makes a key of so many bits, at least 2048; 0 means 4096, the original's default. 4096 bits take about a
// second of CPU, 16384 take minutes.
func NewRSAKey(random io.Reader, bits int) (Key, error) {
	bits, err := rsaBits(bits)
	if err != nil {
		return Key{}, err
	}
	key, err := rsa.GenerateKey(random, bits)
	if err != nil {
		return Key{}, notMade("private key", err)
	}
	return hide(key), nil
}

func rsaBits(bits int) (int, error) {
	if bits == 0 {
		return certificatesv1.DefaultRsaKeySizeBits, nil
	}
	if bits < minRSABits || bits > maxRSABits {
		return 0, &Error{
			Object: "private key", Reason: Unsupported, Problem: fmt.Sprintf("cannot have %d bits", bits),
			Next: fmt.Sprintf("set rsaKeySizeBytes (in bits, despite its name) from %d to %d", minRSABits, maxRSABits),
		}
	}
	return bits, nil
}

// NewECDSAKey makes a key on the curve P-256 or P-384.
func NewECDSAKey(random io.Reader, curve elliptic.Curve) (Key, error) {
	if err := checkCurve("private key", curve); err != nil {
		return Key{}, err
	}
	key, err := ecdsa.GenerateKey(curve, random)
	if err != nil {
		return Key{}, notMade("private key", err)
	}
	return hide(key), nil
}

// ReadKey reads a key from PEM: PKCS #1 (RSA PRIVATE KEY), PKCS #8 (PRIVATE KEY) or SEC 1 (EC PRIVATE KEY), as istiod
// does. Parameters of a curve, which openssl writes before the key, are skipped.
func ReadKey(text []byte) (Key, error) { return readKey("private key", text) }

func readKey(object string, text []byte) (Key, error) {
	blocks, err := decode(object, text)
	if err != nil {
		return Key{}, err
	}
	if blocks[0].Type == typeParameters {
		blocks = blocks[1:]
	}
	if len(blocks) != 1 {
		return Key{}, &Error{
			Object: object, Reason: Unreadable, Problem: fmt.Sprintf("has %d PEM blocks besides parameters", len(blocks)),
			Next: "put exactly one private key there",
		}
	}
	signer, err := parseKey(object, blocks[0])
	if err != nil {
		return Key{}, err
	}
	if err := checkPublic(object, signer.Public()); err != nil {
		return Key{}, err
	}
	return hide(signer), nil
}

func parseKey(object string, block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch {
	case block.Type == typeEncrypted || block.Headers["DEK-Info"] != "":
		return nil, &Error{
			Object: object, Reason: Unsupported, Problem: "is encrypted with a passphrase",
			Next: "decrypt it with: openssl pkey -in FILE",
		}
	case block.Type == typePKCS1:
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case block.Type == typePKCS8:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case block.Type == typeSEC1:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, &Error{
			Object: object, Reason: Unreadable, Problem: "is a PEM block of type " + shown(block.Type) + ", not a private key",
			Next: "put a private key there",
		}
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		// The parser's error is left out: nothing that was computed from a key is printed.
		return nil, &Error{Object: object, Reason: Unreadable, Problem: "is not a valid private key for signing", Next: "copy it again, or make a new one"}
	}
	return signer, nil
}

func hide(signer crypto.Signer) Key { return Key{reveal: func() crypto.Signer { return signer }} }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.reveal == nil }

// Public is the public part; nil of the zero Key.
func (k Key) Public() crypto.PublicKey {
	if k.IsZero() {
		return nil
	}
	return k.reveal().Public()
}

// Sign implements crypto.Signer.
func (k Key) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if k.IsZero() {
		return nil, noKey()
	}
	return k.reveal().Sign(random, digest, opts)
}

// PEM is the private key: RSA as PKCS #1, as the original writes it, ECDSA as PKCS #8. Istiod reads both.
func (k Key) PEM() ([]byte, error) {
	if k.IsZero() {
		return nil, noKey()
	}
	if key, ok := k.reveal().(*rsa.PrivateKey); ok {
		return encode(typePKCS1, x509.MarshalPKCS1PrivateKey(key)), nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.reveal())
	if err != nil {
		return nil, notMade("private key", errors.New("it cannot be encoded"))
	}
	return encode(typePKCS8, der), nil
}

// Check returns an Error with KeyMismatch if the certificate is not for this key.
func (k Key) Check(cert *x509.Certificate) error {
	if k.IsZero() {
		return noKey()
	}
	if samePublic(k.Public(), cert.PublicKey) {
		return nil
	}
	return &Error{
		Object: name(cert), Reason: KeyMismatch, Problem: "is not for this private key: " + k.String(),
		Next: "put the key there that the certificate was requested with, or request a new certificate",
	}
}

// String describes the public part.
func (k Key) String() string {
	if k.IsZero() {
		return "no private key"
	}
	kind := "RSA"
	switch public := k.Public().(type) {
	case *rsa.PublicKey:
		kind = fmt.Sprintf("RSA %d", public.N.BitLen())
	case *ecdsa.PublicKey:
		kind = "ECDSA " + public.Params().Name
	}
	return fmt.Sprintf("private key %s (not shown; its public key has SHA-256 %s...)", kind, publicSum(k.Public())[:shownSum])
}

// Format implements fmt.Formatter: every verb prints String.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalText is String, in JSON, YAML and structured logs too: a Key is never stored by accident.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// publicSum is the SHA-256 of a public key in hexadecimal digits.
func publicSum(public crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil { // a kind of key that is refused everywhere here
		return hex.EncodeToString(make([]byte, sha256.Size))
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func samePublic(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

// checkPublic refuses the kinds and sizes of keys that meshes do not take: Envoy does not verify Ed25519 or P-521 by
// default.
func checkPublic(object string, public crypto.PublicKey) error {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return &Error{
				Object: object, Reason: Unsupported, Problem: fmt.Sprintf("has an RSA key of %d bits", bits),
				Next: fmt.Sprintf("use a key of %d to %d bits", minRSABits, maxRSABits),
			}
		}
		return nil
	case *ecdsa.PublicKey:
		return checkCurve(object, key.Curve)
	}
	return &Error{Object: object, Reason: Unsupported, Problem: "has a key that is neither RSA nor ECDSA", Next: "use RSA, or ECDSA on P-256 or P-384"}
}

func checkCurve(object string, curve elliptic.Curve) error {
	if curve == elliptic.P256() || curve == elliptic.P384() {
		return nil
	}
	return &Error{Object: object, Reason: Unsupported, Problem: "has an ECDSA key on another curve than P-256 and P-384", Next: "use P-256 or P-384"}
}

func noKey() error {
	return &Error{Object: "private key", Reason: Missing, Problem: "is not there", Next: "make or read one first"}
}

func notMade(object string, err error) error {
	return &Error{Object: object, Reason: Failed, Problem: "cannot be made", Err: err, Next: "try again; if that does not help, report it"}
}

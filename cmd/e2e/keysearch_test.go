package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keySearch finds private keys in texts: headers of PEM, and the keys that it knows, as bytes, in hexadecimal digits, in
// base64 of either alphabet and at any alignment, and as lines of PEM, also if the text is encoded once more, as in a Secret.
type keySearch struct {
	// needles are what to look for, with what it is.
	needles map[string]string
	keys    int
}

// sampled is how many bytes of a key are looked for at a time. That many do not occur by chance.
const sampled = 24

func newKeySearch() *keySearch {
	s := &keySearch{needles: map[string]string{}}
	for _, kind := range []string{"RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"} {
		s.look("the header of a private key", []byte("-----BEGIN "+kind))
	}
	return s
}

// look adds bytes in all encodings.
func (s *keySearch) look(what string, raw []byte) {
	s.needles[string(raw)] = what
	s.needles[hex.EncodeToString(raw)] = what
	s.needles[strings.ToUpper(hex.EncodeToString(raw))] = what
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			// Of the first and last characters only some bits are of these bytes.
			text := encoding.EncodeToString(append(make([]byte, shift), raw...))
			text = text[(shift*8+5)/6:]
			if (shift+len(raw))%3 != 0 {
				text = text[:len(text)-1]
			}
			s.needles[text] = what
		}
	}
}

// addAll adds all private keys in the data of a Secret, and reports whether there are any.
func (s *keySearch) addAll(where string, data map[string][]byte) bool {
	before := s.keys
	for name, value := range data {
		for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
			if strings.Contains(block.Type, "PRIVATE KEY") {
				s.add("the private key in "+where+" "+name, block)
			}
		}
	}
	return s.keys > before
}

func (s *keySearch) add(what string, block *pem.Block) {
	s.keys++
	parts := secretParts(block.Bytes)
	if len(parts) == 0 { // another format: the end of it is not the public part
		parts = [][]byte{block.Bytes[len(block.Bytes)/2:]}
	}
	for _, part := range parts {
		s.look(what, part[:min(len(part), sampled)])
		s.look(what, part[max(0, len(part)-sampled):])
	}
	for _, line := range secretLines(block, parts) {
		s.look(what, []byte(line))
	}
}

// secretParts are the parts of a key that are not in its public key; none if it cannot be read.
func secretParts(der []byte) [][]byte {
	var key any
	if pkcs8, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		key = pkcs8
	} else if pkcs1, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		key = pkcs1
	} else if sec1, err := x509.ParseECPrivateKey(der); err == nil {
		key = sec1
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return [][]byte{key.D.Bytes(), key.Primes[0].Bytes(), key.Primes[1].Bytes()}
	case *ecdsa.PrivateKey:
		if raw, err := key.Bytes(); err == nil {
			return [][]byte{raw}
		}
	}
	return nil
}

// secretLines are two lines of PEM that are of a secret part alone, or the one that a short key begins in.
func secretLines(block *pem.Block, parts [][]byte) []string {
	text := strings.Split(string(pem.EncodeToMemory(block)), "\n")
	at := bytes.Index(block.Bytes, parts[0])
	if at < 0 {
		return nil
	}
	first := at/48 + 1 // a line has 48 bytes, the first line is the header
	if len(parts[0]) >= 3*48 {
		return text[first+1 : first+3]
	}
	return text[first : first+1]
}

// find says which keys are in a text, without what it found. Lines may be broken in any way.
func (s *keySearch) find(text string) []string {
	joined := strings.NewReplacer("\n", "", "\r", "", `\n`, "", `\r`, "", " ", "", "\t", "").Replace(text)
	found := map[string]bool{}
	for needle, what := range s.needles {
		if strings.Contains(text, needle) || strings.Contains(joined, needle) {
			found[what] = true
		}
	}
	var out []string
	for what := range found {
		out = append(out, what)
	}
	return out
}

// TestKeySearchFinds plants keys in each way in which they could get out.
func TestKeySearchFinds(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	rsa8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	require.NoError(t, err)
	ec8, err := x509.MarshalPKCS8PrivateKey(ecKey)
	require.NoError(t, err)
	ec1, err := x509.MarshalECPrivateKey(ecKey)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	require.NoError(t, err)
	blocks := map[string]*pem.Block{
		"RSA": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}, "RSA in PKCS 8": {Type: "PRIVATE KEY", Bytes: rsa8},
		"ECDSA": {Type: "EC PRIVATE KEY", Bytes: ec1}, "ECDSA in PKCS 8": {Type: "PRIVATE KEY", Bytes: ec8},
	}
	for name, block := range blocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := pem.EncodeToMemory(block)
			body := strings.Join(strings.Split(string(text), "\n")[1:], "\n")
			body = body[:strings.Index(body, "-----END")]
			quoted, err := json.Marshal(map[string]string{"message": "key: " + body})
			require.NoError(t, err)
			other := blocks["RSA"]
			if block == other {
				other = blocks["RSA in PKCS 8"]
			}
			if strings.HasPrefix(name, "ECDSA") {
				other = blocks["ECDSA in PKCS 8"]
			}
			plants := map[string]string{
				"PEM": string(text), "PEM without header": body, "PEM in JSON": string(quoted), "PEM in one line": strings.ReplaceAll(body, "\n", ""),
				"PEM of another format": strings.ReplaceAll(string(pem.EncodeToMemory(other)), "PRIVATE KEY", "X"),
				"bytes":                 string(block.Bytes), "hex": hex.EncodeToString(block.Bytes), "HEX": strings.ToUpper(hex.EncodeToString(block.Bytes)),
				"base64": base64.StdEncoding.EncodeToString(block.Bytes), "base64 for URLs": base64.URLEncoding.EncodeToString(block.Bytes),
				"base64 of something with it": base64.StdEncoding.EncodeToString(append([]byte("ab"), block.Bytes...)),
				"PEM in base64":               base64.StdEncoding.EncodeToString(text), "PEM in base64 of a list": base64.StdEncoding.EncodeToString(append([]byte("x"), body...)),
			}
			s := newKeySearch()
			require.True(t, s.addAll("Secret a/b", map[string][]byte{"tls.key": text, "note": []byte("no key")}))
			for how, plant := range plants {
				assert.NotEmpty(t, s.find("before "+plant+" after"), how)
			}
			for _, found := range s.find(body) {
				assert.Equal(t, "the private key in Secret a/b tls.key", found)
			}
			assert.Empty(t, s.find("nothing "+string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))), "the public key is not secret")
		})
	}
	assert.NotEmpty(t, newKeySearch().find("a\\n-----BEGIN RSA PRIVATE KEY-----\\nb"), "keys that are not known")
	assert.NotEmpty(t, newKeySearch().find(base64.StdEncoding.EncodeToString([]byte("b: -----BEGIN EC PRIVATE KEY-----\n"))))
}

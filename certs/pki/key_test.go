package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestKeysSurviveReadingAndWriting(t *testing.T) {
	t.Parallel()
	p384, err := NewECDSAKey(rand.Reader, elliptic.P384())
	require.NoError(t, err)
	for kind, key := range map[string]Key{typePKCS1: rsaKey(), typePKCS8: p384} {
		text, err := key.PEM()
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "-----BEGIN "+kind+"-----\n"), kind)
		again, err := ReadKey(text)
		require.NoError(t, err)
		assert.True(t, samePublic(key.Public(), again.Public()))
		root, err := NewRoot(rand.Reader, now, again, ours, rootLife)
		require.NoError(t, err)
		// Istiod checks that the two belong together in this way.
		_, err = tls.X509KeyPair(root.chain.PEM(), text)
		assert.NoError(t, err, kind)
	}
}

func TestReadKey(t *testing.T) {
	t.Parallel()
	signer := ecdsaKey(t, elliptic.P256())
	sec1, err := x509.MarshalECPrivateKey(signer)
	require.NoError(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	pkcs8 := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return encode(typePKCS8, der)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	ec := encode(typeSEC1, sec1)
	parameters := encode(typeParameters, []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7})
	locked := pem.EncodeToMemory(&pem.Block{Type: typeSEC1, Bytes: sec1, Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}})
	for name, tt := range map[string]struct {
		text   []byte
		reason Reason
		says   string
	}{
		"SEC 1":            {text: ec},
		"after parameters": {text: append(bytes.Clone(parameters), ec...)},
		"PKCS 8":           {text: pkcs8(signer)},
		"nothing":          {nil, Missing, "is empty"},
		"space":            {[]byte(" \n"), Missing, "is empty"},
		"DER":              {sec1, Unreadable, "is not PEM"},
		"two":              {append(bytes.Clone(ec), ec...), Unreadable, "has 2 PEM blocks"},
		"parameters only":  {parameters, Unreadable, "has 0 PEM blocks"},
		"a certificate":    {encode(typeCertificate, sec1), Unreadable, `type "CERTIFICATE"`},
		"cut off":          {ec[:len(ec)-30], Unreadable, "is damaged"},
		"garbage":          {encode(typePKCS1, []byte("hush")), Unreadable, "is not a valid private key"},
		"a passphrase":     {locked, Unsupported, "passphrase"},
		"another":          {encode(typeEncrypted, sec1), Unsupported, "passphrase"},
		"Ed25519":          {pkcs8(ed), Unsupported, "neither RSA nor ECDSA"},
		"P-521":            {pkcs8(ecdsaKey(t, elliptic.P521())), Unsupported, "another curve"},
		"RSA 1024":         {encode(typePKCS1, x509.MarshalPKCS1PrivateKey(small)), Unsupported, "1024 bits"},
		"too long":         {bytes.Repeat([]byte("a"), maxText+1), Unreadable, "more than 65536 bytes"},
		"too many":         {bytes.Repeat(pemBegin, maxBlocks+1), Unreadable, "more than 32 PEM blocks"},
	} {
		key, err := ReadKey(tt.text)
		if tt.reason == "" {
			require.NoError(t, err, name)
			assert.True(t, samePublic(signer.Public(), key.Public()), name)
			continue
		}
		assert.True(t, key.IsZero(), name)
		assertError(t, err, tt.reason, tt.says)
		assert.NotContains(t, err.Error(), "hush", name)
	}
}

func TestNewKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, bits := range []int{-1, 1024, 2047, maxRSABits + 1} {
		_, err := NewRSAKey(rand.Reader, bits)
		assertError(t, err, Unsupported, fmt.Sprintf("cannot have %d bits", bits))
	}
	bits, err := rsaBits(0)
	assert.NoError(t, err)
	assert.Equal(t, 4096, bits, "the default")
	_, err = NewECDSAKey(rand.Reader, elliptic.P521())
	assertError(t, err, Unsupported, "another curve")
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	var none Key
	assert.Nil(t, none.Public())
	assert.Equal(t, "no private key", none.String())
	_, err := none.PEM()
	assertError(t, err, Missing, "is not there")
	_, err = none.Sign(rand.Reader, nil, nil)
	assertError(t, err, Missing, "is not there")
	_, err = NewRequest(rand.Reader, none, "", []string{istiod})
	assertError(t, err, Missing, "is not there")
	_, err = NewRoot(rand.Reader, now, none, ours, rootLife)
	assertError(t, err, Missing, "is not there")
	_, err = NewAuthority(newRoot(t).chain, none)
	assertError(t, err, Missing, "is not there")
}

// secrets are the ways in which a number of a private key could be printed.
func secrets(number *big.Int) []string {
	der := number.Bytes()
	words := fmt.Sprint(number.Bits()) // as a dumper prints a big.Int
	return []string{
		number.String(), number.Text(16), hex.EncodeToString(der), strings.ToUpper(hex.EncodeToString(der)),
		base64.StdEncoding.EncodeToString(der), strings.Trim(words, "[]"), fmt.Sprintf("%d", der), fmt.Sprintf("%v", der)[1:20],
		fmt.Sprintf("%x", uint(number.Bits()[0])), fmt.Sprintf("%d", uint(number.Bits()[0])),
	}
}

// TestKeysShowNothing prints keys and what holds them in every way there is.
func TestKeysShowNothing(t *testing.T) {
	t.Parallel()
	ec := newKey(t)
	rsaNumbers := rsaKey().reveal().(*rsa.PrivateKey)
	ecNumber := ec.reveal().(*ecdsa.PrivateKey).D //nolint:staticcheck // what must not be printed
	for _, tt := range []struct {
		key   Key
		known []*big.Int
	}{
		{rsaKey(), []*big.Int{rsaNumbers.D, rsaNumbers.Primes[0], rsaNumbers.Primes[1], rsaNumbers.Precomputed.Dp}},
		{ec, []*big.Int{ecNumber}},
	} {
		root, err := NewRoot(rand.Reader, now, tt.key, ours, rootLife)
		require.NoError(t, err)
		type holder struct {
			Key    Key
			Pair   *Key
			hidden Key
			Any    any
		}
		holds := holder{tt.key, &tt.key, tt.key, tt.key}
		text, err := tt.key.PEM()
		require.NoError(t, err)
		printed := printAll(t, tt.key, &tt.key, holds, &holds, root, *root, CACerts{Authority: root}, []Key{tt.key}, map[string]Key{"a": tt.key}, Want{Key: tt.key})
		assert.Contains(t, printed, "not shown; its public key has SHA-256 "+publicSum(tt.key.Public())[:16])
		for _, number := range tt.known {
			for _, secret := range secrets(number) {
				require.GreaterOrEqual(t, len(secret), 10)
				assert.NotContains(t, printed, secret)
			}
		}
		assert.NotContains(t, printed, "PRIVATE KEY")
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			assert.NotContains(t, printed, line)
		}
	}
}

// recorder is a test that may fail.
type recorder struct{ out *bytes.Buffer }

func (r recorder) Errorf(format string, args ...any) { fmt.Fprintf(r.out, format, args...) }

func printAll(t *testing.T, values ...any) string {
	t.Helper()
	var out bytes.Buffer
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%p", "%t", "%10.3v", "%T", "%w"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		fmt.Fprintln(&out, v)
		for _, logger := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(logger).Info("message", "value", v, slog.Group("group", "value", v))
		}
		if data, err := json.Marshal(v); assert.NoError(t, err) {
			out.Write(data)
		}
		if data, err := yaml.Marshal(v); assert.NoError(t, err) {
			out.Write(data)
		}
		// A failed comparison dumps both sides without their methods, following pointers.
		assert.Equal(recorder{&out}, v, reflect.Zero(reflect.TypeOf(v)).Interface())
	}
	return out.String()
}

package verify

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

// workload is a certificate as istiod signs it.
func workload(t testing.TB, mesh pki.CACerts, identity string) (pki.Chain, pki.Key) {
	t.Helper()
	uri, err := url.Parse(identity)
	require.NoError(t, err)
	meshKey, err := mesh.Data()
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(meshKey[pki.CACertKey], meshKey[pki.CAKeyKey])
	require.NoError(t, err)
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, pair.Leaf, key.Public(), pair.PrivateKey)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return append(pki.Chain{cert}, mesh.Authority.Chain()...), key
}

// client is an answer with a certificate to show.
func client(t testing.TB, mesh pki.CACerts) *Answer {
	t.Helper()
	chain, key := workload(t, mesh, requester)
	a := answer(mesh)
	a.certificate = tls.Certificate{PrivateKey: key, Leaf: chain[0], Certificate: [][]byte{chain[0].Raw, chain[1].Raw}}
	return a
}

// sidecar is what a listener of an Envoy presents and trusts.
type sidecar struct {
	presents pki.CACerts
	trusts   pki.Bundle
	minimum  string
	plain    bool
}

// envoy runs Envoy with a listener for each sidecar, as Istio configures inbound listeners, and returns their addresses.
func envoy(t *testing.T, sidecars ...sidecar) []string {
	t.Helper()
	binary, err := proxies.Envoy(t.Context())
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("nothing is proven with Envoy: %v", err)
	}
	require.NoError(t, err)
	ports, err := proc.ReservePorts(t.TempDir(), len(sidecars))
	require.NoError(t, err)
	var listeners []any
	var addresses []string
	for i, s := range sidecars {
		listeners = append(listeners, listener(t, s, ports[i]))
		addresses = append(addresses, net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])))
	}
	config, err := json.Marshal(map[string]any{"static_resources": map[string]any{"listeners": listeners}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "envoy.json")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	command := exec.CommandContext(t.Context(), binary, "-c", file, "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error")
	command.Stderr = t.Output()
	require.NoError(t, command.Start())
	sandboxtest.Watch(t, command.Process.Pid)
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	for _, address := range addresses {
		waittest.NoError(t, "Envoy listens", func() error {
			conn, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				_ = conn.Close()
			}
			return err
		})
	}
	return addresses
}

func listener(t *testing.T, s sidecar, port int) map[string]any {
	t.Helper()
	// A TCP proxy without an upstream would hang up before the handshake.
	chain := map[string]any{"filters": []any{map[string]any{"name": "envoy.filters.network.http_connection_manager", "typed_config": map[string]any{
		"@type":       "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": "inbound", "route_config": map[string]any{"name": "none"},
	}}}}
	if !s.plain {
		certs, key := workload(t, s.presents, "spiffe://cluster.local/ns/apps/sa/reviews")
		text, err := key.PEM()
		require.NoError(t, err)
		chain["transport_socket"] = map[string]any{"name": "envoy.transport_sockets.tls", "typed_config": map[string]any{
			"@type":                      "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
			"require_client_certificate": true,
			"common_tls_context": map[string]any{
				"tls_params":         map[string]any{"tls_minimum_protocol_version": s.minimum, "tls_maximum_protocol_version": "TLSv1_3"},
				"alpn_protocols":     []string{"istio-peer-exchange", "h2", "http/1.1"},
				"tls_certificates":   []any{map[string]any{"certificate_chain": inline(certs.PEM()), "private_key": inline(text)}},
				"validation_context": map[string]any{"trusted_ca": inline(s.trusts.PEM())},
			}}}
	}
	return map[string]any{
		"name": fmt.Sprint(port), "address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": port}},
		"filter_chains": []any{chain},
	}
}

func inline(text []byte) map[string]any { return map[string]any{"inline_string": string(text)} }

// TestGreetEnvoy: what a real Envoy shows of what it presents and trusts.
func TestGreetEnvoy(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old, next := newRoot(t, now), newRoot(t, now)
	oldMesh, nextMesh := newMesh(t, now, old), newMesh(t, now, next, old)
	addresses := envoy(
		t,
		sidecar{presents: oldMesh, trusts: bundle(old), minimum: "TLSv1_2"},
		sidecar{presents: oldMesh, trusts: bundle(old, next), minimum: "TLSv1_2"},
		sidecar{presents: nextMesh, trusts: bundle(next), minimum: "TLSv1_2"},
		sidecar{presents: oldMesh, trusts: bundle(old, next), minimum: "TLSv1_3"},
		sidecar{presents: oldMesh, trusts: bundle(old), minimum: "TLSv1_3"},
		sidecar{plain: true},
	)
	known := bundle(old, next)
	name := func(root *pki.Authority) string { return string(root.Chain()[0].RawSubject) }
	cases := []struct {
		what     string
		address  string
		with     pki.CACerts
		presents string
		accepts  Verdict
		names    []string
	}{
		{"accepts", addresses[0], oldMesh, sum(old), Accepted, []string{name(old)}},
		{"refuses", addresses[0], nextMesh, sum(old), Refused, []string{name(old)}},
		{"trusts a root that is not signed with yet", addresses[1], oldMesh, sum(old), Accepted, []string{name(old), name(next)}},
		{"accepts the next root", addresses[1], nextMesh, sum(old), Accepted, []string{name(old), name(next)}},
		{"dropped the old root", addresses[2], oldMesh, sum(next), Refused, []string{name(next)}},
		{"says nothing in TLS 1.3, but the names", addresses[3], nextMesh, sum(old), Undecided, []string{name(old), name(next)}},
		{"refuses in TLS 1.3", addresses[4], nextMesh, sum(old), Refused, []string{name(old)}},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			waittest.NoError(t, c.what, func() error { // a busy machine may need longer than a handshake may take
				seen, err := Greet(t.Context(), Target{c.address, "apps", "reviews"}, client(t, c.with), known)
				if err != nil {
					return err
				}
				if seen.Accepts == Undecided && c.accepts != Undecided {
					return fmt.Errorf("undecided: %+v", seen)
				}
				assert.Equal(t, c.presents, seen.Presents)
				assert.Equal(t, c.accepts, seen.Accepts)
				assert.Equal(t, pki.Fingerprint(c.with.Authority.Chain().Root()), seen.Client)
				assert.ElementsMatch(t, c.names, seen.Names)
				return nil
			})
		})
	}
	t.Run("somebody else", func(t *testing.T) {
		t.Parallel()
		_, err := Greet(t.Context(), Target{addresses[0], "apps", "ratings"}, client(t, oldMesh), known)
		require.ErrorIs(t, err, errElse)
	})
	t.Run("a root that is not known", func(t *testing.T) {
		t.Parallel()
		seen, err := Greet(t.Context(), Target{addresses[0], "apps", "reviews"}, client(t, oldMesh), bundle(next))
		require.NoError(t, err)
		assert.Equal(t, sum(old), seen.Presents)
	})
	t.Run("plain text", func(t *testing.T) {
		t.Parallel()
		_, err := Greet(t.Context(), Target{addresses[5], "apps", "reviews"}, client(t, oldMesh), known)
		require.Error(t, err)
	})
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		_, err := Greet(t.Context(), Target{sandboxtest.Address(t), "apps", "reviews"}, client(t, oldMesh), known)
		require.ErrorContains(t, err, "refused")
	})
}

package cmd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

// kubeconfigOf writes a kubeconfig with one context, for a user of a server.
func kubeconfigOf(t *testing.T, server string, ca []byte, user *clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["prod"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["anna"] = user
	config.Contexts["prod"] = &clientcmdapi.Context{Cluster: "prod", AuthInfo: "anna"}
	config.CurrentContext = "prod"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// jwt is a token that expires at a time, of an issuer that nobody knows.
func jwt(expires time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"exp":%d}`, expires.Unix())) + "." + part("signature")
}

// certificateUntil is a client certificate with its key.
func certificateUntil(t *testing.T, expires time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: expires.Add(-time.Hour), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// TestExpiredCredentials: a real API server rejects a credential, and each command says that it has
// expired, when, and what to do; of a plugin, its name.
func TestExpiredCredentials(t *testing.T) {
	t.Parallel()
	server := sandboxtest.APIServer(t)
	past := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	failing := filepath.Join(t.TempDir(), "login-to-cloud")
	require.NoError(t, os.WriteFile(failing, []byte("#!/bin/sh\nexit 7\n"), 0o700))
	plugin := func(command string) *clientcmdapi.AuthInfo {
		return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: command, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}
	}
	certificate, key := certificateUntil(t, past)
	users := map[string]struct {
		user *clientcmdapi.AuthInfo
		want []string
	}{
		"token": {&clientcmdapi.AuthInfo{Token: jwt(past)}, []string{
			"the token expired at 2026-02-03T04:05:06Z; get a new one, and store it with: kubectl config set-credentials anna --token=TOKEN",
		}},
		"certificate": {&clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}, []string{
			"the client certificate expired at 2026-02-03T04:05:06Z; get a new one", "kubectl config set-credentials anna --client-certificate=FILE",
		}},
		"plugin that fails":    {plugin(failing), []string{"the plugin " + failing + " of the kubeconfig failed with exit code 7; log in"}},
		"plugin that is not":   {plugin("no-such-login"), []string{"the plugin no-such-login of the kubeconfig is not found; install it"}},
		"token not of its own": {&clientcmdapi.AuthInfo{Token: jwt(time.Now().Add(time.Hour))}, []string{"rejects the credential (401 Unauthorized)"}},
	}
	for name, c := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := kubeconfigOf(t, server.Host, server.CAData, c.user)
			for _, args := range [][]string{
				{"describe", "mesh", "--kubeconfig", file}, {"check", "--kubeconfig", file}, {"version", "--kubeconfig", file},
				{"cluster", "list", "--kubeconfig", file}, {"plan", "-f", cases + "/bookinfo/in/management/policies.yaml", "--kubeconfig", file},
			} {
				out, errs, _ := run(t.Context(), args...)
				for _, want := range c.want {
					assert.Contains(t, out+errs, want, args)
				}
				assert.NotContains(t, out+errs, `Get "`, args)
				assert.NotContains(t, out+errs, "Warning:", args)
			}
		})
	}
}

// TestErrorsOfRequestsAreShort: a server that does not answer is named once, with the cause, and
// without the path of the request.
func TestErrorsOfRequestsAreShort(t *testing.T) {
	t.Parallel()
	file := kubeconfigOf(t, "https://127.0.0.1:1", nil, &clientcmdapi.AuthInfo{})
	for _, args := range [][]string{
		{"describe", "mesh"}, {"check"}, {"version"}, {"cluster", "list"}, {"trust", "show"}, {"debug", "snapshot", "-o", filepath.Join(t.TempDir(), "x.zip")},
		{"why", "a", "b"}, {"plan", "-f", cases + "/bookinfo/in/management/policies.yaml"}, {"mesh", "restart", "m", "--yes"}, {"install"},
	} {
		started := time.Now()
		out, errs, code := run(t.Context(), append(args, "--kubeconfig", file)...)
		assert.Less(t, time.Since(started), 2*waittest.Soon(), "%s: who asks once does not wait for a server", args)
		assert.Regexp(t, `https://127\.0\.0\.1:1\)? refuses connections`, out+errs, args)
		assert.NotRegexp(t, `[A-Z][a-z]+ "https?://`, out+errs, args)
		assert.NotContains(t, out+errs, "dial tcp", args)
		if args[0] != "version" {
			assert.NotZero(t, code, args)
		}
	}
}
